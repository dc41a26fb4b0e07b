/*
 * One side of a comparison of two revisions: this revision's runtime, called through four
 * functions.
 *
 * ci/compare builds it in each revision's tree, with that revision's headers and archive, so types
 * may differ between the two, and both can be loaded into one process. Two libtollens.so could not:
 * the dynamic linker would return the first one for the second, which has the same name. This file
 * uses few functions, so that it compiles with older revisions' headers.
 */
#include "tollens.h" /* as users do, and older trees too */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct side {
    struct tol_driver *driver;
    struct tol_context *context;
    struct tol_stream *stream;
    struct tol_event *event;
    struct tol_module *module;
    struct tol_buffer *buffer;
    struct tol_kernel *kernels[3];
};

static const char ptx[] =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry take_1(.param .u64 a)\n{\n    ret;\n}\n"
    ".visible .entry take_4(.param .u64 a, .param .u32 b, .param .u64 c, .param .f32 d)\n"
    "{\n    ret;\n}\n"
    ".visible .entry take_16(.param .u64 a, .param .u32 b, .param .u32 c, .param .u32 d,\n"
    "    .param .u32 e, .param .u32 f, .param .u32 g, .param .u32 h, .param .u32 i,\n"
    "    .param .u32 j, .param .u32 k, .param .u32 l, .param .u32 m, .param .u32 n,\n"
    "    .param .u32 o, .param .u32 p)\n{\n    ret;\n}\n";

#define EXPORT __attribute__((visibility("default")))

EXPORT void side_close(void *side);

/* Opens a driver's library (NULL: the platform's). NULL: *why says why not. */
EXPORT void *side_open(const char *library, const char **why) {
    static const char *const names[] = {"take_1", "take_4", "take_16"};
    struct side *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    bool ok = tol_driver_open(library, &s->driver) == TOL_OK &&
              tol_context_create(s->driver, 0, &s->context) == TOL_OK &&
              tol_stream_create(s->context, NULL, &s->stream) == TOL_OK &&
              tol_event_create(s->context, false, &s->event) == TOL_OK &&
              tol_buffer_create(s->context, 1, 64, &s->buffer) == TOL_OK &&
              tol_module_load(s->context, ptx, sizeof ptx, NULL, &s->module) == TOL_OK;
    for (size_t i = 0; ok && i < 3; i++) {
        ok = tol_module_kernel(s->module, names[i], &s->kernels[i]) == TOL_OK;
    }
    if (ok) return s;
    *why = tol_message();
    side_close(s);
    return NULL;
}

EXPORT void side_close(void *side) {
    struct side *s = side;
    tol_module_destroy(s->module);
    tol_buffer_destroy(s->buffer);
    tol_event_destroy(s->event);
    tol_stream_destroy(s->stream);
    tol_context_destroy(s->context);
    tol_driver_close(s->driver);
    free(s);
}

EXPORT const char *side_series(unsigned series) {
    static const char *const names[] = {"launch_1_argument", "launch_4_arguments",
                                        "launch_16_arguments", "event_record", "module_lookup"};
    return series < sizeof names / sizeof names[0] ? names[series] : NULL;
}

static tol_status compare_side_call(struct side *s, unsigned series, unsigned i) {
    const struct tol_launch_shape shape = {1, 1, 1, 1, 1, 1, 0};
    CUdeviceptr address = tol_buffer_address(s->buffer);
    struct tol_kernel *kernel = NULL;
    switch (series) {
    case 0:
        return tol_launch(s->stream, s->kernels[0], shape, TOL_ARGUMENTS(address));
    case 1:
        return tol_launch(s->stream, s->kernels[1], shape,
                          TOL_ARGUMENTS(address, i, (unsigned long long)i, 1.0f));
    case 2:
        return tol_launch(
            s->stream, s->kernels[2], shape,
            TOL_ARGUMENTS(address, i, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 10u, 11u, 12u, 13u, 14u));
    case 3:
        return tol_event_record(s->event, s->stream);
    default:
        return tol_module_kernel(s->module, "take_16", &kernel);
    }
}

/* The processor's time of this thread alone: what other programs and the device's own threads use
 * meanwhile is not in it. */
static double thread_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Makes calls of a series and gives their nanoseconds, or -1 where one failed. The queue is
 * empty again when it returns. */
EXPORT double side_batch(void *side, unsigned series, unsigned calls) {
    struct side *s = side;
    tol_status status = TOL_OK;
    /* A lookup is so short that reading the clock would show. */
    const unsigned each = series == 4 ? 20 : 1;
    /* The side that ran last has warmer caches, and the baseline runs most often. */
    for (unsigned i = 0; i < 30 && status == TOL_OK; i++) status = compare_side_call(s, series, i);
    double begin = thread_ns();
    for (unsigned i = 0; i < calls * each && status == TOL_OK; i++)
        status = compare_side_call(s, series, i);
    double ns = (thread_ns() - begin) / each;
    if (status == TOL_OK) status = tol_stream_synchronize(s->stream);
    return status == TOL_OK ? ns : -1;
}

/* Why the last side_batch of this thread failed. */
EXPORT const char *side_message(void) {
    return tol_message();
}
