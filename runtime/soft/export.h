/*
 * EXPORT(name, parameters) begins the definition of a function that the library exports.
 *
 * Each is declared from driver.def, so a signature that differs from the list does not compile; and
 * exports.c takes the address of every name in the list, so a missing
 * one does not link. */
#ifndef SOFT_EXPORT_H
#define SOFT_EXPORT_H

#include "../cuda_abi.h"

#if defined(_WIN32)
#define SOFT_VISIBLE __declspec(dllexport)
#else
#define SOFT_VISIBLE __attribute__((visibility("default")))
#endif

#define TOL_DRIVER_FN(feature, name, parameters, names)                                            \
    SOFT_VISIBLE CUresult CUDAAPI name parameters;
#include "../driver.def"

#define EXPORT(name, parameters) SOFT_VISIBLE CUresult CUDAAPI name parameters

#endif
