/*
 * Records the name of each function that is looked up, and counts its launches. A reloaded module
 * may get a handle that was used before, so the last look-up of a handle counts.
 */
#include "launched.h"

#include "core/check.h"
#include "interpose.h"
#include "read_back.h"

#include <stdio.h>
#include <string.h>

enum { ENTRIES_MAX = 512 };

static struct entry {
    char name[96];
    CUfunction handle;
    size_t launches, marked; /* in all, and before the last launched_mark */
} entries[ENTRIES_MAX];
static size_t entry_count, lost;

static void launched_look_up(CUfunction handle, const char *name) {
    struct entry *entry = NULL;
    for (size_t i = 0; i < entry_count; i++) {
        if (entries[i].handle == handle) entries[i].handle = NULL;
        if (strcmp(entries[i].name, name) == 0) entry = &entries[i];
    }
    if (entry == NULL) {
        if (entry_count == ENTRIES_MAX)
            return; /* its launches count as lost, which launched_each reports */
        entry = &entries[entry_count++];
        snprintf(entry->name, sizeof entry->name, "%s", name);
    }
    entry->handle = handle;
}

static void launched_launch(CUfunction handle) {
    for (size_t i = 0; i < entry_count; i++) {
        if (entries[i].handle == handle) {
            entries[i].launches++;
            return;
        }
    }
    lost++;
}

static void launched_after(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->result != CUDA_SUCCESS) return;
    read_back_note(call);
    if (call->index == TOL_DRIVER_INDEX_cuModuleGetFunction) {
        launched_look_up(**(CUfunction *const *)call->arguments[0],
                         *(const char *const *)call->arguments[2]);
    } else if (call->index == TOL_DRIVER_INDEX_cuLaunchKernel) {
        launched_launch(*(const CUfunction *)call->arguments[0]);
    } else if (call->index == TOL_DRIVER_INDEX_cuLaunchKernelEx) {
        launched_launch(*(const CUfunction *)call->arguments[1]);
    }
}

tol_status launched_watch(struct tol_driver *driver) {
    return tol_interpose_install(driver, &(struct tol_interpose_options){.after = launched_after});
}

size_t launched_count(const char *entry) {
    size_t launches = entry == NULL ? lost : 0;
    for (size_t i = 0; i < entry_count; i++) {
        if (entry == NULL || strcmp(entries[i].name, entry) == 0) launches += entries[i].launches;
    }
    return launches;
}

void launched_each(void (*use)(const char *entry, size_t launches, void *user), void *user) {
    for (size_t i = 0; i < entry_count; i++) {
        if (entries[i].launches > 0) use(entries[i].name, entries[i].launches, user);
    }
    if (lost > 0) use("?", lost, user);
}

void launched_mark(void) {
    for (size_t i = 0; i < entry_count; i++) entries[i].marked = entries[i].launches;
}

void launched_each_since_mark(void (*use)(const char *entry, size_t launches, void *user),
                              void *user) {
    for (size_t i = 0; i < entry_count; i++) {
        const size_t launches = entries[i].launches - entries[i].marked;
        if (launches > 0) use(entries[i].name, launches, user);
    }
}
