/*
 * Image: PTX after reading and lowering, with its variables in device memory.
 *
 * A module has one input, or several that were linked; each input is a unit.
 */
#ifndef SOFT_LOADED_MODULE_H
#define SOFT_LOADED_MODULE_H

#include "base/arena.h"
#include "base/crew.h"
#include "code.h"
#include "link.h"
#include "base/report.h"
#include "memory/space.h"
#include "ptx/unit.h"

#include <pthread.h>
#include <stdatomic.h>

struct soft_module {
    struct soft_arena arena;                 /* holds all below, with: */
    struct soft_share shares[SOFT_CREW_MAX]; /* of the threads that load it */
    struct soft_arena codes; /* for code that is completed later; guarded by completing */
    pthread_mutex_t completing;
    void (*hook)(const struct soft_code *code); /* called with each completed code; or NULL */
    struct soft_unit *units;
    unsigned unit_count;
    int device;
    uint64_t variable_bytes; /* of its variables, up to the device's memory */
    unsigned slot;           /* of the context that it was loaded in */
    atomic_int references;   /* the handle, and every launch that has not ended */
    uint32_t sites;
    struct soft_linked linked;
    struct soft_function *functions; /* the handles given out, by entry */
    struct soft_module *next;        /* in the context's list */
    void *library;                   /* that loaded it, or NULL */
};

/* What a CUfunction points to. */
/* The cluster attributes of cuFuncSetAttribute. */
struct soft_cluster_settings {
    bool large;           /* they may have more blocks than the portable size */
    int policy;           /* a hint */
    uint32_t required[3]; /* blocks; 0: the launch says */
};

struct soft_function {
    struct soft_module *module;
    const struct soft_unit *unit;
    struct ptx_function *ptx;
    const struct soft_code *code; /* perhaps not complete */
    uint32_t dynamic_shared_max;  /* as allowed by cuFuncSetAttribute */
    bool is_set;                  /* by that, so that it overrides the library's kernel */
    bool is_launched;             /* at least once; guarded by soft_lock */
    int carveout, cache_config;
    struct soft_old_launch *old; /* of the module's arena; NULL until it is set */
    struct soft_cluster_settings clusters;
    struct soft_function *next;
};

/* The function's state for launches before CUDA 4: cuFuncSetBlockShape and cuParamSet*. */
enum { SOFT_OLD_PARAMETER_BYTES = 4096 };
struct soft_old_launch {
    unsigned block[3], shared;
    size_t bytes; /* of the parameters */
    unsigned char parameters[SOFT_OLD_PARAMETER_BYTES];
};

/* Where a loading says what went wrong. */
struct soft_load_log {
    char *text; /* always terminated */
    size_t bytes;
};

/* Reads and lowers texts and places their variables in the memory of a context. Returns a CUresult;
 * on failure the log holds the diagnostic, and nothing is kept. */
int soft_module_load(const struct soft_source *sources, unsigned count,
                     const struct soft_reach *home, struct soft_module **module,
                     const struct soft_load_log *log);

/* Completes the code of a kernel and of its callees, unless done before. Thread-safe. false: the
 * host is out of memory. */
bool soft_module_complete(const struct soft_function *function);

/* Releases a reference; the last one frees the module and its variables. */
void soft_module_release(struct soft_module *module);

/* The kernel of a name, or NULL. */
struct soft_function *soft_module_kernel(const struct soft_module *module, const char *name);

/* The module's global or constant variable with a name, or NULL. */
const struct ptx_variable *soft_module_variable(const struct soft_module *module, const char *name);

/* The completed code of the function at an address; NULL if there is none, or no memory to complete
 * it. Kernels do not count. */
const struct soft_code *soft_module_function(struct soft_module *module, uint64_t address);

/* Fills in the instruction and the source line of a report. */
void soft_module_describe(const struct soft_module *module, const struct soft_code *code,
                          const struct soft_instruction *instruction, struct soft_report *report);

#endif
