/*
 * The attributes of kernels, and which of them a program may set.
 */
#ifndef SOFT_FUNCTION_ATTRIBUTE_H
#define SOFT_FUNCTION_ATTRIBUTE_H

#include "driver_state.h"

/* The maximum shared memory of a block, static and dynamic. */
enum { SOFT_SHARED_OPTIN_BYTES = 232448 };

/* CUDA_ERROR_INVALID_VALUE: there is no such attribute, or it cannot have the value. */
CUresult soft_function_attribute(const struct soft_function *function, int attribute, int *value);
CUresult soft_function_set_attribute(struct soft_function *function, int attribute, int value);

/* The offset of a parameter. CUDA_ERROR_INVALID_VALUE: no parameter has this index. */
CUresult soft_function_parameter(const struct soft_function *function, size_t index, size_t *offset,
                                 size_t *bytes);

#endif
