/*
 * Attention scene: trials that must come out right. For tests, inside a kernel scene. One thread.
 */
#ifndef KN_ATTENTION_SCENE_H
#define KN_ATTENTION_SCENE_H

#include "attention/forward/attention_trial.h"
#include "kernel_scene.h"

/* Makes a trial of the test (test_takes_trial) with a seed of its own. A result beyond its bound,
 * or a byte changed outside out, fails the test. */
void attention_must_be_right(const struct kn_attention_trial *trial);

#endif
