/*
 * Kernel scene: the kernels and the stream of a test of an operation, on the test's device.
 * For tests. One thread.
 */
#ifndef KN_KERNEL_SCENE_H
#define KN_KERNEL_SCENE_H

#include "kernel_set.h"

extern struct kn_kernels *kernels;
extern struct tol_stream *stream;

/* Creates both, in test_context(). A failure fails the test. */
void kernel_scene_begin(void);

/* Destroys both, and ends the test's device. Without a begin it ends the device alone. */
void kernel_scene_end(void);

#endif
