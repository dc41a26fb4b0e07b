/*
 * Call: the code before and after every exported function.
 */
#ifndef SOFT_CALL_H
#define SOFT_CALL_H

#include "base/abi.h"
#include "base/calls.h"

#include <stdbool.h>

/* Before the body: a code other than CUDA_SUCCESS is returned instead of calling it. own_default:
 * the call takes the null stream for the thread's own. */
CUresult soft_call_begin(enum soft_call call, bool own_default, const void *site);

/* After it: what the call returns. */
CUresult soft_call_end(enum soft_call call, CUresult result);

#endif
