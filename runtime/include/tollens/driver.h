/*
 * Driver: one libcuda, opened once, as a table of functions.
 *
 * The table is made from driver.def. Real drivers and the soft device look the same from here on;
 * no code of the runtime asks which one it has. Source: spec 004 CRT-001, D-24, D-25, D-31.
 */
#ifndef TOLLENS_DRIVER_H
#define TOLLENS_DRIVER_H

#include "cuda_abi.h"
#include "status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a driver may lack. CORE is what every supported driver has. */
typedef enum tol_feature {
    TOL_FEATURE_CORE,
    TOL_FEATURE_PARAM_INFO,  /* a kernel's parameter list can be asked for: driver 550, CUDA 12.4 */
    TOL_FEATURE_LOGS,        /* the driver keeps a log of its errors: CUDA 12.9 */
    TOL_FEATURE_VMM,         /* addresses and memory can be had apart: cuMemMap and its kin */
    TOL_FEATURE_MEMORY_POOL, /* the driver's own stream-ordered pools */
    TOL_FEATURE_GRAPH,       /* streams can be captured, graphs made, updated and launched */
    TOL_FEATURE_LAUNCH_EX,   /* a launch can have attributes: cuLaunchKernelEx */
    TOL_FEATURE_COUNT
} tol_feature;

/* A raw driver: every function of driver.def. Entries of a feature the driver lacks are NULL. */
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

/* The oldest driver accepted, as cuDriverGetVersion gives it: CUDA 12.0, driver 525.60. */
enum { TOL_DRIVER_VERSION_MIN = 12000 };

/*
 * Opens a driver library, fills the table, checks the version and calls cuInit.
 *
 * path names the library. NULL means the environment variable TOLLENS_LIBCUDA and, where that is
 * unset or empty, the platform's own names in order (libcuda.so.1, then libcuda.so). The library
 * stays loaded until the process ends. Opening the same library twice gives two driver objects
 * over one library. Thread-safe.
 *
 * TOL_NO_LIBRARY: nothing could be loaded; the message has the loader's reasons.
 * TOL_NO_SYMBOL: a CORE function is missing; the message names the first and counts the rest.
 * TOL_DRIVER_TOO_OLD: below TOL_DRIVER_VERSION_MIN. TOL_NO_DEVICE: the driver sees no device.
 */
TOL_API tol_status tol_driver_open(const char *path, struct tol_driver **driver);

/* Gives the driver object back; contexts made from it keep it alive until they end. NULL is a
 * no-op. Thread-safe. */
TOL_API void tol_driver_close(struct tol_driver *driver);

/* The raw functions: for code that measures against them, and for what the runtime does not wrap.
 * While an interposer is installed they are the interposer's, so take them before. Valid until the
 * driver is closed. No context is bound for such calls: see tol_context_bind. */
TOL_API const struct tol_driver_table *tol_driver_functions(const struct tol_driver *driver);

/* Whether all functions of a feature are there. */
TOL_API bool tol_driver_has(const struct tol_driver *driver, tol_feature feature);

/* What cuDriverGetVersion said: 1000 * major + 10 * minor of the newest CUDA it supports. */
TOL_API int tol_driver_version(const struct tol_driver *driver);

/* The name or path that was opened. Valid until the driver is closed. */
TOL_API const char *tol_driver_path(const struct tol_driver *driver);

/* The exported name of a function of the list; NULL past its end. Static. */
TOL_API const char *tol_driver_function_name(enum tol_driver_index index);

#ifdef __cplusplus
}
#endif
#endif
