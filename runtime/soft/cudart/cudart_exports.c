/*
 * The exported functions, made from cudart_functions.def around their bodies. Compiled once for
 * each library, with CUDART_MAJOR.
 */
#include "cudart_edition.h"
#include "cudart_export.h"
#include "cudart_not_modelled.h"
#include "cudart_version.h"

#define CALL(body, names, own_default)                                                             \
    {                                                                                              \
        cudart_begin(own_default, __builtin_return_address(0));                                    \
        return cudart_end(cudart_##body names);                                                    \
    }
#define DEFINE(name, body, parameters, names, own_default)                                         \
    CUDART_VISIBLE cudaError_t name parameters;                                                    \
    cudaError_t name parameters CALL(body, names, own_default)

#define DEFINE_NONE(name, body, parameters, names) DEFINE(name, body, parameters, names, false)
#define DEFINE_PTDS(name, body, parameters, names)                                                 \
    DEFINE(name, body, parameters, names, false)                                                   \
    DEFINE(name##_ptds, body, parameters, names, true)
#define DEFINE_PTSZ(name, body, parameters, names)                                                 \
    DEFINE(name, body, parameters, names, false)                                                   \
    DEFINE(name##_ptsz, body, parameters, names, true)

const int cudart_version = CUDART_MAJOR == 12 ? 12090 : 13000;

#define CUDART_FN(versions, thread, name, parameters, names)                                       \
    CUDART_IN_##versions(DEFINE_##thread(name, name, parameters, names))
#define CUDART_AS(versions, thread, name, body, parameters, names)                                 \
    CUDART_IN_##versions(DEFINE_##thread(name, body, parameters, names))
#include "cudart_functions.def"

/* ---- what is not modelled ---- */

#define REFUSE(name)                                                                               \
    CUDART_VISIBLE cudaError_t name(void);                                                         \
    cudaError_t name(void) {                                                                       \
        static atomic_bool told;                                                                   \
        return cudart_end(cudart_not_modelled(#name, &told));                                      \
    }
#define REFUSE_NONE(name) REFUSE(name)
#define REFUSE_PTDS(name) REFUSE(name) REFUSE(name##_ptds)
#define REFUSE_PTSZ(name) REFUSE(name) REFUSE(name##_ptsz)
#define CUDART_NAME(versions, thread, name) CUDART_IN_##versions(REFUSE_##thread(name))
#include "cudart_other.def"
