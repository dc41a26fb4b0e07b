/*
 * Kernel scene: the kernels and the stream of a test of an operation, on the test's device.
 * For tests. One thread.
 */
#ifndef KN_KERNEL_SCENE_H
#define KN_KERNEL_SCENE_H

#include "choose/kernel_set.h"

extern struct kn_kernels *kernels;
extern struct tol_stream *stream;

/* Creates both, in test_context(). A failure fails the test. */
void kernel_scene_begin(void);

/* Before the begin: the soft device then takes blocks, warps and lanes in another order than usual,
 * and lets others run between a load and a store of what several write, so that an update that is
 * not atomic loses something. TOLLENS_SOFT_SEED chooses the order. Changes nothing on a GPU. */
void kernel_scene_reorder(void);

/* Destroys both, and ends the test's device. Without a begin it ends the device alone. */
void kernel_scene_end(void);

#endif
