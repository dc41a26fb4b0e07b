/*
 * The table of the driver's functions, from the list of what a driver exports.
 */
#include "cudart_driver.h"

#include "cudart_version.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct cudart_driver cudart_driver;
void (*cudart_driver_site)(const void *site);
void (*cudart_driver_refusal)(const char *text);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t outcome;

/* Reads no argument, so it can replace functions of any parameters. */
static CUresult driver_missing(void) {
    return CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER;
}

typedef void (*any_function)(void);

/* dlsym returns a pointer to an object; POSIX says that it holds a function. */
static any_function driver_find(void *library, const char *name) {
    void *symbol = dlsym(library, name);
    any_function function = NULL;
    memcpy(&function, &symbol, sizeof function);
    return function;
}

static any_function find_or(void *library, const char *name, any_function other) {
    any_function function = driver_find(library, name);
    return function != NULL ? function : other;
}

static const struct row {
    const char *name, *own_name; /* own_name NULL: one for all threads */
    size_t offset;               /* of the pair in the table */
} rows[] = {
#define OWN_NONE(name) NULL
#define OWN_PTDS(name) name "_ptds"
#define OWN_PTSZ(name) name "_ptsz"
#define SOFT_FN(thread, version, base, name, parameters, names)                                    \
    {#name, OWN_##thread(#name), offsetof(struct cudart_driver, name)},
#include "base/functions.def"
};

static void driver_fill(void *library) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        any_function pair[2];
        pair[0] = find_or(library, rows[i].name, (any_function)driver_missing);
        pair[1] = rows[i].own_name == NULL ? pair[0] : find_or(library, rows[i].own_name, pair[0]);
        memcpy((char *)&cudart_driver + rows[i].offset, pair, sizeof pair);
    }
}

static cudaError_t driver_open_driver(void) {
    const char *named = getenv("TOLLENS_LIBCUDA");
    int version = 0;
    void *library = dlopen(named != NULL && named[0] != '\0' ? named : "libcuda.so.1", RTLD_NOW);
    if (library == NULL || driver_find(library, "cuInit") == NULL)
        return cudaErrorInsufficientDriver;
    driver_fill(library);
    const any_function site = driver_find(library, "tollens_soft_call_site");
    memcpy(&cudart_driver_site, &site, sizeof site);
    const any_function refusal = driver_find(library, "tollens_soft_refusal");
    memcpy(&cudart_driver_refusal, &refusal, sizeof refusal);
    CUresult result = cudart_driver.cuInit.plain(0);
    if (result != CUDA_SUCCESS) return (cudaError_t)result;
    result = cudart_driver.cuDriverGetVersion.plain(&version);
    if (result != CUDA_SUCCESS) return (cudaError_t)result;
    return version / 1000 < cudart_version / 1000 ? cudaErrorInsufficientDriver : cudaSuccess;
}

static void open_once(void) {
    outcome = driver_open_driver();
}

cudaError_t cudart_driver_ready(void) {
    pthread_once(&once, open_once);
    return outcome;
}
