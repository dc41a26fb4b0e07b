/*
 * Timing rows, and the program around them.
 *
 *     bench-kernels [--library PATH] [--cublas PATH] [--filter TEXT] [--json FILE]
 *
 * Without a library it takes the platform's, or the soft device beside it. `ninja bench-kernels`
 * runs it. Nothing is asserted.
 */
#include "kernel_bench.h"

#include "core/any_driver.h"
#include "core/check.h"
#include "inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 512, BATCHES = 21, LAUNCHES_MAX = 4096 };
static const double batch_us = 200;

struct kn_bench_state {
    struct kn_bench_row rows[ROWS_MAX];
    size_t count;
    struct tol_event *begin, *end;
    float *values; /* random ones, from which buffers are filled */
};

static struct kn_bench_operation *operations;

/* In the order of their names: the order of constructors is the linker's. */
void kn_bench_register(struct kn_bench_operation *operation) {
    struct kn_bench_operation **at = &operations;
    while (*at != NULL && strcmp((*at)->name, operation->name) < 0) at = &(*at)->next;
    operation->next = *at;
    *at = operation;
}

/* ---- timing ---------------------------------------------------------------------------------- */

bool kn_bench_wants(const struct kn_bench *bench, const struct kn_bench_row *row) {
    char name[160];
    snprintf(name, sizeof name, "%s %s %s", row->operation, row->shape, row->variant);
    return bench->filter == NULL || strstr(name, bench->filter) != NULL;
}

static tol_status time_batch(struct kn_bench *bench, size_t launches, size_t *turn,
                             tol_status (*launch)(void *user, size_t turn), void *user,
                             double *us) {
    tol_status status = TOL_OK;
    double ns = 0;
    struct kn_bench_state *state = bench->state;
    TOL_TRY(tol_event_record(state->begin, bench->stream));
    for (size_t i = 0; i < launches; i++) TOL_TRY(launch(user, (*turn)++));
    TOL_TRY(tol_event_record(state->end, bench->stream));
    TOL_TRY(tol_event_synchronize_for(state->end, 120000));
    TOL_TRY(tol_event_elapsed_ns(state->begin, state->end, &ns));
    *us = ns * 1e-3 / (double)launches;
out:
    return status;
}

static int compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void print_row(const struct kn_bench_row *row) {
    printf("%-8s %-34s %-18s %12.2f", row->operation, row->shape, row->variant, row->us);
    if (row->operations > 0) {
        printf(" %9.2f TFLOP/s", row->operations / row->us * 1e-6);
    } else {
        printf(" %9.1f GB/s   ", row->bytes / row->us * 1e-3);
    }
    if (row->of_ceiling[0] > 0) {
        printf(" %6.3f of %s (%.3f to %.3f)", row->of_ceiling[0], row->ceiling, row->of_ceiling[1],
               row->of_ceiling[2]);
    } else if (row->ceiling_us > 0) {
        printf(" %6.3f of %s", row->ceiling_us / row->us, row->ceiling);
    }
    if (row->alike_us > 0) printf(" %6.3f of %s", row->alike_us / row->us, row->alike);
    printf("\n");
    fflush(stdout);
}

/* One side of a row: how many launches a batch has, and what batches took. */
struct side {
    tol_status (*launch)(void *user, size_t turn);
    void *user;
    size_t launches, turn;
    double us[BATCHES];
};

static tol_status warm_up(struct kn_bench *bench, struct side *side) {
    tol_status status = TOL_OK;
    const size_t few = bench->is_small ? 1 : 8;
    double once = 0;
    /* The first loads the kernel, and wakes the device; what a library does in its first calls must
     * not count, or its batches would be short and pay more for their begin and end. */
    TOL_TRY(time_batch(bench, 1, &side->turn, side->launch, side->user, &once));
    for (int i = 0; i < 2; i++) {
        TOL_TRY(time_batch(bench, few, &side->turn, side->launch, side->user, &once));
    }
    side->launches = once > 0 ? (size_t)(batch_us / once) + 1 : 1;
    if (side->launches > LAUNCHES_MAX) side->launches = LAUNCHES_MAX;
out:
    return status;
}

static double sort_and_take_median(double *values, size_t count) {
    qsort(values, count, sizeof values[0], compare);
    return values[count / 2];
}

