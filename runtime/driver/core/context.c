/*
 * The primary context: retained once per device, bound to each thread that needs it, and remembered
 * as poisoned when the driver says it cannot go on.
 */
#include "tollens/context.h"

#include "check.h"
#include "nvtx.h"
#include "deadline.h"
#include "deep.h"
#include "libcuda_state.h"
#include "outcome.h"
#include "stream_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local uint64_t tol_bound_context;

static _Atomic uint64_t next_id = 1;

/* Contexts that ended before their work: the driver may still write to what they hold. */
static struct tol_context *left_behind;

static void free_context(struct tol_context *context) {
    while (context->names != NULL) {
        struct tol_name *name = context->names;
        context->names = name->next;
        free(name);
    }
    pthread_mutex_destroy(&context->holders_lock);
    pthread_mutex_destroy(&context->lock);
    free(context);
}

static void free_memory(struct tol_context *context, CUdeviceptr address, void *pinned) {
    if (address != 0) context->functions->cuMemFree_v2(address);
    if (pinned != NULL) context->functions->cuMemFreeHost(pinned);
}

static void free_left(struct tol_context *context) {
    pthread_mutex_lock(&context->lock);
    struct tol_left *left = context->left;
    context->left = NULL;
    pthread_mutex_unlock(&context->lock);
    while (left != NULL) {
        struct tol_left *next = left->next;
        free_memory(context, left->address, left->pinned);
        free(left);
        left = next;
    }
}

static bool end_context(struct tol_context *context) {
    if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
    if (!tol_context_is_idle(context, false)) return false;
    free_left(context);
    tol_context_end_streams(context);
    while (context->staging != NULL) {
        struct tol_staging *block = context->staging;
        context->staging = block->next;
        context->functions->cuEventDestroy_v2(block->done);
        context->functions->cuMemFreeHost(block->data);
        free(block);
    }
    context->functions->cuCtxSetCurrent(NULL);
    tol_bound_context = 0;
    context->functions->cuDevicePrimaryCtxRelease_v2(context->device_handle);
    free_context(context);
    return true;
}

/* Creates the context of a device. The caller holds the driver's lock. */
static tol_status new_context(struct tol_driver *driver, int ordinal, bool device_memory_only,
                              struct tol_context **result) {
    tol_status status = TOL_OK;
    bool retained = false;
    struct tol_context *context = calloc(1, sizeof *context);
    TOL_CHECK(context != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a context of %zu bytes",
              sizeof *context);
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->holders_lock, NULL);
    context->functions = driver->functions;
    context->driver = driver;
    context->device_memory_only = device_memory_only;
    context->id = atomic_fetch_add(&next_id, 1);
    context->references = 1;
    context->patience_ms = TOL_DEADLINE_MS;
    atomic_init(&context->poisoned, false);

    TOL_TRY(tol_device_read(driver, ordinal, &context->device));
    TOL_CHECK(context->device.compute_capability >= TOL_COMPUTE_CAPABILITY_MIN,
              TOL_DEVICE_UNSUPPORTED,
              "device %d, %s, has compute capability %d.%d; %d.%d or newer is required", ordinal,
              context->device.name, context->device.compute_capability / 10,
              context->device.compute_capability % 10, TOL_COMPUTE_CAPABILITY_MIN / 10,
              TOL_COMPUTE_CAPABILITY_MIN % 10);
    TOL_CU(context->functions, cuDeviceGet, (&context->device_handle, ordinal),
           "reading the handle of device %d", ordinal);
    TOL_CU(context->functions, cuDevicePrimaryCtxRetain, (&context->handle, context->device_handle),
           "retaining the context of device %d", ordinal);
    retained = true;
    TOL_TRY(tol_context_bind(context));
    *result = context;
    context = NULL;
out:
    if (context != NULL) {
        if (retained) context->functions->cuDevicePrimaryCtxRelease_v2(context->device_handle);
        free_context(context);
    }
    return status;
}

