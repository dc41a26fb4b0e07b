/*
 * Driver: one libcuda, opened once, as a table of functions.
 *
 * The table is generated from driver.def. Real drivers and the soft device have the same interface;
 * the runtime does the same with both and only reports which one it uses. Source: spec 004 CRT-001,
 * D-24, D-25, D-31.
 */
#ifndef TOLLENS_DRIVER_H
#define TOLLENS_DRIVER_H

#include "cuda_abi.h"
#include "status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Groups of driver functions. Every supported driver has CORE; it may lack the others. */
typedef enum tol_feature {
    TOL_FEATURE_CORE,
    TOL_FEATURE_PARAM_INFO,  /* reports a kernel's parameters: driver 550, CUDA 12.4 */
    TOL_FEATURE_LOGS,        /* the driver's error log: CUDA 12.9 */
    TOL_FEATURE_VMM,         /* virtual memory management: cuMemMap and related calls */
    TOL_FEATURE_MEMORY_POOL, /* the driver's stream-ordered memory pools */
    TOL_FEATURE_GRAPH,       /* graphs: capture, create, update, launch */
    TOL_FEATURE_LAUNCH_EX,   /* launches with attributes: cuLaunchKernelEx */
    TOL_FEATURE_TENSOR_MAP,  /* tensor maps: cuTensorMapEncodeTiled */
    TOL_FEATURE_SHARING,     /* memory of other processes, and words that streams wait for */
    TOL_FEATURE_OTHERS,      /* copies, fills, launches and shares that the runtime does not use */
    TOL_FEATURE_GRAPH_NODES, /* what is in a graph: cuGraphMemcpyNodeGetParams and related calls */
    TOL_FEATURE_COUNT
} tol_feature;

/* The functions of a driver, one per entry of driver.def. Entries of a feature that the driver
 * lacks are NULL. */
struct tol_driver_table {
#define TOL_DRIVER_FN(feature, name, parameters, names) CUresult(CUDAAPI *name) parameters;
#include "driver.def"
};

/* The position of each function in driver.def. */
enum tol_driver_index {
#define TOL_DRIVER_FN(feature, name, parameters, names) TOL_DRIVER_INDEX_##name,
#include "driver.def"
    TOL_DRIVER_FUNCTIONS
};

struct tol_driver;

/* The oldest accepted result of cuDriverGetVersion: CUDA 12.0, driver 525.60. */
enum { TOL_DRIVER_VERSION_MIN = 12000 };

/*
 * Opens a driver library, fills the table, checks the version and calls cuInit.
 *
 * path is the library's file name. NULL means the environment variable TOLLENS_LIBCUDA or, if that
 * is unset or empty, the platform's names in order (libcuda.so.1, then libcuda.so). The library
 * stays loaded until the process ends. Opening a library twice makes two driver objects for it.
 * With TOLLENS_FALLBACK=soft in the environment it may open the soft device: tol_driver_open_with.
 * The caller closes the driver with tol_driver_close. Thread-safe.
 *
 * TOL_NO_LIBRARY: no library could be loaded; the message has the loader's reasons.
 * TOL_NO_SYMBOL: a CORE function is missing; the message names the first and counts the rest.
 * TOL_DRIVER_TOO_OLD: below TOL_DRIVER_VERSION_MIN. TOL_NO_DEVICE: the driver sees no device.
 */
TOL_API tol_status tol_driver_open(const char *path, struct tol_driver **driver);

/* How to open a driver. All zero means what tol_driver_open(NULL) does. */
struct tol_driver_options {
    const char *path;      /* the library's file name, or NULL, as in tol_driver_open */
    bool allow_soft;       /* whether to fall back on the soft device; see below */
    const char *soft_path; /* the soft device's file name. NULL: libtollens-soft.so in the folder of
                            * this library, or of the program that it is part of, and otherwise
                            * where the platform's loader finds that name */
};

/*
 * Like tol_driver_open, with options. NULL means all zero.
 *
 * The soft device, which runs kernels on the CPU, is opened in place of a driver if no driver
 * library can be loaded (TOL_NO_LIBRARY) or the driver sees no device (TOL_NO_DEVICE), if no path
 * and no TOLLENS_LIBCUDA names a library, and if that is allowed: by allow_soft or by the
 * environment variable TOLLENS_FALLBACK=soft, which is for programs that use tol_driver_open. The
 * first time in each process, a line on stderr says so, with the reason. tol_driver_is_soft and the
 * field soft of struct tol_device tell which one was opened.
 *
 * TOL_NO_LIBRARY, TOL_NO_SYMBOL or TOL_DRIVER_TOO_OLD of the soft device: it cannot be opened
 * either; the message has both reasons. Other errors are those of tol_driver_open. Thread-safe.
 * Source: spec 004 section 7.1.
 */
TOL_API tol_status tol_driver_open_with(const struct tol_driver_options *options,
                                        struct tol_driver **driver);

/* Whether the library is the soft device, however it was chosen. */
TOL_API bool tol_driver_is_soft(const struct tol_driver *driver);

/* Closes the driver object. Contexts created from it keep it alive until they are destroyed. NULL
 * is a no-op. Thread-safe. */
TOL_API void tol_driver_close(struct tol_driver *driver);

/* The function table of the driver, for comparing with raw calls and for calls that the runtime
 * does not wrap. While an interposer is installed this is the interposer's table; to bypass it, get
 * the table before installing. Valid until the driver is closed. Such calls need a current context:
 * see tol_context_bind. */
TOL_API const struct tol_driver_table *tol_driver_functions(const struct tol_driver *driver);

/* Whether the driver has all functions of a feature. */
TOL_API bool tol_driver_has(const struct tol_driver *driver, tol_feature feature);

/* The result of cuDriverGetVersion: 1000 * major + 10 * minor of the newest CUDA it supports. */
TOL_API int tol_driver_version(const struct tol_driver *driver);

/* The name or path of the library. Valid until the driver is closed. */
TOL_API const char *tol_driver_path(const struct tol_driver *driver);

/* The exported name of a function of driver.def. Static. NULL if index is out of range. */
TOL_API const char *tol_driver_function_name(enum tol_driver_index index);

#ifdef __cplusplus
}
#endif
#endif
