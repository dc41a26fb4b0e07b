/*
 * Takes the address of every function in driver.def: one that is not defined is
 * a link error here. */
#include "export.h"

#include <stddef.h>

struct soft_export {
    const char *name;
    void (*function)(void);
};

extern const struct soft_export soft_exports[];

const struct soft_export soft_exports[] = {
#define TOL_DRIVER_FN(feature, name, parameters, names) {#name, (void (*)(void))name},
#include "../driver.def"
    {NULL, NULL},
};