tol_status kn_bench_compare(struct kn_bench *bench, struct kn_bench_row *row,
                            tol_status (*launch)(void *user, size_t turn), void *user,
                            const struct kn_bench_peer *peer) {
    tol_status status = TOL_OK;
    struct kn_bench_state *state = bench->state;
    struct side sides[2] = {{.launch = launch, .user = user}};
    const size_t batches = bench->is_small ? 3 : BATCHES;
    size_t count = 1;
    TOL_CHECK(state->count < ROWS_MAX, TOL_OVER_LIMIT, "more than %d rows", ROWS_MAX);
    if (peer != NULL && peer->launch != NULL) {
        sides[count++] = (struct side){.launch = peer->launch, .user = peer->user};
    }
    for (size_t i = 0; i < count; i++) TOL_TRY(warm_up(bench, &sides[i]));
    /* Batches of both sides are as long, in launches. */
    if (count == 2) {
        const size_t more =
            sides[0].launches > sides[1].launches ? sides[0].launches : sides[1].launches;
        sides[0].launches = sides[1].launches = more;
    }
    for (size_t i = 0; i < batches * count; i++) {
        struct side *side = &sides[i % count];
        TOL_TRY(time_batch(bench, side->launches, &side->turn, side->launch, side->user,
                           &side->us[i / count]));
    }
    if (count == 2) {
        /* Of a sorted sample, the ranks that hold the median with a probability of 0.95. */
        const size_t out = (size_t)(((double)batches - 1.96 * sqrt((double)batches)) / 2);
        double ratios[BATCHES];
        for (size_t i = 0; i < batches; i++) ratios[i] = sides[1].us[i] / sides[0].us[i];
        row->of_ceiling[0] = sort_and_take_median(ratios, batches);
        row->of_ceiling[1] = ratios[out], row->of_ceiling[2] = ratios[batches - 1 - out];
        row->ceiling = peer->name;
        row->ceiling_us = sort_and_take_median(sides[1].us, batches);
    }
    row->us = sort_and_take_median(sides[0].us, batches);
    if (row->ceiling_us == 0 && row->operations == 0 && bench->copy_bytes_per_us > 0) {
        row->ceiling = "copy";
        row->ceiling_us = row->bytes / bench->copy_bytes_per_us;
    }
    state->rows[state->count++] = *row;
    print_row(row);
out:
    return status;
}

tol_status kn_bench_measure(struct kn_bench *bench, struct kn_bench_row *row,
                            tol_status (*launch)(void *user, size_t turn), void *user) {
    return kn_bench_compare(bench, row, launch, user, NULL);
}

size_t kn_bench_sets(const struct kn_bench *bench, size_t set_bytes) {
    const size_t all = 3 * (size_t)tol_context_device(bench->context)->l2_bytes;
    const size_t sets = set_bytes > 0 ? all / set_bytes + 1 : 1;
    return bench->is_small || sets < 2 ? 2 : sets > KN_BENCH_SETS_MAX ? KN_BENCH_SETS_MAX : sets;
}

