/*
 * What an older driver lacks.
 */
#include "since.h"

#include "base/options.h"

#include <stdlib.h>

/* Called by the dynamic linker, before a sanitizer is ready. */
__attribute__((no_sanitize("address", "thread", "undefined"))) bool soft_lacks(int since) {
    const char *value = getenv("TOLLENS_SOFT_DRIVER_VERSION");
    if (value == NULL || value[0] < '0' || value[0] > '9') return false;
    int version = 0;
    for (; *value >= '0' && *value <= '9' && version <= SOFT_DRIVER_VERSION_MAX; value++) {
        version = 10 * version + (*value - '0');
    }
    if (*value != '\0' || version < SOFT_DRIVER_VERSION_MIN) return false; /* as options.c does */
    return since > version;
}
