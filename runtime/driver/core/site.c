/*
 * What the dynamic linker knows about an address.
 */
#include "site.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

const char *tol_site_text(const void *site, char text[TOL_SITE_BYTES]) {
    Dl_info info;
    if (site == NULL || dladdr(site, &info) == 0 || info.dli_fname == NULL) {
        snprintf(text, TOL_SITE_BYTES, "%p", site);
        return text;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash != NULL ? slash + 1 : info.dli_fname;
    uintptr_t at = (uintptr_t)site, base = (uintptr_t)info.dli_fbase;
    if (info.dli_sname != NULL) {
        snprintf(text, TOL_SITE_BYTES, "%.90s+%#zx (%.60s+%#zx)", info.dli_sname,
                 (size_t)(at - (uintptr_t)info.dli_saddr), file, (size_t)(at - base));
    } else {
        snprintf(text, TOL_SITE_BYTES, "%.60s+%#zx", file, (size_t)(at - base));
    }
    return text;
}
