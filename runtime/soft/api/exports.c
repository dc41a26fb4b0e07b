/*
 * The exported functions, made from functions.def around their bodies, and their table.
 *
 * Functions that take a stream, or use the default one, come in two: NAME, and NAME_ptsz or
 * NAME_ptds, which programs get that were compiled for per-thread default streams.
 */
#include "export.h"

#include "driver/call.h"
#include "entries.h"

#define DEFINE(name, body, parameters, names, own_default)                                         \
    SOFT_VISIBLE CUresult CUDAAPI name parameters;                                                 \
    CUresult CUDAAPI name parameters {                                                             \
        CUresult result = soft_call_begin(SOFT_CALL_##body, own_default);                          \
        if (result == CUDA_SUCCESS) result = soft_##body names;                                    \
        return soft_call_end(SOFT_CALL_##body, result);                                            \
    }
#define DEFINE_NONE(name, parameters, names)
#define DEFINE_PTDS(name, parameters, names) DEFINE(name##_ptds, name, parameters, names, true)
#define DEFINE_PTSZ(name, parameters, names) DEFINE(name##_ptsz, name, parameters, names, true)

#define SOFT_FN(thread, version, base, name, parameters, names)                                    \
    DEFINE(name, name, parameters, names, false)                                                   \
    DEFINE_##thread(name, parameters, names)
#include "base/functions.def"

#define OWN_NONE(name) NULL, ""
#define OWN_PTDS(name) (void (*)(void)) name##_ptds, "_ptds"
#define OWN_PTSZ(name) (void (*)(void)) name##_ptsz, "_ptsz"

const struct soft_entry soft_entries[SOFT_CALLS] = {
#define SOFT_FN(thread, version, base, name, parameters, names)                                    \
    {#base, #name, version, (void (*)(void))name, OWN_##thread(name)},
#include "base/functions.def"
};

/* What the runtime calls: a name that is not exported does not link. */
typedef void exported(void);
extern exported *const soft_of_runtime[];
exported *const soft_of_runtime[] = {
#define TOL_DRIVER_FN(feature, name, parameters, names) (exported *)name,
#include "tollens/driver.def"
};
