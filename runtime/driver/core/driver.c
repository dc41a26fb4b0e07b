/*
 * Opening a libcuda: find the library, fill the table from driver.def, refuse what is too old.
 */
#include "tollens/driver.h"

#include "check.h"
#include "libcuda_state.h"
#include "library.h"
#include "nvtx.h"
#include "tollens/plain_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const function_names[] = {
#define TOL_DRIVER_FN(feature, name, parameters, names) #name,
#include "tollens/driver.def"
};

/* Opens the first library of the list that loads; all the loader's reasons go into the message. */
static tol_status open_first(const char *const *names, void **library, char *path, size_t bytes) {
    char reasons[1024] = "";
    for (; *names != NULL; names++) {
        char reason[256];
        *library = tol_library_open(*names, reason, sizeof reason);
        if (*library != NULL) {
            snprintf(path, bytes, "%s", *names);
            return TOL_OK;
        }
        size_t used = strlen(reasons);
        snprintf(reasons + used, sizeof reasons - used, "%s%s", used > 0 ? "; " : "", reason);
    }
    return tol_fail(__FILE__, __LINE__, TOL_NO_LIBRARY,
                    "no CUDA driver library could be loaded: %s", reasons);
}

/* Fills the table. A missing CORE function fails; any other only switches its feature off. */
static tol_status driver_fill_table(void *library, struct tol_driver *driver) {
    tol_status status = TOL_OK;
    const char *first_missing = NULL;
    int missing = 0;
    for (int i = 0; i < TOL_FEATURE_COUNT; i++) driver->has[i] = true;

#define TOL_DRIVER_FN(feature, name, parameters, names)                                            \
    if (!tol_library_find(library, #name, &driver->table.name, sizeof driver->table.name)) {       \
        driver->has[TOL_FEATURE_##feature] = false;                                                \
        if (TOL_FEATURE_##feature == TOL_FEATURE_CORE && missing++ == 0) first_missing = #name;    \
    }
#include "tollens/driver.def"

    TOL_CHECK(missing == 0, TOL_NO_SYMBOL,
              "%s lacks the required function %s (%d required functions are missing in total); is "
              "it a CUDA driver of version 525.60 or newer?",
              driver->path, first_missing, missing);
out:
    return status;
}

static tol_status check_and_init(struct tol_driver *driver) {
    tol_status status = TOL_OK;
    TOL_CU(&driver->table, cuDriverGetVersion, (&driver->version), "getting the version of %s",
           driver->path);
    TOL_CHECK(driver->version >= TOL_DRIVER_VERSION_MIN, TOL_DRIVER_TOO_OLD,
              "%s supports CUDA %d.%d; CUDA %d.%d (driver 525.60) or newer is required",
              driver->path, driver->version / 1000, driver->version % 1000 / 10,
              TOL_DRIVER_VERSION_MIN / 1000, TOL_DRIVER_VERSION_MIN % 1000 / 10);
    TOL_CU(&driver->table, cuInit, (0), "initialising %s", driver->path);
out:
    return status;
}

static tol_status driver_open_library(const char *const *names, struct tol_driver **result) {
    tol_status status = TOL_OK;
    struct tol_driver *driver = calloc(1, sizeof *driver);
    void *library = NULL;
    TOL_CHECK(driver != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a driver table of %zu bytes", sizeof *driver);
    atomic_init(&driver->references, 1);
    pthread_mutex_init(&driver->lock, NULL);
    pthread_mutex_init(&driver->log_lock, NULL);
    TOL_TRY(open_first(names, &library, driver->path, sizeof driver->path));
    TOL_TRY(driver_fill_table(library, driver));
    TOL_TRY(check_and_init(driver));
    driver->is_soft = tol_library_has(library, "tollens_soft_device");
    (void)tol_library_find(library, TOL_ACCESSES_NAME, &driver->tell_accesses,
                           sizeof driver->tell_accesses);
    driver->functions = &driver->table;

    *result = driver;
    driver = NULL;
out:
    tol_driver_close(driver);
    return status;
}

static tol_status open_soft(const char *path, struct tol_driver **result) {
    static const char name[] = "libtollens-soft.so";
    char beside[4096] = "", reason[600], soft_reason[600];
    const char *names[] = {path, NULL, NULL};
    if (path == NULL && tol_library_beside(name, beside, sizeof beside)) names[0] = beside;
    names[names[0] != NULL] = path == NULL ? name : NULL;
    snprintf(reason, sizeof reason, "%s", tol_message());
    struct tol_driver *driver = NULL;
    tol_status status = driver_open_library(names, &driver);
    const bool is_another = status == TOL_OK && !tol_driver_is_soft(driver);
    if (is_another) {
        status =
            tol_fail(__FILE__, __LINE__, TOL_NO_SYMBOL, "%s is not the soft device", driver->path);
        tol_driver_close(driver);
    }
    if (status != TOL_OK) {
        snprintf(soft_reason, sizeof soft_reason, "%s", tol_message());
        return tol_fail(__FILE__, __LINE__, status,
                        "no device (%s), and the soft device cannot be opened either: %s", reason,
                        soft_reason);
    }
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&said)) {
        tol_plain_print(stderr,
                        "tollens: using the soft device %s, which runs kernels on the CPU: %s\n",
                        driver->path, reason);
    }
    *result = driver;
    return TOL_OK;
}

tol_status tol_driver_open_with(const struct tol_driver_options *options,
                                struct tol_driver **result) {
    static const struct tol_driver_options none;
    tol_status status = TOL_OK;
    if (options == NULL) options = &none;
    const char *path = options->path != NULL ? options->path : getenv("TOLLENS_LIBCUDA");
    const char *fallback = getenv("TOLLENS_FALLBACK");
    const bool allowed = options->allow_soft || (fallback != NULL && strcmp(fallback, "soft") == 0);
    const bool named = path != NULL && path[0] != '\0';
    const char *const only[] = {path, NULL};
    TOL_CHECK(result != NULL, TOL_INVALID_ARGUMENT, "tol_driver_open: result is NULL");
    tol_nvtx_open();
    status = driver_open_library(named ? only : tol_library_names(), result);
    if (named || (status != TOL_NO_LIBRARY && status != TOL_NO_DEVICE)) return status;
    if (allowed) status = open_soft(options->soft_path, result);
out:
    return status;
}

tol_status tol_driver_open(const char *path, struct tol_driver **driver) {
    return tol_driver_open_with(&(struct tol_driver_options){.path = path}, driver);
}

void tol_driver_close(struct tol_driver *driver) {
    if (driver == NULL || atomic_fetch_sub(&driver->references, 1) != 1) return;
    pthread_mutex_destroy(&driver->lock);
    pthread_mutex_destroy(&driver->log_lock);
    free(driver);
}

const struct tol_driver_table *tol_driver_functions(const struct tol_driver *driver) {
    return driver->functions;
}

bool tol_driver_has(const struct tol_driver *driver, tol_feature feature) {
    return (int)feature >= 0 && feature < TOL_FEATURE_COUNT && driver->has[feature];
}

int tol_driver_version(const struct tol_driver *driver) {
    return driver->version;
}

bool tol_driver_is_soft(const struct tol_driver *driver) {
    return driver->is_soft;
}

const char *tol_driver_path(const struct tol_driver *driver) {
    return driver->path;
}

const char *tol_driver_function_name(enum tol_driver_index index) {
    if ((int)index < 0 || index >= TOL_DRIVER_FUNCTIONS) return NULL;
    return function_names[index];
}
