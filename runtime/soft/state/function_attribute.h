/*
 * The attributes of kernels, and which of them a program may set.
 */
#ifndef SOFT_FUNCTION_ATTRIBUTE_H
#define SOFT_FUNCTION_ATTRIBUTE_H

#include "driver_state.h"

/* The most shared memory that a block can have, static and dynamic together. */
enum { SOFT_SHARED_OPTIN_BYTES = 232448 };

/* CUDA_ERROR_INVALID_VALUE: there is no such attribute, or it cannot have the value. */
CUresult soft_function_attribute(const struct soft_function *function, int attribute, int *value);
CUresult soft_function_set_attribute(struct soft_function *function, int attribute, int value);

/* Where a parameter lies. CUDA_ERROR_INVALID_VALUE: there is none of that index. */
CUresult soft_function_parameter(const struct soft_function *function, size_t index, size_t *offset,
                                 size_t *bytes);

#endif
