/*
 * The modules that were loaded and the kernels that were looked up in them. A kernel's parameters
 * are queried once, when it is looked up. The driver may give the handle of an unloaded module
 * again, so what is unloaded is forgotten.
 */
#include "watch_state.h"

#include <stdlib.h>
#include <string.h>

/* How `extra` of a launch says where its parameters are: CUDA driver API, cuLaunchKernel. */
#define EXTRA_END ((void *)0)
#define EXTRA_POINTER ((void *)1)
#define EXTRA_SIZE ((void *)2)

#define ARGUMENT(type, place) (*(type const *)call->arguments[place])

static size_t watch_kernels_place_of(const struct tol_watch *watch, CUfunction function) {
    uint64_t hash = (uint64_t)(uintptr_t)function * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 32) & (watch->kernel_room - 1);
}

/* The entry of a function, or the free one where it would be. The table is never full. */
static struct watch_kernel *watch_kernels_entry_of(const struct tol_watch *watch,
                                                   CUfunction function) {
    size_t at = watch_kernels_place_of(watch, function);
    while (watch->kernels[at].function != NULL && watch->kernels[at].function != function) {
        at = (at + 1) & (watch->kernel_room - 1);
    }
    return &watch->kernels[at];
}

struct watch_kernel *watch_kernel_find(const struct tol_watch *watch, CUfunction function) {
    if (watch->kernel_room == 0 || function == NULL) return NULL;
    struct watch_kernel *entry = watch_kernels_entry_of(watch, function);
    return entry->function != NULL ? entry : NULL;
}

/* Puts all kernels but those of a module into a table of this room. */
static bool watch_kernels_rebuild(struct tol_watch *watch, size_t room, CUmodule without) {
    struct watch_kernel *old = watch->kernels, *table = calloc(room, sizeof *table);
    const size_t old_room = watch->kernel_room;
    if (table == NULL) return false;
    watch->kernels = table;
    watch->kernel_room = room;
    atomic_fetch_add(&watch->generation, 1);
    watch->kernel_count = 0;
    for (size_t i = 0; i < old_room; i++) {
        if (old[i].function == NULL) continue;
        if (without != NULL && old[i].module == without) {
            free(old[i].bytes);
            free(old[i].name);
            continue;
        }
        *watch_kernels_entry_of(watch, old[i].function) = old[i];
        watch->kernel_count++;
    }
    free(old);
    return true;
}

/* Asks the driver for the sizes of the parameters; past the last it answers INVALID_VALUE. */
static void watch_kernels_read_parameters(struct watch_kernel *kernel,
                                          const struct tol_driver_table *driver) {
    unsigned room = 0;
    if (driver->cuFuncGetParamInfo == NULL) return;
    for (;;) {
        size_t offset = 0, bytes = 0;
        const CUresult result =
            driver->cuFuncGetParamInfo(kernel->function, kernel->count, &offset, &bytes);
        if (result == CUDA_ERROR_INVALID_VALUE) break;
        if (result != CUDA_SUCCESS || kernel->count == WATCH_WORDS) return;
        if (kernel->count == room) {
            room = room == 0 ? 16 : 2 * room;
            unsigned *more = realloc(kernel->bytes, room * sizeof *more);
            if (more == NULL) return;
            kernel->bytes = more;
        }
        kernel->bytes[kernel->count++] = (unsigned)bytes;
    }
    kernel->is_read = true;
}

static void note_module(struct tol_watch *watch, CUmodule module) {
    if (watch->module_count == watch->module_room) {
        const size_t room = watch->module_room == 0 ? 64 : 2 * watch->module_room;
        struct watch_module *more = realloc(watch->modules, room * sizeof *more);
        if (more == NULL) return; /* it is unknown then, and its launches raise alarms */
        watch->modules = more;
        watch->module_room = room;
    }
    watch->modules[watch->module_count++] = (struct watch_module){module, !watch->is_closed};
}

