/*
 * Images, kernels and variables, in a table of host addresses.
 *
 * Source: fatbinary_section.h, the wrapper of an image; crt/host_runtime.h, what is registered.
 */
#include "cudart_registry.h"
#include "cudart_version.h"

#include "cudart_link.h"
#include "cudart_thread.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

struct cudart_image {
    const struct cudart_wrapper *wrapper;
    CUlibrary library;
    bool loaded;         /* or it was tried */
    cudaError_t failure; /* of loading */
    struct cudart_image *next;
};

enum symbol_kind { EMPTY, REMOVED, KERNEL, VARIABLE, MANAGED };

struct symbol {
    const void *host;
    enum symbol_kind kind;
    struct cudart_image *image; /* NULL: of a library that the program loaded */
    const char *name;
    size_t bytes;
    CUlibrary library;
    CUkernel kernel;
};

/* Open addressing; a power of two of slots, at most half of them in use or removed. */
static struct symbol *symbols;
static size_t slots, used;
static struct cudart_image *images;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t registry_slot_of(const void *host) {
    return (size_t)((uintptr_t)host * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (slots - 1);
}

static struct symbol *registry_find(const void *host) {
    if (slots == 0) return NULL;
    for (size_t i = registry_slot_of(host); symbols[i].kind != EMPTY; i = (i + 1) & (slots - 1)) {
        if (symbols[i].host == host && symbols[i].kind != REMOVED) return &symbols[i];
    }
    return NULL;
}

static void registry_put(const struct symbol *symbol) {
    size_t i = registry_slot_of(symbol->host);
    while (symbols[i].kind != EMPTY) i = (i + 1) & (slots - 1);
    symbols[i] = *symbol;
    used++;
}

static bool registry_grow(void) {
    const size_t old_slots = slots;
    struct symbol *old = symbols, *more = calloc(slots == 0 ? 64 : slots * 2, sizeof *more);
    if (more == NULL) return false;
    symbols = more;
    slots = old_slots == 0 ? 64 : old_slots * 2;
    used = 0;
    for (size_t i = 0; i < old_slots; i++) {
        if (old[i].kind > REMOVED) registry_put(&old[i]);
    }
    free(old);
    return true;
}

/* Without memory the symbol remains unknown, and its use is refused. */
static void registry_add(const struct symbol *symbol) {
    pthread_mutex_lock(&lock);
    struct symbol *known = registry_find(symbol->host);
    if (known != NULL) {
        *known = *symbol;
    } else if (used * 2 < slots || registry_grow()) {
        registry_put(symbol);
    }
    pthread_mutex_unlock(&lock);
}

struct cudart_image *cudart_image_add(const void *wrapper) {
    struct cudart_image *image = calloc(1, sizeof *image);
    if (image == NULL) return NULL;
    image->wrapper = wrapper;
    pthread_mutex_lock(&lock);
    image->next = images;
    images = image;
    pthread_mutex_unlock(&lock);
    return image;
}

/* Drops a library, whose kernels are looked up again if they are used. The lock is held. */
static void registry_unload(struct cudart_image *image) {
    for (size_t i = 0; i < slots; i++) {
        if (symbols[i].kind == KERNEL && symbols[i].image == image) symbols[i].kernel = NULL;
    }
    if (image->library != NULL) (void)cudart_driver.cuLibraryUnload.plain(image->library);
    image->library = NULL;
    image->loaded = false;
}

/* The program unregisters its images after the driver's exit, which would report them as live. */
static void registry_at_exit(void) {
    pthread_mutex_lock(&lock);
    for (struct cudart_image *image = images; image != NULL; image = image->next)
        registry_unload(image);
    pthread_mutex_unlock(&lock);
}

void cudart_image_remove(struct cudart_image *image) {
    if (image == NULL) return;
    pthread_mutex_lock(&lock);
    registry_unload(image);
    for (size_t i = 0; i < slots; i++) {
        if (symbols[i].kind > REMOVED && symbols[i].image == image) symbols[i].kind = REMOVED;
    }
    struct cudart_image **link = &images;
    while (*link != NULL && *link != image) link = &(*link)->next;
    if (*link != NULL) *link = image->next;
    pthread_mutex_unlock(&lock);
    free(image);
}

void cudart_kernel_add(struct cudart_image *image, const void *host, const char *name) {
    registry_add(&(struct symbol){.host = host, .kind = KERNEL, .image = image, .name = name});
}

void cudart_variable_add(struct cudart_image *image, const void *host, const char *name,
                         size_t bytes) {
    registry_add(&(struct symbol){
        .host = host, .kind = VARIABLE, .image = image, .name = name, .bytes = bytes});
}

/* The program's symbol of a managed variable is a pointer, which is NULL until the program
 * starts. */
void cudart_managed_add(struct cudart_image *image, void **pointer, const char *name,
                        size_t bytes) {
    registry_add(&(struct symbol){
        .host = pointer, .kind = MANAGED, .image = image, .name = name, .bytes = bytes});
}

void cudart_kernel_know(CUkernel kernel, CUlibrary library) {
    registry_add(
        &(struct symbol){.host = kernel, .kind = KERNEL, .library = library, .kernel = kernel});
}

void cudart_library_forget(CUlibrary library) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < slots; i++) {
        if (symbols[i].kind == KERNEL && symbols[i].image == NULL &&
            symbols[i].library == library) {
            symbols[i].kind = REMOVED;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* The library of an image; the lock is held. */
static cudaError_t registry_load(struct cudart_image *image) {
    static bool watched;
    if (image->loaded) return image->failure;
    image->failure = cudart_link(image->wrapper, &image->library);
    image->loaded = true;
    if (!watched)
        watched = atexit(registry_at_exit) == 0; /* after the driver's, so it comes before */
    return image->failure;
}

/* CUDA 13 treats an unregistered address as an invalid handle, as its cudaFuncSetAttribute reports
 * (fixtures/cudart/README.md). */
static cudaError_t not_a_kernel(void) {
    return cudart_version < 13000 ? cudaErrorInvalidDeviceFunction : cudaErrorInvalidResourceHandle;
}

/* The lock is held. */
static cudaError_t registry_kernel_of(struct symbol *symbol, CUkernel *kernel) {
    if (symbol == NULL || symbol->kind != KERNEL) return not_a_kernel();
    if (symbol->kernel == NULL) {
        cudaError_t error = registry_load(symbol->image);
        if (error != cudaSuccess) return error;
        CUresult result =
            CU(cuLibraryGetKernel)(&symbol->kernel, symbol->image->library, symbol->name);
        if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
        if (result != CUDA_SUCCESS) return (cudaError_t)result;
    }
    *kernel = symbol->kernel;
    return cudaSuccess;
}

cudaError_t cudart_kernel(const void *host, CUkernel *kernel) {
    pthread_mutex_lock(&lock);
    cudaError_t error = registry_kernel_of(registry_find(host), kernel);
    pthread_mutex_unlock(&lock);
    return error;
}

cudaError_t cudart_function(const void *host, CUfunction *function) {
    CUkernel kernel = NULL;
    cudaError_t error = cudart_kernel(host, &kernel);
    return error != cudaSuccess ? error : (cudaError_t)CU(cuKernelGetFunction)(function, kernel);
}

/* Whether this symbol is the kernel, or its function in the current context. */
static bool registry_is_kernel(const struct symbol *symbol, CUkernel kernel, CUfunction function) {
    CUfunction own = NULL;
    if (symbol->kind != KERNEL || symbol->kernel == NULL) return false;
    if (symbol->kernel == kernel || (CUfunction)symbol->kernel == function) return true;
    return CU(cuKernelGetFunction)(&own, symbol->kernel) == CUDA_SUCCESS && own == function;
}

void *cudart_kernel_host(CUkernel kernel, CUfunction function) {
    void *host = kernel;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < slots; i++) {
        if (!registry_is_kernel(&symbols[i], kernel, function)) continue;
        host = (void *)(uintptr_t)symbols[i].host;
        break;
    }
    pthread_mutex_unlock(&lock);
    return host;
}

static cudaError_t registry_address_of(struct symbol *symbol, CUdeviceptr *address, size_t *bytes) {
    if (symbol == NULL || symbol->kind == KERNEL) return cudaErrorInvalidSymbol;
    cudaError_t error = registry_load(symbol->image);
    if (error != cudaSuccess) return error;
    CUresult result =
        symbol->kind == MANAGED
            ? CU(cuLibraryGetManaged)(address, bytes, symbol->image->library, symbol->name)
            : CU(cuLibraryGetGlobal)(address, bytes, symbol->image->library, symbol->name);
    return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : (cudaError_t)result;
}

cudaError_t cudart_variable(const void *host, CUdeviceptr *address, size_t *bytes) {
    size_t ignored = 0;
    pthread_mutex_lock(&lock);
    cudaError_t error =
        registry_address_of(registry_find(host), address, bytes != NULL ? bytes : &ignored);
    pthread_mutex_unlock(&lock);
    return error;
}

cudaError_t cudart_image_begin(struct cudart_image *image) {
    cudaError_t error = cudaSuccess;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < slots && error == cudaSuccess; i++) {
        CUdeviceptr address = 0;
        size_t bytes = 0;
        if (symbols[i].kind != MANAGED || symbols[i].image != image) continue;
        error = registry_address_of(&symbols[i], &address, &bytes);
        if (error != cudaSuccess) continue;
        *(void **)(uintptr_t)symbols[i].host = (void *)(uintptr_t)address;
    }
    pthread_mutex_unlock(&lock);
    return error;
}
