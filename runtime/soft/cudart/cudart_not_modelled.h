/*
 * Functions that CUDA's runtime has and this one does not model: cudart_other.def.
 */
#ifndef CUDART_NOT_MODELLED_H
#define CUDART_NOT_MODELLED_H

#include "cudart_types.h"

#include <stdatomic.h>

/* cudaErrorNotSupported, and a line on stderr at the function's first call. Any thread. */
cudaError_t cudart_not_modelled(const char *name, atomic_bool *told);

#endif