static bool watch_kernels_is_known(const struct tol_watch *watch, CUmodule module) {
    for (size_t i = watch->module_count; i > 0; i--) {
        if (watch->modules[i - 1].module == module) return watch->modules[i - 1].is_known;
    }
    return false;
}

/* A kernel that is looked up again keeps what was learned of it. */
static void note_function(struct tol_watch *watch, CUfunction function, CUmodule module,
                          const char *name, const struct tol_driver_table *driver) {
    if (2 * (watch->kernel_count + 1) > watch->kernel_room &&
        !watch_kernels_rebuild(watch, watch->kernel_room == 0 ? 256 : 2 * watch->kernel_room,
                               NULL)) {
        return;
    }
    struct watch_kernel *entry = watch_kernels_entry_of(watch, function);
    const bool is_same = entry->function == function && entry->module == module;
    if (entry->function == NULL) watch->kernel_count++;
    const uint64_t learned = is_same ? atomic_load(&entry->learned) : 0;
    free(entry->bytes);
    free(entry->name);
    *entry = (struct watch_kernel){.function = function,
                                   .module = module,
                                   .name = strdup(name),
                                   .is_known = watch_kernels_is_known(watch, module),
                                   .learned = learned};
    atomic_fetch_add(&watch->generation, 1);
    watch_kernels_read_parameters(entry, driver);
}

void watch_kernels_free(struct tol_watch *watch) {
    for (size_t i = 0; i < watch->kernel_room; i++) {
        free(watch->kernels[i].bytes);
        free(watch->kernels[i].name);
    }
    free(watch->kernels);
}

static void watch_kernels_forget(struct tol_watch *watch, CUmodule module) {
    size_t kept = 0;
    for (size_t i = 0; i < watch->module_count; i++) {
        if (watch->modules[i].module != module) watch->modules[kept++] = watch->modules[i];
    }
    watch->module_count = kept;
    if (watch->kernel_room != 0) watch_kernels_rebuild(watch, watch->kernel_room, module);
}

void watch_kernel_note(struct tol_watch *watch, const struct tol_interpose_call *call) {
    switch (call->index) {
    case TOL_DRIVER_INDEX_cuModuleLoadData:
    case TOL_DRIVER_INDEX_cuModuleLoadDataEx:
    case TOL_DRIVER_INDEX_cuModuleGetFunction:
    case TOL_DRIVER_INDEX_cuModuleUnload:
        break;
    default:
        return;
    }
    watch_lock_write(&watch->lock);
    if (call->index == TOL_DRIVER_INDEX_cuModuleGetFunction) {
        note_function(watch, *ARGUMENT(CUfunction *, 0), ARGUMENT(CUmodule, 1),
                      ARGUMENT(const char *, 2), call->driver);
    } else if (call->index == TOL_DRIVER_INDEX_cuModuleUnload) {
        watch_kernels_forget(watch, ARGUMENT(CUmodule, 0));
    } else {
        note_module(watch, *ARGUMENT(CUmodule *, 0));
    }
    watch_lock_write_end(&watch->lock);
}

static void words_of(const void *bytes, size_t count, void (*use)(uint64_t word, void *user),
                     void *user) {
    for (size_t at = 0; at + 8 <= count; at += 8) {
        uint64_t word;
        memcpy(&word, (const unsigned char *)bytes + at, 8);
        use(word, user);
    }
}

bool watch_kernel_words(const struct watch_kernel *kernel, const struct watch_launch *launch,
                        void (*use)(uint64_t word, void *user), void *user) {
    if (launch->extra != NULL) {
        const void *buffer = NULL;
        size_t bytes = 0;
        for (void **at = launch->extra; *at != EXTRA_END; at += 2) {
            if (*at == EXTRA_POINTER) buffer = at[1];
            if (*at == EXTRA_SIZE) bytes = *(const size_t *)at[1];
        }
        if (buffer != NULL) words_of(buffer, bytes, use, user);
        return true;
    }
    if (kernel == NULL || !kernel->is_read) return false;
    for (unsigned i = 0; i < kernel->count; i++) {
        words_of(launch->parameters[i], kernel->bytes[i], use, user);
    }
    return true;
}
