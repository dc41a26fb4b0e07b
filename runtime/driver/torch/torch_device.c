/*
 * Opens devices on demand; what a call changes in the thread and restores.
 *
 * A stream is looked up without a lock in buckets that only grow: PyTorch has 32 streams per
 * priority and keeps them, and the table never removes one. The driver and the devices are never
 * closed, because PyTorch frees blocks until the process ends.
 */
#include "torch_device.h"

#include "core/c_locale.h"
#include "tollens/stream.h"

#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all here */
static struct tol_driver *driver;
static _Atomic(struct torch_device *) devices[TORCH_DEVICES];
static double fractions[TORCH_DEVICES];
static atomic_int device_count; /* as PyTorch says; 0: it has not */

static tol_status choose_profile(const struct tol_device *device,
                                 struct tol_pool_options *options) {
    static const struct {
        const char *name;
        void (*fill)(const struct tol_device *, struct tol_pool_options *);
    } profiles[] = {{"torch", tol_pool_torch},
                    {"lean", tol_pool_lean},
                    {"default", tol_pool_default},
                    {"tight", tol_pool_tight},
                    {"latency", tol_pool_latency}};
    const char *wanted = getenv("TOLLENS_TORCH_PROFILE");
    if (wanted == NULL || wanted[0] == '\0') wanted = profiles[0].name;
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
        if (strcmp(profiles[i].name, wanted) != 0) continue;
        profiles[i].fill(device, options);
        return TOL_OK;
    }
    return tol_fail(__FILE__, __LINE__, TOL_INVALID_ARGUMENT,
                    "TOLLENS_TORCH_PROFILE is \"%s\": it must be torch, lean, default, tight or "
                    "latency",
                    wanted);
}

/* A number, optionally followed by k, m or g. */
static tol_status torch_device_read_limit(const char *text, size_t *bytes) {
    char *end = NULL;
    const unsigned long long number = strtoull(text, &end, 10);
    size_t unit = 1;
    if (*end == 'k' || *end == 'K') unit = KIB;
    if (*end == 'm' || *end == 'M') unit = MIB;
    if (*end == 'g' || *end == 'G') unit = GIB;
    if (unit > 1) end++;
    if (end == text || *end != '\0' || text[0] == '-' || number > SIZE_MAX / unit) {
        return tol_fail(__FILE__, __LINE__, TOL_INVALID_ARGUMENT,
                        "TOLLENS_TORCH_LIMIT is \"%s\": it must be a number of bytes, with k, m "
                        "or g after it for KiB, MiB and GiB",
                        text);
    }
    *bytes = (size_t)number * unit;
    return TOL_OK;
}

/* A share of at least 1, or 0 for never, if the environment has it. */
static tol_status read_share(const char *name, double *share) {
    char *end = NULL;
    const char *text = getenv(name);
    if (text == NULL || text[0] == '\0') return TOL_OK;
    const double number = tol_c_number(text, &end);
    if (end == text || *end != '\0' || !(number == 0 || (number >= 1 && number <= 1000))) {
        return tol_fail(__FILE__, __LINE__, TOL_INVALID_ARGUMENT,
                        "%s is \"%s\": it must be 0, or 1 to 1000", name, text);
    }
    *share = number;
    return TOL_OK;
}

static tol_status torch_device_open_pool(struct torch_device *device) {
    tol_status status = TOL_OK;
    struct tol_pool_options options;
    const struct tol_device *description = tol_context_device(device->context);
    const char *limit = getenv("TOLLENS_TORCH_LIMIT");
    const double fraction = fractions[device->ordinal];
    TOL_TRY(choose_profile(description, &options));
    if (limit != NULL && limit[0] != '\0')
        TOL_TRY(torch_device_read_limit(limit, &options.limit_bytes));
    TOL_TRY(read_share("TOLLENS_TORCH_STITCH_ABOVE", &options.stitch_above));
    TOL_TRY(read_share("TOLLENS_TORCH_WAIT_ABOVE", &options.wait_above));
    if (fraction > 0 && fraction <= 1) {
        const size_t share = (size_t)(fraction * (double)description->memory_bytes);
        if (options.limit_bytes == 0 || share < options.limit_bytes) options.limit_bytes = share;
    }
    status = tol_pool_create(device->context, &options, &device->pool);
out:
    return status;
}

/* The caller holds the lock. */
static tol_status torch_device_open_device(int ordinal, struct torch_device **result) {
    tol_status status = TOL_OK;
    struct torch_device *device = calloc(1, sizeof *device);
    TOL_CHECK(device != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for device %d", ordinal);
    device->ordinal = ordinal;
    device->waiting_end = &device->waiting;
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->waiting_lock, NULL);
    TOL_TRY(tol_context_create(driver, ordinal, &device->context));
    TOL_TRY(torch_device_open_pool(device));
    *result = device;
    device = NULL;
out:
    if (device != NULL) {
        tol_context_destroy(device->context);
        pthread_mutex_destroy(&device->waiting_lock);
        pthread_mutex_destroy(&device->lock);
        free(device);
    }
    return status;
}

