/*
 * Functions that CUDA's runtime has and this one does not model: cudart_other.def.
 */
#ifndef CUDART_NOT_MODELLED_H
#define CUDART_NOT_MODELLED_H

#include "cudart_types.h"

#include <stdatomic.h>

/* cudaErrorNotSupported; at the function's first call also a line on stderr, and the soft device
 * counts it as refused. Any thread. */
cudaError_t cudart_not_modelled(const char *name, atomic_bool *told);

#endif