tol_status kn_bench_buffer(struct kn_bench *bench, enum kn_type type, size_t count, uint64_t seed,
                           struct tol_buffer **buffer) {
    enum { VALUES = 1 << 20 };
    tol_status status = TOL_OK;
    const size_t element = kn_type_bytes(type);
    struct kn_bench_state *state = bench->state;
    struct tol_buffer *made = NULL;
    void *piece = malloc(VALUES * element);
    if (state->values == NULL) {
        uint64_t random = 1;
        state->values = malloc(2 * VALUES * sizeof *state->values);
        TOL_CHECK(state->values != NULL, TOL_OUT_OF_HOST_MEMORY, "%d values", 2 * VALUES);
        kn_inputs_draw(KN_NORMAL, &random, 1, state->values, 2 * VALUES);
    }
    TOL_CHECK(piece != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", VALUES * element);
    TOL_TRY(tol_buffer_create(bench->context, count, element, &made));
    /* Pieces that begin elsewhere in the same values: no two rows of a matrix are equal. */
    for (size_t at = 0; at < count; at += VALUES) {
        const size_t now = count - at < VALUES ? count - at : VALUES;
        kn_numbers_store(type, state->values + kn_random(&seed) % VALUES, now, piece);
        TOL_TRY(tol_buffer_write_at(made, at * element, piece, now * element));
    }
    *buffer = made;
    made = NULL;
out:
    tol_buffer_destroy(made);
    free(piece);
    return status;
}

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

static tol_status measure_copy(struct kn_bench *bench) {
    tol_status status = TOL_OK;
    struct copy copy = {.bench = bench};
    const size_t count = (size_t)(bench->is_small ? 4 : 256) << 20;
    struct kn_bench_row row = {.operation = "copy", .bytes = 8.0 * (double)count};
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

static tol_status write_json(const struct kn_bench *bench, const char *path) {
    tol_status status = TOL_OK;
    const struct tol_device *device = tol_context_device(bench->context);
    FILE *file = fopen(path, "w");
    TOL_CHECK(file != NULL, TOL_INVALID_ARGUMENT, "%s cannot be written", path);
    fprintf(file, "{\n  \"device\": \"%s\",\n  \"copy_gb_per_s\": %.3f,\n  \"rows\": [\n",
            device->name, bench->copy_bytes_per_us * 1e-3);
    for (size_t i = 0; i < bench->state->count; i++) {
        const struct kn_bench_row *row = &bench->state->rows[i];
        fprintf(file,
                "    {\"operation\": \"%s\", \"shape\": \"%s\", \"variant\": \"%s\", \"us\": %.4f, "
                "\"tflop_per_s\": %.4f, \"gb_per_s\": %.3f, \"ceiling\": \"%s\", \"of_ceiling\": "
                "%.4f, \"low\": %.4f, \"high\": %.4f, \"ceiling_us\": %.4f, \"alike\": \"%s\", "
                "\"of_alike\": %.4f}%s\n",
                row->operation, row->shape, row->variant, row->us, row->operations / row->us * 1e-6,
                row->bytes / row->us * 1e-3, row->ceiling_us > 0 ? row->ceiling : "",
                row->of_ceiling[0] > 0 ? row->of_ceiling[0] : row->ceiling_us / row->us,
                row->of_ceiling[1], row->of_ceiling[2], row->ceiling_us,
                row->alike_us > 0 ? row->alike : "", row->alike_us / row->us,
                i + 1 < bench->state->count ? "," : "");
    }
    fprintf(file, "  ]\n}\n");
    TOL_CHECK(fclose(file) == 0, TOL_INVALID_ARGUMENT, "%s cannot be written", path);
out:
    return status;
}

static tol_status run(struct kn_bench *bench) {
    tol_status status = TOL_OK;
    struct kn_bench_state *state = bench->state;
    printf("%s; medians\n", tol_context_device(bench->context)->name);
    TOL_TRY(tol_stream_create(bench->context, NULL, &bench->stream));
    TOL_TRY(tol_event_create(bench->context, true, &state->begin));
    TOL_TRY(tol_event_create(bench->context, true, &state->end));
    TOL_TRY(kn_kernels_create(bench->context, &bench->kernels));
    TOL_TRY(measure_copy(bench));
    for (struct kn_bench_operation *o = operations; o != NULL; o = o->next) TOL_TRY(o->run(bench));
out:
    return status;
}

static bool read_options(struct kn_bench *bench, int argc, char **argv, const char **library,
                         const char **json) {
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (value == NULL) return false;
        if (strcmp(argv[i], "--library") == 0) {
            *library = value;
        } else if (strcmp(argv[i], "--cublas") == 0) {
            bench->cublas = value;
        } else if (strcmp(argv[i], "--filter") == 0) {
            bench->filter = value;
        } else if (strcmp(argv[i], "--json") == 0) {
            *json = value;
        } else {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv) {
    tol_status status = TOL_OK;
    struct tol_driver *driver = NULL;
    static struct kn_bench_state state;
    struct kn_bench bench = {.state = &state};
    const char *library = NULL, *json = NULL;
    if (!read_options(&bench, argc, argv, &library, &json)) {
        fprintf(stderr, "usage: bench-kernels [--library PATH] [--cublas PATH] [--filter TEXT] "
                        "[--json FILE]\n");
        return 2;
    }
    TOL_TRY(tol_any_driver_open(library, &driver, &bench.is_small));
    if (library != NULL) bench.is_small = strstr(library, "tollens-soft") != NULL;
    TOL_TRY(tol_context_create(driver, 0, &bench.context));
    TOL_TRY(run(&bench));
    if (json != NULL) status = write_json(&bench, json);
out:
    if (status != TOL_OK) fprintf(stderr, "bench-kernels: %s\n", tol_message());
    free(state.values);
    kn_kernels_destroy(bench.kernels);
    tol_event_destroy(state.begin);
    tol_event_destroy(state.end);
    tol_stream_destroy(bench.stream);
    tol_context_destroy(bench.context);
    tol_driver_close(driver);
    return status == TOL_OK ? 0 : 1;
}
