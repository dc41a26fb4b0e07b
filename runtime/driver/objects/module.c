/*
 * Modules: loads an image once per context, and resolves a name to a kernel once per module.
 *
 * Two caches. The context lists its modules, found again by the content of their image; the module
 * keeps its kernels in a small hash table whose chains only ever grow at the front, so that a
 * lookup needs no lock.
 */
#include "tollens/module.h"

#include "core/check.h"
#include "core/nvtx.h"
#include "buffer_state.h"
#include "core/module_state.h"
#include "core/deep.h"
#include "core/planted.h"
#include "core/residence.h"

#include <stdlib.h>
#include <string.h>

enum { LOG_BYTES = 8192 };

/* FNV-1a. Only narrows the search: equal hashes are followed by a comparison of the bytes. */
static uint64_t hash_bytes(const void *bytes, size_t count) {
    const unsigned char *byte = bytes;
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < count; i++) hash = (hash ^ byte[i]) * 1099511628211u;
    return hash;
}

/* Cubins are ELF files; fatbins open with their own magic number. All else is
 * taken for PTX text. */
static bool is_binary(const void *image, size_t bytes) {
    static const unsigned char elf[4] = {0x7f, 'E', 'L', 'F'};
    static const unsigned char fatbin[4] = {0x50, 0xed, 0x55, 0xba};
    return bytes >= 4 && (memcmp(image, elf, 4) == 0 || memcmp(image, fatbin, 4) == 0);
}

static tol_status check_image(const void *image, size_t *bytes) {
    tol_status status = TOL_OK;
    const char *text = image;
    TOL_CHECK(image != NULL && *bytes > 0, TOL_INVALID_ARGUMENT,
              "tol_module_load: the image is empty");
    if (is_binary(image, *bytes)) return TOL_OK;
    while (*bytes > 0 && text[*bytes - 1] == '\0') --*bytes;
    const char *nul = memchr(text, '\0', *bytes);
    TOL_CHECK(nul == NULL, TOL_INVALID_ARGUMENT,
              "PTX text of %zu bytes has a NUL at byte %zu, where the driver would stop reading",
              *bytes, (size_t)(nul - text));
    TOL_CHECK(*bytes > 0, TOL_INVALID_ARGUMENT, "tol_module_load: the image is empty");
out:
    return status;
}

static void module_free_module(struct tol_module *module) {
    if (module == NULL) return;
    for (int i = 0; i < TOL_MODULE_BUCKETS; i++) {
        struct tol_kernel *kernel = atomic_load(&module->buckets[i]);
        while (kernel != NULL) {
            struct tol_kernel *next = kernel->next;
            free(kernel);
            kernel = next;
        }
    }
    pthread_mutex_destroy(&module->lock);
    free(module->image);
    free(module->log);
    free(module);
}