static tol_status torch_device_open_driver(void) {
    tol_status status = TOL_OK;
    if (driver != NULL) return TOL_OK;
    TOL_TRY(tol_driver_open(NULL, &driver));
    TOL_CHECK(tol_driver_has(driver, TOL_FEATURE_GRAPH), TOL_UNSUPPORTED,
              "the driver has no stream captures");
out:
    return status;
}

static void begin_visit(const struct tol_driver_table *functions, struct torch_visit *visit) {
    visit->before = NULL;
    (void)functions->cuCtxGetCurrent(&visit->before);
    visit->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)functions->cuThreadExchangeStreamCaptureMode(&visit->mode);
}

static void end_visit(const struct tol_driver_table *functions, const struct torch_visit *visit) {
    CUstreamCaptureMode mode = visit->mode;
    (void)functions->cuThreadExchangeStreamCaptureMode(&mode);
}

/* PyTorch has a context already, so the primary one is found active. */
struct torch_device *torch_device_get(int ordinal) {
    struct torch_visit visit;
    struct torch_device *device = torch_device_if_open(ordinal);
    if (device != NULL) return device;
    const int count = atomic_load_explicit(&device_count, memory_order_relaxed);
    if (ordinal < 0 || ordinal >= TORCH_DEVICES || (count > 0 && ordinal >= count)) {
        (void)tol_fail(__FILE__, __LINE__, TOL_NO_DEVICE, "there is no device %d", ordinal);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    device = torch_device_if_open(ordinal);
    if (device == NULL && torch_device_open_driver() == TOL_OK) {
        const struct tol_driver_table *functions = tol_driver_functions(driver);
        begin_visit(functions, &visit);
        if (torch_device_open_device(ordinal, &device) == TOL_OK) {
            atomic_store_explicit(&devices[ordinal], device, memory_order_release);
        }
        (void)functions->cuCtxSetCurrent(visit.before);
        tol_bound_context = 0;
        end_visit(functions, &visit);
    }
    pthread_mutex_unlock(&lock);
    return device;
}

struct torch_device *torch_device_if_open(int ordinal) {
    if (ordinal < 0 || ordinal >= TORCH_DEVICES) return NULL;
    return atomic_load_explicit(&devices[ordinal], memory_order_acquire);
}

void torch_device_set_count(int count) {
    atomic_store_explicit(&device_count, count, memory_order_relaxed);
}

void torch_device_set_fraction(int ordinal, double fraction) {
    if (ordinal < 0 || ordinal >= TORCH_DEVICES) return;
    pthread_mutex_lock(&lock);
    fractions[ordinal] = fraction;
    pthread_mutex_unlock(&lock);
}

void torch_enter(struct torch_device *device, struct torch_visit *visit) {
    const struct tol_driver_table *functions = device->context->functions;
    begin_visit(functions, visit);
    if (visit->before != device->context->handle) {
        (void)functions->cuCtxSetCurrent(device->context->handle);
    }
    tol_bound_context = device->context->id;
}

void torch_leave(struct torch_device *device, const struct torch_visit *visit) {
    const struct tol_driver_table *functions = device->context->functions;
    if (visit->before != device->context->handle) {
        (void)functions->cuCtxSetCurrent(visit->before);
        tol_bound_context = 0;
    }
    end_visit(functions, visit);
}

/* ---- streams ---- */

static _Atomic(struct torch_stream *) *bucket_of(struct torch_device *device, CUstream handle) {
    const uint64_t hash = (uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u;
    return &device->streams[hash >> 56];
}

static struct tol_stream *torch_device_look_up(_Atomic(struct torch_stream *) *bucket,
                                               CUstream handle) {
    struct torch_stream *known = atomic_load_explicit(bucket, memory_order_acquire);
    while (known != NULL && known->handle != handle) known = known->next;
    return known != NULL ? known->stream : NULL;
}

struct tol_stream *torch_stream_of(struct torch_device *device, CUstream handle) {
    _Atomic(struct torch_stream *) *bucket = bucket_of(device, handle);
    struct tol_stream *stream = torch_device_look_up(bucket, handle);
    if (stream != NULL) return stream;
    pthread_mutex_lock(&device->lock);
    stream = torch_device_look_up(bucket, handle);
    struct torch_stream *added = stream == NULL ? calloc(1, sizeof *added) : NULL;
    if (added != NULL && tol_stream_adopt(device->context, handle, &stream) == TOL_OK) {
        *added = (struct torch_stream){handle, stream,
                                       atomic_load_explicit(bucket, memory_order_relaxed)};
        atomic_store_explicit(bucket, added, memory_order_release);
        added = NULL;
    }
    free(added);
    pthread_mutex_unlock(&device->lock);
    return stream;
}
