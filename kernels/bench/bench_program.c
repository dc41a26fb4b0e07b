/*
 * The program around the rows.
 *
 *     bench-kernels [--library PATH] [--cublas PATH] [--peer COMMAND] [--ggml FILE]
 *                   [--filter TEXT] [--json FILE]
 *
 * Without a library it takes the platform's, or the soft device beside it. `ninja bench-kernels`
 * runs it. It fails for wrong results and for figures above what the device can do; no speed is
 * asserted.
 */
#include "bench_json.h"
#include "bench_state.h"

#include "core/any_driver.h"
#include "core/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A peer starts, compiles kernels, and works on a problem of milliseconds a launch. */
enum { PEER_MS = 180000 };

static const char help[] =
    "usage: %s [OPTION VALUE]...\n"
    "\n"
    "  --library PATH   the driver; default: the platform's, or the soft device\n"
    "  --cublas PATH    cuBLAS; default: libcublas.so.13 or .12 where the loader finds it\n"
    "  --peer COMMAND   a program that times the same problems in another process, such as\n"
    "                   \"python3 torch_peer.py\": PyTorch's row kernels, cuDNN's attention\n"
    "  --ggml FILE      what llama.cpp's \"test-backend-ops perf -o MUL_MAT\" printed here\n"
    "  --filter TEXT    only rows that have it in \"operation shape variant\"\n"
    "  --json FILE      writes the rows, after each operation; \"complete\" says if it is the end\n"
    "\n"
    "Times are medians in microseconds. After them are shares: of a copy; of cuBLAS and the "
    "peer,\n"
    "with the interval that holds the true median with a probability of 0.95; of ggml, which is\n"
    "another run and has none. Exit code 1: an error, a wrong result, or a figure that the device\n"
    "cannot reach.\n";

/* ---- the ceiling of memory ------------------------------------------------------------------- */

struct copy {
    struct kn_bench *bench;
    struct tol_buffer *from, *to;
};

static tol_status launch_copy(void *user, size_t turn) {
    struct copy *copy = user;
    (void)turn; /* larger than any cache */
    return tol_copy_on_device(copy->bench->stream, copy->to, 0, copy->from, 0,
                              tol_buffer_bytes(copy->from));
}

