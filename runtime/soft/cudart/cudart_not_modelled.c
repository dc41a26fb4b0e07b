/*
 * Reports each unmodelled function once. Those functions read no argument; the calling conventions
 * of this library's platforms let a function ignore its arguments.
 */
#include "cudart_not_modelled.h"

#include "cudart_driver.h"

#include <stdbool.h>
#include <stdio.h>

cudaError_t cudart_not_modelled(const char *name, atomic_bool *told) {
    if (!atomic_exchange(told, true)) {
        char text[256];
        snprintf(text, sizeof text, "%s is not modelled and returns cudaErrorNotSupported\n", name);
        fprintf(stderr, "tollens-cudart: %s", text);
        if (cudart_driver_ready() == cudaSuccess && cudart_driver_refusal != NULL)
            cudart_driver_refusal(text);
    }
    return cudaErrorNotSupported;
}
