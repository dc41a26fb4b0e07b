/*
 * Module loads: texts are loaded into one context by several threads at once, each by one of them.
 * A GPU's JIT needs seconds for a large text, and has a processor for each thread.
 */
#ifndef HYP_MODULE_LOADS_H
#define HYP_MODULE_LOADS_H

#include "tollens.h"

enum { HYP_MODULE_LOADS_THREADS_MAX = 8 };

struct hyp_module_load {
    const char *text; /* with a NUL after its bytes */
    size_t bytes;
    /* What came of it: */
    struct tol_module *module; /* the caller destroys it; NULL unless status is TOL_OK */
    tol_status status;
    uint64_t ns;
    char message[1000]; /* of the thread that failed; "" after success */
};

/* Loads all, the longest text first, with one thread per processor, at most
 * HYP_MODULE_LOADS_THREADS_MAX. */
void hyp_module_loads(struct tol_context *context, struct hyp_module_load *loads, size_t count);

#endif
