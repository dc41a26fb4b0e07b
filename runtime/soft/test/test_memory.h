/*
 * Makes one allocation fail. The test program is linked with --wrap for malloc, calloc and realloc,
 * which redirects the soft device's calls, but not those of libraries.
 */
#ifndef SOFT_TEST_MEMORY_H
#define SOFT_TEST_MEMORY_H

#include "tollens/cuda_abi.h"

#include <stdbool.h>

/* From now on the nth allocation of the process fails, once, in whatever thread; 1 is the next. 0:
 * none does. */
void test_memory_fail(unsigned nth);

/* Whether one has failed since the last test_memory_fail. */
bool test_memory_failed(void);

/* The number of failed allocations, and how often the work then failed: it may also continue
 * without the memory. */
struct test_memory_count {
    unsigned failures, refusals;
};

/* Does the work for each of its allocations, which fails, until none did. The result must be
 * CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY, the last time CUDA_SUCCESS. With times, each is
 * repeated that often, and nothing may be left in the heap (api_must_keep_nothing); 0: this is not
 * checked. */
struct test_memory_count test_each_allocation_fails(CUresult (*work)(void), int times);

#endif