tol_status tol_context_create_with(struct tol_driver *driver, int ordinal,
                                   const struct tol_context_options *options,
                                   struct tol_context **result) {
    TOL_RANGE("tol_context_create", 0);
    tol_status status = TOL_OK;
    struct tol_context *context = NULL;
    const bool device_memory_only = options != NULL && options->device_memory_only;
    TOL_CHECK(driver != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_context_create: an argument is NULL");
    pthread_mutex_lock(&driver->lock);
    for (context = driver->contexts; context != NULL; context = context->next) {
        if (context->device.ordinal == ordinal) break;
    }
    if (context != NULL && device_memory_only && !context->device_memory_only) {
        status =
            tol_fail(__FILE__, __LINE__, TOL_INVALID_ARGUMENT,
                     "the context of device %d exists already without device_memory_only", ordinal);
    } else if (context != NULL) {
        context->references++;
    } else {
        status = new_context(driver, ordinal, device_memory_only, &context);
        if (status == TOL_OK) {
            context->next = driver->contexts;
            driver->contexts = context;
            atomic_fetch_add(&driver->references, 1);
        }
    }
    TOL_DEEP_ASSERT(tol_driver_is_valid(driver));
    pthread_mutex_unlock(&driver->lock);
    if (status == TOL_OK) *result = context;
out:
    return status;
}

tol_status tol_context_create(struct tol_driver *driver, int ordinal, struct tol_context **result) {
    return tol_context_create_with(driver, ordinal, NULL, result);
}

bool tol_context_is_device_memory_only(const struct tol_context *context) {
    return context->device_memory_only;
}

void tol_context_retain(struct tol_context *context) {
    pthread_mutex_lock(&context->driver->lock);
    assert(context->references > 0);
    context->references++;
    pthread_mutex_unlock(&context->driver->lock);
}

void tol_context_destroy(struct tol_context *context) {
    if (context == NULL) return;
    struct tol_driver *driver = context->driver;
    pthread_mutex_lock(&driver->lock);
    assert(context->references > 0);
    bool last = --context->references == 0;
    if (last) {
        struct tol_context **link = &driver->contexts;
        while (*link != context) link = &(*link)->next;
        *link = context->next;
        if (!end_context(context)) {
            context->next = left_behind;
            left_behind = context;
        }
    }
    pthread_mutex_unlock(&driver->lock);
    if (last) tol_driver_close(driver);
}

const struct tol_device *tol_context_device(const struct tol_context *context) {
    return &context->device;
}

struct tol_driver *tol_context_driver(const struct tol_context *context) {
    return context->driver;
}

const struct tol_driver_table *tol_context_functions(const struct tol_context *context) {
    return context->functions;
}

tol_status tol_context_bind_slow(struct tol_context *context) {
    tol_status status = TOL_OK;
    TOL_CHECK(!tol_inside_host_function, TOL_INVALID_ARGUMENT,
              "a host function must not call CUDA or this runtime");
    TOL_CONTEXT_CU(context, cuCtxSetCurrent, (context->handle),
                   "making the context of device %d current", context->device.ordinal);
    tol_bound_context = context->id;
out:
    return status;
}

tol_status tol_context_bind(struct tol_context *context) {
    tol_status status = TOL_OK;
    TOL_CHECK(context != NULL, TOL_INVALID_ARGUMENT, "tol_context_bind: context is NULL");
    TOL_TRY(tol_context_check(context));
    status = tol_context_bind_slow(context);
out:
    return status;
}

tol_status tol_context_memory(struct tol_context *context, size_t *free_bytes,
                              size_t *total_bytes) {
    tol_status status = TOL_OK;
    size_t free_now = 0, total = 0;
    TOL_CHECK(context != NULL, TOL_INVALID_ARGUMENT, "tol_context_memory: context is NULL");
    TOL_TRY(tol_context_enter(context));
    TOL_CONTEXT_CU(context, cuMemGetInfo_v2, (&free_now, &total), "getting the free memory");
    if (free_bytes != NULL) *free_bytes = free_now;
    if (total_bytes != NULL) *total_bytes = total;
out:
    return status;
}

tol_status tol_context_priorities(struct tol_context *context, int *lowest, int *highest) {
    tol_status status = TOL_OK;
    int least = 0, greatest = 0;
    TOL_CHECK(context != NULL && lowest != NULL && highest != NULL, TOL_INVALID_ARGUMENT,
              "tol_context_priorities: an argument is NULL");
    TOL_TRY(tol_context_enter(context));
    TOL_CONTEXT_CU(context, cuCtxGetStreamPriorityRange, (&least, &greatest),
                   "getting the range of stream priorities");
    *lowest = least;
    *highest = greatest;
out:
    return status;
}

tol_status tol_context_check(const struct tol_context *context) {
    if (!atomic_load_explicit(&context->poisoned, memory_order_acquire)) return TOL_OK;
    return tol_context_report_poison(context);
}

tol_status tol_context_report_poison(const struct tol_context *context) {
    /* Pairs with the release in poison(): the message is written before the flag. */
    atomic_thread_fence(memory_order_acquire);
    return tol_fail_again(TOL_POISONED, context->poison_result, context->poison_message);
}

static void context_poison(struct tol_context *context, int result) {
    pthread_mutex_lock(&context->lock);
    if (!atomic_load_explicit(&context->poisoned, memory_order_relaxed)) {
        context->poison_result = result;
        snprintf(context->poison_message, sizeof context->poison_message,
                 "the context of device %d is unusable since: %.15000s", context->device.ordinal,
                 tol_message());
        atomic_store_explicit(&context->poisoned, true, memory_order_release);
    }
    pthread_mutex_unlock(&context->lock);
}

/* Adds what the driver has logged since the last failure: newer drivers state there in words what a
 * code cannot. */
static void add_driver_log(struct tol_driver *driver) {
    if (!tol_driver_has(driver, TOL_FEATURE_LOGS)) return;
    size_t bytes = TOL_LOG_BYTES;
    pthread_mutex_lock(&driver->log_lock);
    const char *log = driver->log;
    CUresult result =
        driver->table.cuLogsDumpToMemory(&driver->log_position, driver->log, &bytes, 0);
    if (result != CUDA_SUCCESS || bytes > TOL_LOG_BYTES) bytes = 0;
    while (bytes > 0 && (log[bytes - 1] == '\n' || log[bytes - 1] == '\0')) bytes--;
    if (bytes > 0) tol_message_add("; the driver's log: %.*s", (int)bytes, log);
    pthread_mutex_unlock(&driver->log_lock);
}

tol_status tol_context_fail(struct tol_context *context, const char *file, int line,
                            const char *call, int result, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tol_status status = tol_fail_cuda(file, line, call, result, "%s", text);
    if (status == TOL_NOT_READY) return status;
    add_driver_log(context->driver);
    if (tol_cuda_is_sticky(result)) context_poison(context, result);
    return status;
}

const char *tol_context_intern(struct tol_context *context, const char *text) {
    size_t bytes = strlen(text) + 1;
    pthread_mutex_lock(&context->lock);
    struct tol_name *name = context->names;
    while (name != NULL && strcmp(name->text, text) != 0) name = name->next;
    if (name == NULL && (name = malloc(sizeof *name + bytes)) != NULL) {
        memcpy(name->text, text, bytes);
        name->next = context->names;
        context->names = name;
    }
    pthread_mutex_unlock(&context->lock);
    return name != NULL ? name->text : NULL;
}

void tol_context_free_later(struct tol_context *context, CUdeviceptr address, void *pinned) {
    struct tol_left *left = NULL;
    if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
    if (tol_context_is_idle(context, false)) {
        free_memory(context, address, pinned);
        free_left(context);
    } else if ((left = malloc(sizeof *left)) != NULL) {
        left->address = address;
        left->pinned = pinned;
        pthread_mutex_lock(&context->lock);
        left->next = context->left;
        context->left = left;
        pthread_mutex_unlock(&context->lock);
    }
}

void tol_context_set_patience(struct tol_context *context, unsigned patience_ms) {
    if (context != NULL) context->patience_ms = patience_ms;
}
