/*
 * Any driver: what the benchmarks and checks run on.
 */
#ifndef TOLLENS_ANY_DRIVER_H
#define TOLLENS_ANY_DRIVER_H

#include "tollens/driver.h"

#include <string.h>
#include <unistd.h>

/* Opens the given library; without one the platform's, or if there is none the soft device beside
 * this program. *is_soft, if not NULL, tells which. */
static inline tol_status tol_any_driver_open(const char *given, struct tol_driver **driver,
                                             bool *is_soft) {
    char path[4096] = "";
    if (is_soft != NULL) *is_soft = false;
    tol_status status = tol_driver_open(given, driver);
    if (status == TOL_OK || given != NULL) return status;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    char *slash = length > 0 ? strrchr(path, '/') : NULL;
    if (slash == NULL) return status;
    strcpy(slash, "/libtollens-soft.so");
    if (is_soft != NULL) *is_soft = true;
    return tol_driver_open(path, driver);
}

#endif
