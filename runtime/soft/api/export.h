/*
 * EXPORT(name, parameters) begins the body of a function that the library exports.
 *
 * The body is named soft_NAME; exports.c makes the exported function around it, and with it the
 * variants that take the null stream for the thread's own. All are declared from functions.def, so
 * a body that differs from the list does not compile, and one that is missing does not link. What
 * the runtime calls is declared a second time from its own list, which must say the same.
 */
#ifndef SOFT_EXPORT_H
#define SOFT_EXPORT_H

#include "base/abi.h"

#if defined(_WIN32)
#define SOFT_VISIBLE __declspec(dllexport)
#else
#define SOFT_VISIBLE __attribute__((visibility("default")))
#endif

#define SOFT_FN(thread, version, base, name, parameters, names)                                    \
    CUresult soft_##name parameters;                                                               \
    SOFT_VISIBLE CUresult CUDAAPI name parameters;
#include "base/functions.def"

#define TOL_DRIVER_FN(feature, name, parameters, names)                                            \
    SOFT_VISIBLE CUresult CUDAAPI name parameters;
#include "tollens/driver.def"

#define EXPORT(name, parameters) CUresult soft_##name parameters

#endif
