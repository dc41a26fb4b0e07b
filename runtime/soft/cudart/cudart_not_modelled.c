/*
 * Says once what is not modelled. Those functions read no argument; the calling conventions that
 * this library is built for let a function ignore what it is given.
 */
#include "cudart_not_modelled.h"

#include <stdbool.h>
#include <stdio.h>

cudaError_t cudart_not_modelled(const char *name, atomic_bool *told) {
    if (!atomic_exchange(told, true)) {
        fprintf(stderr, "tollens-cudart: %s is not modelled and returns cudaErrorNotSupported\n",
                name);
    }
    return cudaErrorNotSupported;
}