static tol_status bench_program_measure_copy(struct kn_bench *bench) {
    tol_status status = TOL_OK;
    struct copy copy = {.bench = bench};
    const size_t count = (size_t)(bench->is_small ? 4 : 256) << 20;
    struct kn_bench_row row = {.operation = "copy", .bytes = 8.0 * (double)count, .turns = 1};
    snprintf(row.shape, sizeof row.shape, "%zu MiB on the device", count >> 18);
    snprintf(row.variant, sizeof row.variant, "driver's");
    TOL_TRY(kn_bench_buffer(bench, KN_F32, count, 1, &copy.from));
    TOL_TRY(tol_buffer_create(bench->context, count, sizeof(float), &copy.to));
    TOL_TRY(kn_bench_measure(bench, &row, launch_copy, &copy));
    bench->copy_bytes_per_us = row.bytes / row.us;
out:
    tol_buffer_destroy(copy.from);
    tol_buffer_destroy(copy.to);
    return status;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* The rows of an operation, and the device's state before and after them. */
static tol_status run_operation(struct kn_bench *bench, const struct kn_bench_operation *o) {
    tol_status status = TOL_OK;
    struct kn_bench_state *state = bench->state;
    const struct tol_device *device = tol_context_device(bench->context);
    struct kn_device_state before, after;
    char text[200];
    const size_t count = state->count;
    const bool is_known = kn_device_state_read(device, &before);
    TOL_TRY(o->run(bench));
    if (state->count == count || !is_known || !kn_device_state_read(device, &after)) goto out;
    kn_device_state_say(&before, &after, text, sizeof text);
    printf("%s: %s\n", o->name, text);
    if (state->states_count < KN_BENCH_OPERATIONS_MAX) {
        state->states[state->states_count].operation = o->name;
        state->states[state->states_count].before = before;
        state->states[state->states_count++].after = after;
    }
out:
    return status;
}

/* A run that is ended from outside leaves what was there after its last whole operation. */
static tol_status bench_program_run(struct kn_bench *bench, const char *json) {
    tol_status status = TOL_OK;
    struct kn_bench_state *state = bench->state;
    printf("%s; medians%s\n", tol_context_device(bench->context)->name,
           state->ggml != NULL ? "; ggml's are of another run, and have no interval" : "");
    if (json != NULL) TOL_TRY(kn_bench_json_write(bench, json, false, ""));
    TOL_TRY(tol_stream_create(bench->context, NULL, &bench->stream));
    TOL_TRY(tol_event_create(bench->context, true, &state->begin));
    TOL_TRY(tol_event_create(bench->context, true, &state->end));
    TOL_TRY(kn_kernels_create(bench->context, &bench->kernels));
    TOL_TRY(bench_program_measure_copy(bench));
    if (json != NULL) TOL_TRY(kn_bench_json_write(bench, json, false, ""));
    for (const struct kn_bench_operation *o = kn_bench_operations(); o != NULL; o = o->next) {
        TOL_TRY(run_operation(bench, o));
        if (json != NULL) TOL_TRY(kn_bench_json_write(bench, json, o->next == NULL, ""));
    }
out:
    return status;
}

struct options {
    const char *library, *json, *peer, *ggml;
};

static bool bench_program_read_options(struct kn_bench *bench, int argc, char **argv,
                                       struct options *options) {
    const struct {
        const char *name, **value;
    } all[] = {{"--library", &options->library}, {"--cublas", &bench->cublas},
               {"--peer", &options->peer},       {"--ggml", &options->ggml},
               {"--filter", &bench->filter},     {"--json", &options->json}};
    for (int i = 1; i < argc; i += 2) {
        size_t at = 0;
        while (at < sizeof all / sizeof all[0] && strcmp(argv[i], all[at].name) != 0) at++;
        if (at == sizeof all / sizeof all[0] || i + 1 == argc) return false;
        *all[at].value = argv[i + 1];
    }
    return true;
}

int main(int argc, char **argv) {
    tol_status status = TOL_OK;
    struct tol_driver *driver = NULL;
    static struct kn_bench_state state;
    static struct kn_ggml_times times;
    struct kn_bench bench = {.state = &state};
    struct options options = {NULL, NULL, NULL, NULL};
    const bool asks = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    const char *slash = strrchr(argv[0], '/'), *name = slash != NULL ? slash + 1 : argv[0];
    /* A row at once, also to a file: whoever ends the run has the rows before. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (asks || !bench_program_read_options(&bench, argc, argv, &options)) {
        fprintf(asks ? stdout : stderr, help, name);
        return asks ? 0 : 2;
    }
    if (options.ggml != NULL) {
        TOL_TRY(kn_ggml_times_read(options.ggml, &times));
        state.ggml = &times;
    }
    /* Before the driver is opened, of whose files it shall inherit none. */
    if (options.peer != NULL) TOL_TRY(kn_peer_open(options.peer, PEER_MS, &state.peer));
    TOL_TRY(tol_any_driver_open(options.library, &driver, &bench.is_small));
    bench.library = options.library;
    if (options.library != NULL) bench.is_small = strstr(options.library, "tollens-soft") != NULL;
    TOL_TRY(tol_context_create(driver, 0, &bench.context));
    status = bench_program_run(&bench, options.json);
    if (status != TOL_OK) {
        char reason[TOL_MESSAGE_BYTES];
        const int result = tol_message_cuda();
        snprintf(reason, sizeof reason, "%s", tol_message());
        if (options.json != NULL) {
            (void)kn_bench_json_write(&bench, options.json, false, reason);
        }
        TOL_TRY(tol_fail_again(status, result, reason));
    }
    TOL_CHECK(state.impossible == 0, TOL_OUT_OF_RANGE,
              "%zu figures are above what the device can do: they were not measured right",
              state.impossible);
    TOL_CHECK(state.wrong == 0, TOL_MISMATCH, "%zu results are wrong", state.wrong);
out:
    if (status != TOL_OK) fprintf(stderr, "%s: %s\n", name, tol_message());
    kn_peer_close(state.peer);
    free(state.values);
    kn_kernels_destroy(bench.kernels);
    tol_event_destroy(state.begin);
    tol_event_destroy(state.end);
    tol_stream_destroy(bench.stream);
    tol_context_destroy(bench.context);
    tol_driver_close(driver);
    return status == TOL_OK ? 0 : 1;
}
