/*
 * The exported functions, made from functions.def around their bodies, and their table.
 *
 * Functions that take a stream, or use the default one, have two variants: NAME, and NAME_ptsz or
 * NAME_ptds for programs compiled with per-thread default streams.
 */
#include "export.h"

#include "base/call_site.h"
#include "base/report.h"
#include "driver/call.h"
#include "entries.h"
#include "queue/access_tell.h"
#include "since.h"

#define BODY(body, names, own_default)                                                             \
    {                                                                                              \
        CUresult result =                                                                          \
            soft_call_begin(SOFT_CALL_##body, own_default, __builtin_return_address(0));           \
        if (result == CUDA_SUCCESS) result = soft_##body names;                                    \
        return soft_call_end(SOFT_CALL_##body, result);                                            \
    }

#define DEFINE_ALWAYS(version, name, body, parameters, names, own_default)                         \
    SOFT_VISIBLE CUresult CUDAAPI name parameters;                                                 \
    CUresult CUDAAPI name parameters BODY(body, names, own_default)

/* cuGetProcAddress returns later_NAME, and so does dlsym if the device's version has it. The symbol
 * NAME is not used in this library: the dynamic linker would look it up before this is ready. */
#define EARLY __attribute__((no_sanitize("address", "thread", "undefined"), used))
#define DEFINE_LATER(version, name, body, parameters, names, own_default)                          \
    typedef CUresult CUDAAPI name##_type parameters;                                               \
    static CUresult CUDAAPI later_##name parameters BODY(body, names, own_default)                 \
    EARLY static name##_type *find_##name(void) {                                                  \
        return soft_lacks(version) ? NULL : later_##name;                                          \
    }                                                                                              \
    SOFT_VISIBLE CUresult CUDAAPI name parameters __attribute__((ifunc("find_" #name)));

#if SOFT_HIDES_NAMES
#define IF_LATER(version, always, later) SOFT_SINCE_##version(always, later)
#else
#define IF_LATER(version, always, later) always
#endif

#define DEFINE(version, name, body, parameters, names, own_default)                                \
    IF_LATER(version, DEFINE_ALWAYS, DEFINE_LATER)                                                 \
    (version, name, body, parameters, names, own_default)
#define ENTRY(version, name) (void (*)(void)) IF_LATER(version, name, later_##name)

#define DEFINE_NONE(version, name, parameters, names)
#define DEFINE_PTDS(version, name, parameters, names)                                              \
    DEFINE(version, name##_ptds, name, parameters, names, true)
#define DEFINE_PTSZ(version, name, parameters, names)                                              \
    DEFINE(version, name##_ptsz, name, parameters, names, true)

#define SOFT_FN(thread, version, base, name, parameters, names)                                    \
    DEFINE(version, name, name, parameters, names, false)                                          \
    DEFINE_##thread(version, name, parameters, names)
#include "base/functions.def"

#define OWN_NONE(version, name) NULL, ""
#define OWN_PTDS(version, name) ENTRY(version, name##_ptds), "_ptds"
#define OWN_PTSZ(version, name) ENTRY(version, name##_ptsz), "_ptsz"

const struct soft_entry soft_entries[SOFT_CALLS] = {
#define SOFT_FN(thread, version, base, name, parameters, names)                                    \
    {#base, #name, version, ENTRY(version, name), OWN_##thread(version, name)},
#include "base/functions.def"
};

/* This name distinguishes the soft device from a driver (tol_driver_is_soft). */
extern SOFT_VISIBLE const int tollens_soft_device;
const int tollens_soft_device = 1;

/* A CUDA runtime above this device passes its call site before its first driver call, and NULL
 * after the last. */
SOFT_VISIBLE void tollens_soft_call_site(const void *site);
void tollens_soft_call_site(const void *site) {
    soft_call_site = site;
}

/* It also passes what it refuses itself, which counts as a driver function that was refused. */
SOFT_VISIBLE void tollens_soft_refusal(const char *text);
void tollens_soft_refusal(const char *text) {
    soft_refusal_add(SOFT_REFUSED_CALL, text);
}

/* For watches: tollens/accesses.h. */
SOFT_VISIBLE CUresult CUDAAPI tollens_soft_accesses(tol_accesses_hook hook, void *user);
CUresult CUDAAPI tollens_soft_accesses(tol_accesses_hook hook, void *user) {
    return soft_access_hook(hook, user);
}

/* The functions that the runtime calls: a name that is not in functions.def does not compile. */
#define TOL_DRIVER_FN(feature, name, parameters, names)                                            \
    _Static_assert((int)SOFT_CALL_##name >= 0, #name " is not exported");
#include "tollens/driver.def"