static tol_status new_module(struct tol_context *context, const void *image, size_t bytes,
                             const struct tol_module_options *options, struct tol_module **result) {
    tol_status status = TOL_OK;
    struct tol_module *module = calloc(1, sizeof *module);
    TOL_CHECK(module != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a module of %zu bytes",
              sizeof *module);
    pthread_mutex_init(&module->lock, NULL);
    module->context = context;
    module->references = 1;
    module->image_bytes = bytes;
    module->image_hash = hash_bytes(image, bytes);
    module->options[0] = options->max_registers;
    module->options[1] = options->optimization;
    module->options[2] = options->line_info;
    module->options[3] = options->debug_info;
    module->unshared = options->unshared;
    module->image = malloc(bytes + 1);
    module->log = calloc(1, LOG_BYTES);
    TOL_CHECK(module->image != NULL && module->log != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a copy of a module image of %zu bytes", bytes);
    memcpy(module->image, image, bytes);
    module->image[bytes] = '\0';
    *result = module;
    module = NULL;
out:
    module_free_module(module);
    return status;
}

/* Finds a module loaded from the same image with the same options. The caller holds the context's
 * lock. */
static struct tol_module *find_loaded(const struct tol_module *like) {
    struct tol_module *module = like->context->modules;
    for (; module != NULL; module = module->next) {
        if (!module->unshared && !like->unshared && module->image_hash == like->image_hash &&
            module->image_bytes == like->image_bytes &&
            memcmp(module->options, like->options, sizeof like->options) == 0 &&
            memcmp(module->image, like->image, like->image_bytes) == 0) {
            break;
        }
    }
    return module;
}

/* Option values travel in pointer-sized slots: numbers as numbers, buffers as addresses. */
static void *module_number(size_t value) {
    return (void *)(uintptr_t)value;
}

static tol_status module_compile(struct tol_module *module) {
    tol_status status = TOL_OK;
    struct tol_context *context = module->context;
    char errors[LOG_BYTES];
    CUjit_option names[8];
    void *values[8];
    unsigned count = 0;
    errors[0] = '\0';

#define OPTION(name, value) (names[count] = name, values[count++] = value)
    OPTION(CU_JIT_INFO_LOG_BUFFER, module->log);
    OPTION(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, module_number(LOG_BYTES));
    OPTION(CU_JIT_ERROR_LOG_BUFFER, errors);
    OPTION(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, module_number(LOG_BYTES));
    if (module->options[0] > 0)
        OPTION(CU_JIT_MAX_REGISTERS, module_number((size_t)module->options[0]));
    if (module->options[1] > 0) {
        OPTION(CU_JIT_OPTIMIZATION_LEVEL, module_number((size_t)module->options[1] - 1));
    }
    if (module->options[2]) OPTION(CU_JIT_GENERATE_LINE_INFO, module_number(1));
    if (module->options[3]) OPTION(CU_JIT_GENERATE_DEBUG_INFO, module_number(1));
#undef OPTION

    CUresult result = context->functions->cuModuleLoadDataEx(&module->handle, module->image, count,
                                                             names, values);
    errors[LOG_BYTES - 1] = '\0';
    module->log[LOG_BYTES - 1] = '\0';
    if (result != CUDA_SUCCESS) {
        status = tol_context_fail(
            context, __FILE__, __LINE__, "cuModuleLoadDataEx", (int)result,
            "loading a module image of %zu bytes for compute capability %d.%d", module->image_bytes,
            context->device.compute_capability / 10, context->device.compute_capability % 10);
        /* After the driver's own log, which the message may have by now. */
        if (errors[0] != '\0') tol_message_add("; the JIT's log:\n%s", errors);
    }
    return status;
}

tol_status tol_module_load(struct tol_context *context, const void *image, size_t bytes,
                           const struct tol_module_options *options, struct tol_module **result) {
    TOL_RANGE("tol_module_load", bytes);
    tol_status status = TOL_OK;
    struct tol_module *module = NULL, *loaded = NULL;
    static const struct tol_module_options normal = {0};
    if (options == NULL) options = &normal;

    TOL_CHECK(context != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_module_load: an argument is NULL");
    TOL_TRY(check_image(image, &bytes));
    TOL_TRY(tol_context_enter(context));
    TOL_TRY(new_module(context, image, bytes, options, &module));

    pthread_mutex_lock(&context->lock);
    loaded = find_loaded(module);
    if (loaded != NULL) loaded->references++;
    pthread_mutex_unlock(&context->lock);

    if (loaded == NULL) {
        /* The JIT may take seconds, so it runs without the lock. If another thread has loaded the
         * same image meanwhile, its module is used and this one unloaded. */
        TOL_TRY(module_compile(module));
        pthread_mutex_lock(&context->lock);
        loaded = find_loaded(module);
        if (loaded != NULL) {
            loaded->references++;
        } else {
            module->next = context->modules;
            context->modules = module;
            assert(tol_module_is_valid(module));
        }
        TOL_DEEP_ASSERT(tol_context_is_valid(context));
        pthread_mutex_unlock(&context->lock);
        if (loaded != NULL) {
            context->functions->cuModuleUnload(module->handle);
        } else {
            loaded = module;
            module = NULL;
        }
    }
    tol_context_retain(context);
    *result = loaded;
out:
    module_free_module(module);
    return status;
}

void tol_module_destroy(struct tol_module *module) {
    if (module == NULL) return;
    struct tol_context *context = module->context;
    pthread_mutex_lock(&context->lock);
    assert(tol_module_is_valid(module));
    bool last = --module->references == 0;
    if (last) {
        struct tol_module **link = &context->modules;
        while (*link != module) link = &(*link)->next;
        *link = module->next;
    }
    TOL_DEEP_ASSERT(tol_context_is_valid(context));
    pthread_mutex_unlock(&context->lock);
    if (last) {
        /* In a poisoned context no work runs any more, and everything may be unloaded. */
        if (tol_context_is_idle(context, false)) {
            if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
            context->functions->cuModuleUnload(module->handle);
        }
        module_free_module(module);
    }
    tol_context_destroy(context);
}

const char *tol_module_log(const struct tol_module *module) {
    return module->log;
}

/* Reads the sizes of the kernel's parameters, if the driver reports them. Past the last one it
 * answers CUDA_ERROR_INVALID_VALUE. */
static int module_read_parameters(struct tol_context *context, CUfunction function, unsigned *sizes,
                                  int sizes_max, unsigned *total) {
    *total = 0;
    if (!tol_driver_has(context->driver, TOL_FEATURE_PARAM_INFO)) return -1;
    for (int i = 0; i < sizes_max; i++) {
        size_t offset = 0, bytes = 0;
        CUresult result =
            context->functions->cuFuncGetParamInfo(function, (size_t)i, &offset, &bytes);
        if (result == CUDA_ERROR_INVALID_VALUE) return i;
        if (result != CUDA_SUCCESS) return -1;
        sizes[i] = (unsigned)bytes;
        *total = (unsigned)(offset + bytes);
    }
    return sizes_max;
}

static tol_status new_kernel(struct tol_module *module, const char *name,
                             struct tol_kernel **result) {
    /* A kernel takes at most 32764 bytes of parameters, so it cannot have more than this. */
    enum { PARAMETERS_MAX = 4096 };
    tol_status status = TOL_OK;
    struct tol_context *context = module->context;
    struct tol_kernel *kernel = NULL;
    unsigned *sizes = NULL;
    CUfunction function = NULL;
    int block_threads = 0, shared_static = 0, shared_dynamic = 0, local = 0, registers = 0;
    unsigned total = 0;

    TOL_CONTEXT_CU(context, cuModuleGetFunction, (&function, module->handle, name),
                   "finding the kernel \"%s\"", name);
#define READ(attribute, value)                                                                     \
    TOL_CONTEXT_CU(context, cuFuncGetAttribute, (&value, CU_FUNC_ATTRIBUTE_##attribute, function), \
                   "reading " #attribute " of the kernel \"%s\"", name)
    READ(MAX_THREADS_PER_BLOCK, block_threads);
    READ(SHARED_SIZE_BYTES, shared_static);
    READ(MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_dynamic);
    READ(LOCAL_SIZE_BYTES, local);
    READ(NUM_REGS, registers);
#undef READ
    sizes = malloc(PARAMETERS_MAX * sizeof *sizes);
    TOL_CHECK(sizes != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for the parameters of the kernel \"%s\"", name);
    int parameters = module_read_parameters(context, function, sizes, PARAMETERS_MAX, &total);
    size_t size_bytes = parameters > 0 ? (size_t)parameters * sizeof *sizes : 0;
    kernel = calloc(1, sizeof *kernel + size_bytes);
    TOL_CHECK(kernel != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for the kernel \"%s\"", name);
    kernel->name = tol_context_intern(context, name);
    TOL_CHECK(kernel->name != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for the kernel \"%s\"",
              name);
    kernel->functions = context->functions;
    kernel->context = context;
    kernel->handle = function;
    kernel->block_threads_max = (unsigned)block_threads;
    kernel->shared_static_bytes = (unsigned)shared_static;
    atomic_init(&kernel->shared_dynamic_bytes_max, (unsigned)shared_dynamic);
    kernel->local_bytes = local;
    kernel->registers = registers;
    kernel->parameter_count = parameters;
    kernel->parameter_bytes_total = total;
    memcpy(kernel->parameter_bytes, sizes, size_bytes);
    *result = kernel;
    kernel = NULL;
out:
    free(kernel);
    free(sizes);
    return status;
}

static struct tol_kernel *module_find_kernel(_Atomic(struct tol_kernel *) *bucket,
                                             const char *name) {
    struct tol_kernel *kernel = atomic_load_explicit(bucket, memory_order_acquire);
    while (kernel != NULL && strcmp(kernel->name, name) != 0) kernel = kernel->next;
    return kernel;
}

/* Not lost even if the lock is missing on purpose: then two entries have one name. */
static void module_add_kernel(_Atomic(struct tol_kernel *) *bucket, struct tol_kernel *kernel) {
    kernel->next = atomic_load_explicit(bucket, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(bucket, &kernel->next, kernel,
                                                  memory_order_release, memory_order_relaxed)) {
        continue;
    }
}

tol_status tol_module_kernel(struct tol_module *module, const char *name,
                             struct tol_kernel **result) {
    tol_status status = TOL_OK;
    TOL_CHECK(module != NULL && name != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_module_kernel: an argument is NULL");
    /* The driver reports an empty name as an invalid value; for a caller it is a name that does not
     * exist. */
    TOL_CHECK(name[0] != '\0', TOL_NOT_FOUND, "the name of the kernel is empty");
    _Atomic(struct tol_kernel *) *bucket =
        &module->buckets[hash_bytes(name, strlen(name)) % TOL_MODULE_BUCKETS];
    struct tol_kernel *kernel = module_find_kernel(bucket, name);
    if (kernel == NULL) {
        TOL_TRY(tol_context_enter(module->context));
        const bool locks = !atomic_load_explicit(&tol_planted_no_lock, memory_order_relaxed);
        if (locks) pthread_mutex_lock(&module->lock);
        kernel = module_find_kernel(bucket, name);
        if (kernel == NULL) {
            status = new_kernel(module, name, &kernel);
            if (status == TOL_OK) module_add_kernel(bucket, kernel);
        }
        if (locks) pthread_mutex_unlock(&module->lock);
    }
    if (status == TOL_OK) *result = kernel;
out:
    return status;
}

tol_status tol_module_global(struct tol_module *module, const char *name,
                             struct tol_buffer **result) {
    tol_status status = TOL_OK;
    struct tol_buffer *buffer = NULL;
    TOL_CHECK(module != NULL && name != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_module_global: an argument is NULL");
    TOL_CHECK(name[0] != '\0', TOL_NOT_FOUND, "the name of the variable is empty");
    TOL_TRY(tol_context_enter(module->context));
    buffer = calloc(1, sizeof *buffer);
    TOL_CHECK(buffer != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a buffer of %zu bytes",
              sizeof *buffer);
    TOL_CONTEXT_CU(module->context, cuModuleGetGlobal_v2,
                   (&buffer->address, &buffer->bytes, module->handle, name),
                   "finding the variable \"%s\"", name);
    TOL_TRY(tol_context_refuse_astray(module->context, buffer->address, "the variable"));
    buffer->life.mark = TOL_ALIVE;
    buffer->context = module->context;
    buffer->module = module;
    pthread_mutex_lock(&module->context->lock);
    assert(tol_module_is_valid(module));
    module->references++;
    pthread_mutex_unlock(&module->context->lock);
    tol_context_retain(module->context);
    *result = buffer;
    buffer = NULL;
out:
    free(buffer);
    return status;
}

struct tol_kernel_properties tol_kernel_properties(const struct tol_kernel *kernel) {
    return (struct tol_kernel_properties){
        .name = kernel->name,
        .block_threads_max = kernel->block_threads_max,
        .shared_static_bytes = kernel->shared_static_bytes,
        .shared_dynamic_bytes_max = atomic_load(&kernel->shared_dynamic_bytes_max),
        .local_bytes_per_thread = kernel->local_bytes,
        .registers_per_thread = kernel->registers,
        .parameter_count = kernel->parameter_count,
        .parameter_bytes_total = kernel->parameter_bytes_total,
    };
}

tol_status tol_kernel_allow_shared(struct tol_kernel *kernel, unsigned bytes) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernel != NULL, TOL_INVALID_ARGUMENT, "tol_kernel_allow_shared: kernel is NULL");
    unsigned most = (unsigned)kernel->context->device.shared_bytes_per_block_optin;
    TOL_CHECK(bytes <= most && kernel->shared_static_bytes <= most - bytes, TOL_OVER_LIMIT,
              "the kernel \"%s\" has %u bytes of static shared memory; with %u bytes of dynamic "
              "shared memory it exceeds the limit of %u bytes per block",
              kernel->name, kernel->shared_static_bytes, bytes, most);
    TOL_TRY(tol_context_enter(kernel->context));
    TOL_CONTEXT_CU(kernel->context, cuFuncSetAttribute,
                   (kernel->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes),
                   "allowing %u bytes of dynamic shared memory for the kernel \"%s\"", bytes,
                   kernel->name);
    atomic_store(&kernel->shared_dynamic_bytes_max, bytes);
out:
    return status;
}

CUfunction tol_kernel_handle(const struct tol_kernel *kernel) {
    return kernel->handle;
}
