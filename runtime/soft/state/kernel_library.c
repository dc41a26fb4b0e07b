/*
 * Loads libraries, and finds their kernels and variables in a context.
 */
#include "kernel_library.h"

#include "contexts.h"
#include "handle_set.h"
#include "image.h"
#include "base/options.h"
#include "lower/container.h"

#include <stdlib.h>
#include <string.h>

/* One lock for all libraries' lists, held while a module is loaded, so that a context gets one. It
 * is taken before soft_lock. */
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

struct soft_loaded {
    struct soft_context *context;
    struct soft_module *module;
    struct soft_loaded *next;
};

static void free_library(struct soft_library *library) {
    soft_module_release(library->prototype);
    free(library->kernels);
    free(library->image);
    free(library);
}

static CUresult load_prototype(struct soft_library *library, const void *image,
                               const struct soft_jit *jit) {
    const struct soft_reach nowhere = {.device = 0, .slot = SOFT_SLOT_NONE};
    struct soft_source *sources = NULL;
    unsigned count = 0;
    CUresult result = soft_image_sources(image, jit, &sources, &count);
    if (result == CUDA_SUCCESS) {
        result = soft_jit_load(sources, count, &nowhere, jit, &library->prototype);
    }
    if (result == CUDA_SUCCESS) {
        /* What each context loads: of a fat binary, the text for this device alone. */
        size_t bytes = 0;
        const unsigned capability = (unsigned)soft_options()->compute_capability;
        library->image = soft_container_make(sources, count, capability, &bytes);
        if (library->image == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    free(sources);
    return result;
}

static bool make_kernels(struct soft_library *library) {
    const struct soft_function *f = library->prototype->functions;
    for (; f != NULL; f = f->next) library->kernel_count++;
    library->kernels = calloc(library->kernel_count + 1, sizeof *library->kernels);
    if (library->kernels == NULL) return false;
    unsigned i = 0;
    for (f = library->prototype->functions; f != NULL; f = f->next) {
        struct soft_library_kernel *kernel = &library->kernels[i++];
        kernel->library = library;
        kernel->prototype = f;
        for (int d = 0; d < SOFT_DEVICES_MAX; d++) {
            kernel->dynamic_shared_max[d] = f->dynamic_shared_max;
            kernel->carveout[d] = -1;
        }
    }
    return true;
}

static void kernel_library_remove_handles(const struct soft_library *library) {
    soft_handle_remove(SOFT_HANDLE_LIBRARY, library);
    for (unsigned i = 0; i < library->kernel_count; i++) {
        soft_handle_remove(SOFT_HANDLE_KERNEL, &library->kernels[i]);
    }
}

static bool kernel_library_add_handles(const struct soft_library *library) {
    pthread_mutex_lock(&soft_lock);
    bool ok = soft_handle_add(SOFT_HANDLE_LIBRARY, library);
    for (unsigned i = 0; i < library->kernel_count && ok; i++) {
        ok = soft_handle_add(SOFT_HANDLE_KERNEL, &library->kernels[i]);
    }
    if (!ok) kernel_library_remove_handles(library);
    pthread_mutex_unlock(&soft_lock);
    return ok;
}

CUresult soft_library_load(const void *image, const struct soft_jit *jit,
                           struct soft_library **result) {
    struct soft_library *library = calloc(1, sizeof *library);
    if (library == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult loaded = load_prototype(library, image, jit);
    if (loaded == CUDA_SUCCESS &&
        (!make_kernels(library) || !kernel_library_add_handles(library))) {
        loaded = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (loaded != CUDA_SUCCESS) {
        free_library(library);
        return loaded;
    }
    *result = library;
    return CUDA_SUCCESS;
}

void soft_library_unload(struct soft_library *library) {
    pthread_mutex_lock(&library_lock);
    pthread_mutex_lock(&soft_lock);
    kernel_library_remove_handles(library);
    struct soft_loaded *loaded = library->loaded;
    library->loaded = NULL;
    for (const struct soft_loaded *l = loaded; l != NULL; l = l->next) l->module->library = NULL;
    pthread_mutex_unlock(&soft_lock);
    while (loaded != NULL) {
        struct soft_loaded *next = loaded->next;
        soft_image_unload(loaded->context, loaded->module);
        free(loaded);
        loaded = next;
    }
    pthread_mutex_unlock(&library_lock);
    free_library(library);
}

void soft_library_forget(struct soft_library *library, const struct soft_module *module) {
    for (struct soft_loaded **link = &library->loaded; *link != NULL; link = &(*link)->next) {
        struct soft_loaded *loaded = *link;
        if (loaded->module != module) continue;
        *link = loaded->next;
        free(loaded);
        return;
    }
}

/* The existing module of a context. The caller holds soft_lock. */
static struct soft_module *find_module(const struct soft_library *library,
                                       const struct soft_context *context) {
    const struct soft_loaded *loaded = library->loaded;
    while (loaded != NULL && loaded->context != context) loaded = loaded->next;
    return loaded != NULL ? loaded->module : NULL;
}

/* The attributes of the kernels on the context's device apply to the new functions. */
static void take_settings(const struct soft_library *library, struct soft_module *module) {
    for (unsigned i = 0; i < library->kernel_count; i++) {
        const struct soft_library_kernel *kernel = &library->kernels[i];
        struct soft_function *f = soft_module_kernel(module, kernel->prototype->code->name);
        if (f == NULL) continue;
        f->dynamic_shared_max = kernel->dynamic_shared_max[module->device];
        f->clusters = kernel->clusters[module->device];
    }
}

static CUresult load_into(struct soft_library *library, struct soft_context *context,
                          struct soft_module **module) {
    struct soft_jit jit = {.image_bytes = SIZE_MAX};
    struct soft_loaded *loaded = calloc(1, sizeof *loaded);
    if (loaded == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = soft_image_load(context, library->image, &jit, module);
    if (result != CUDA_SUCCESS) {
        free(loaded);
        return result;
    }
    take_settings(library, *module);
    pthread_mutex_lock(&soft_lock);
    (*module)->library = library;
    *loaded = (struct soft_loaded){context, *module, library->loaded};
    library->loaded = loaded;
    pthread_mutex_unlock(&soft_lock);
    return CUDA_SUCCESS;
}

CUresult soft_library_module(struct soft_library *library, struct soft_context *context,
                             struct soft_module **module) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&library_lock);
    pthread_mutex_lock(&soft_lock);
    *module = find_module(library, context);
    pthread_mutex_unlock(&soft_lock);
    if (*module == NULL) result = load_into(library, context, module);
    pthread_mutex_unlock(&library_lock);
    return result;
}

static CUresult function_in(const struct soft_module *module,
                            const struct soft_library_kernel *kernel,
                            struct soft_function **function) {
    *function = soft_module_kernel(module, kernel->prototype->code->name);
    return *function != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult soft_library_function(struct soft_library_kernel *kernel, struct soft_context *context,
                               struct soft_function **function) {
    struct soft_module *module = NULL;
    CUresult result = soft_library_module(kernel->library, context, &module);
    return result == CUDA_SUCCESS ? function_in(module, kernel, function) : result;
}

void soft_library_allow_shared(struct soft_library_kernel *kernel, int device, uint32_t bytes) {
    pthread_mutex_lock(&soft_lock);
    kernel->dynamic_shared_max[device] = bytes;
    for (const struct soft_loaded *l = kernel->library->loaded; l != NULL; l = l->next) {
        if (l->module->device != device) continue;
        struct soft_function *f = soft_module_kernel(l->module, kernel->prototype->code->name);
        if (f != NULL && !f->is_set) f->dynamic_shared_max = bytes;
    }
    pthread_mutex_unlock(&soft_lock);
}

void soft_library_set_clusters(struct soft_library_kernel *kernel, int device,
                               const struct soft_cluster_settings *clusters) {
    pthread_mutex_lock(&soft_lock);
    kernel->clusters[device] = *clusters;
    for (const struct soft_loaded *l = kernel->library->loaded; l != NULL; l = l->next) {
        if (l->module->device != device) continue;
        struct soft_function *f = soft_module_kernel(l->module, kernel->prototype->code->name);
        if (f != NULL) f->clusters = *clusters;
    }
    pthread_mutex_unlock(&soft_lock);
}

CUresult soft_function_find_locked(CUfunction handle, struct soft_context *context,
                                   struct soft_function **function) {
    if (soft_handle_is(SOFT_HANDLE_FUNCTION, handle)) {
        *function = (struct soft_function *)handle;
        return CUDA_SUCCESS;
    }
    if (!soft_handle_is(SOFT_HANDLE_KERNEL, handle)) return CUDA_ERROR_INVALID_HANDLE;
    struct soft_library_kernel *kernel = (struct soft_library_kernel *)handle;
    const struct soft_module *module = find_module(kernel->library, context);
    if (module != NULL) return function_in(module, kernel, function);
    pthread_mutex_unlock(&soft_lock);
    CUresult result = soft_library_function(kernel, context, function);
    pthread_mutex_lock(&soft_lock);
    return result;
}

CUresult soft_function_find(CUfunction handle, struct soft_context *context,
                            struct soft_function **function) {
    pthread_mutex_lock(&soft_lock);
    CUresult result = soft_function_find_locked(handle, context, function);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

struct soft_context *soft_function_home(CUfunction handle) {
    struct soft_context *context = NULL;
    pthread_mutex_lock(&soft_lock);
    if (soft_handle_is(SOFT_HANDLE_FUNCTION, handle)) {
        context = soft_context_of(((struct soft_function *)handle)->module->slot);
    }
    pthread_mutex_unlock(&soft_lock);
    return context;
}
