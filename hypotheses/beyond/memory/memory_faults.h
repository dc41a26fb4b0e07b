/*
 * Memory faults: changes of sealed memory from outside, which the attacks on the claims must
 * notice. Most are hooks in the interposer; the others are a step that an attack makes in place
 * of the library's, or a change to a file.
 */
#ifndef HYP_MEMORY_FAULTS_H
#define HYP_MEMORY_FAULTS_H

#include "harness/plugin.h"

extern const struct hyp_fault memory_faults[];

/* Whether the attack runs under this fault. */
bool memory_fault_is(const struct hyp_attack *attack, const char *name);

/* The hooks of the fault that the attack runs under, if it is one of these. */
void memory_fault_hooks(const struct hyp_attack *attack, struct tol_interpose_options *options);

/* What faults act on: plain bytes, NULL for none, and the place that is sealed, address 0 for none.
 * Both are the attack's. */
void memory_fault_on(const void *plain, size_t bytes);
void memory_fault_at(struct tol_place place);

/* Copies to the device, and waits until the bytes have arrived: cuMemcpyHtoD from pageable memory
 * may return before (CUDA Driver API, "API synchronization behavior"), and a stream of the runtime
 * does not wait for the legacy one. */
CUresult memory_write(const struct tol_driver_table *cu, CUdeviceptr at, const void *bytes,
                      size_t count);

#endif
