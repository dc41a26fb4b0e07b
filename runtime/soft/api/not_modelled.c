/*
 * Functions that are not modelled. They read no argument, so all have the same body; the calling
 * conventions of this library's platforms let a function ignore its arguments.
 */
#include "not_modelled.h"

#include "export.h"
#include "base/report.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_bool told[SOFT_OTHERS];

/* The newest modelled variant of a function; NULL: there is none. */
static const char *not_modelled_newer(const struct soft_entry *old) {
    const struct soft_entry *best = NULL;
    for (int i = 0; i < SOFT_CALLS; i++) {
        const struct soft_entry *entry = &soft_entries[i];
        if (strcmp(entry->base, old->base) != 0 || entry->version <= old->version) continue;
        if (best == NULL || entry->version > best->version) best = entry;
    }
    return best != NULL ? best->name : NULL;
}

static CUresult not_modelled_refuse(int index) {
    char text[256];
    if (!atomic_exchange(&told[index], true)) {
        const struct soft_entry *entry = &soft_other_entries[index];
        const char *other = not_modelled_newer(entry);
        snprintf(text, sizeof text,
                 "%s is not modelled and answers CUDA_ERROR_NOT_SUPPORTED%s%s%s\n", entry->name,
                 other != NULL ? "; " : "", other != NULL ? other : "", other != NULL ? " is" : "");
        soft_log_print(text);
        soft_refusal_add(SOFT_REFUSED_CALL, text);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

#define DEFINE(name, index)                                                                        \
    SOFT_VISIBLE CUresult CUDAAPI name(void);                                                      \
    CUresult CUDAAPI name(void) {                                                                  \
        return not_modelled_refuse(index);                                                         \
    }
#define OWN_NONE(name, index)
#define OWN_PTDS(name, index) DEFINE(name##_ptds, index)
#define OWN_PTSZ(name, index) DEFINE(name##_ptsz, index)
#define SOFT_NAME(thread, version, base, suffix)                                                   \
    DEFINE(base##suffix, SOFT_OTHER_##base##suffix)                                                \
    OWN_##thread(base##suffix, SOFT_OTHER_##base##suffix)
#include "base/functions_other.def"
#undef OWN_NONE
#undef OWN_PTDS
#undef OWN_PTSZ

#define OWN_NONE(name) NULL, ""
#define OWN_PTDS(name) FUNCTION(name##_ptds), "_ptds"
#define OWN_PTSZ(name) FUNCTION(name##_ptsz), "_ptsz"

#define FUNCTION(name) (void (*)(void)) name
const struct soft_entry soft_other_entries[SOFT_OTHERS] = {
#define SOFT_NAME(thread, version, base, suffix)                                                   \
    {#base, #base #suffix, version, FUNCTION(base##suffix), OWN_##thread(base##suffix)},
#include "base/functions_other.def"
};
