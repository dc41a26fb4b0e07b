/*
 * RT(name, parameters) begins the body of an exported function of the runtime.
 *
 * The body is named cudart_NAME; cudart_exports.c defines the exported function around it, once for
 * each of the two libraries. All bodies are declared from the lists, so one that differs from them
 * does not compile, and a missing one does not link.
 */
#ifndef CUDART_EXPORT_H
#define CUDART_EXPORT_H

#include "cudart_thread.h"

#define CUDART_VISIBLE __attribute__((visibility("default")))

#define CUDART_FN(versions, thread, name, parameters, names) cudaError_t cudart_##name parameters;
#define CUDART_AS(versions, thread, name, body, parameters, names)                                 \
    cudaError_t cudart_##body parameters;
#include "cudart_functions.def"

#define RT(name, parameters) cudaError_t cudart_##name parameters

#endif
