/*
 * EXPORT(name, parameters) begins the body of an exported function.
 *
 * The body is named soft_NAME; exports.c defines the exported function around it, and the variants
 * that replace the null stream by the thread's default stream. All are declared from functions.def,
 * so a body that differs from the list does not compile, and a missing one does not link. The
 * functions that the runtime calls are declared a second time from the runtime's own list, which
 * must agree.
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
