/*
 * Timing rows: batches of each side in turn, medians, ratios, rooflines.
 */
#include "bench_state.h"

#include "core/check.h"
#include "inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 21, LAUNCHES_MAX = 4096 };
static const double batch_us = 200;

/* The events' own resolution: half a microsecond in a batch. */
static const double TIMER_SHARE = 0.99;

static struct kn_bench_operation *operations;

/* In the order of their names: the order of constructors is the linker's. */
void kn_bench_register(struct kn_bench_operation *operation) {
    struct kn_bench_operation **at = &operations;
    while (*at != NULL && strcmp((*at)->name, operation->name) < 0) at = &(*at)->next;
    operation->next = *at;
    *at = operation;
}

const struct kn_bench_operation *kn_bench_operations(void) {
    return operations;
}

/* ---- timing ---------------------------------------------------------------------------------- */

bool kn_bench_wants(const struct kn_bench *bench, const struct kn_bench_row *row) {
    char name[160];
    snprintf(name, sizeof name, "%s %s %s", row->operation, row->shape, row->variant);
    return bench->filter == NULL || strstr(name, bench->filter) != NULL;
}

static tol_status kernel_bench_time_batch(struct kn_bench *bench, size_t launches, size_t *turn,
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

static int kernel_bench_compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void kernel_bench_print_row(const struct kn_bench_row *row) {
    printf("%-8s %-34s %-18s %12.2f", row->operation, row->shape, row->variant, row->us);
    if (row->operations > 0) {
        printf(" %9.2f TFLOP/s", row->operations / row->us * 1e-6);
    } else if (row->bytes > 0) {
        printf(" %9.1f GB/s   ", row->bytes / row->us * 1e-3);
    }
    if (row->of_ceiling[0] > 0) {
        printf(" %6.3f of %s (%.3f to %.3f)", row->of_ceiling[0], row->ceiling, row->of_ceiling[1],
               row->of_ceiling[2]);
    } else if (row->ceiling_us > 0) {
        printf(" %6.3f of %s", row->ceiling_us / row->us, row->ceiling);
    }
    if (row->alike_us > 0) printf(" %6.3f of %s", row->alike_us / row->us, row->alike);
    if (row->beside[0] != '\0') {
        printf(" %6.3f of %s (%.3f to %.3f)", row->of_beside[0], row->beside, row->of_beside[1],
               row->of_beside[2]);
    }
    if (row->ggml_us > 0) printf(" %6.3f of ggml", row->ggml_us / row->us);
    if (row->without[0] != '\0') printf(" (%s)", row->without);
    printf("\n");
    fflush(stdout);
}

enum { OURS, LIBRARY, PROCESS, SIDES };

/* One side of a row: how many launches a batch has, and what batches took. */
struct side {
    tol_status (*launch)(void *user, size_t turn);
    void *user;
    struct kn_peer *process; /* instead of a launch */
    bool is_there;
    size_t launches, turn;
    double us[BATCHES];
};

/* A peer in another process that fails is there no more. */
static tol_status time_side(struct kn_bench *bench, struct side *side, size_t launches,
                            double *us) {
    if (!side->is_there) return TOL_OK;
    if (side->process == NULL) {
        return kernel_bench_time_batch(bench, launches, &side->turn, side->launch, side->user, us);
    }
    side->is_there = kn_peer_batch(side->process, launches, us);
    return TOL_OK;
}

static tol_status warm_up(struct kn_bench *bench, struct side *side) {
    tol_status status = TOL_OK;
    const size_t few = bench->is_small ? 1 : 8;
    double once = 0;
    /* The first loads the kernel, and wakes the device; what a library does in its first calls must
     * not count, or its batches would be short and pay more for their begin and end. */
    TOL_TRY(time_side(bench, side, 1, &once));
    for (int i = 0; i < 2; i++) TOL_TRY(time_side(bench, side, few, &once));
    side->launches = once > 0 ? (size_t)(batch_us / once) + 1 : 1;
    if (side->launches > LAUNCHES_MAX) side->launches = LAUNCHES_MAX;
out:
    return status;
}

static double sort_and_take_median(double *values, size_t count) {
    qsort(values, count, sizeof values[0], kernel_bench_compare);
    return values[count / 2];
}

/* Of neighbouring batches, the median ratio and its interval. */
static void take_ratios(const double *theirs, const double *ours, size_t batches, double ratio[3]) {
    /* Of a sorted sample, the ranks that hold the median with a probability of 0.95. */
    const size_t out = (size_t)(((double)batches - 1.96 * sqrt((double)batches)) / 2);
    double ratios[BATCHES] = {0};
    for (size_t i = 0; i < batches; i++) ratios[i] = theirs[i] / ours[i];
    ratio[0] = sort_and_take_median(ratios, batches);
    ratio[1] = ratios[out], ratio[2] = ratios[batches - 1 - out];
}

/* The row fails the run, if it is too good to be true. */
static void kernel_bench_judge(struct kn_bench *bench, const struct kn_bench_row *row,
                               const char *by, double us, size_t launches) {
    struct kn_bench_state *state = bench->state;
    const struct kn_bench_work work = {.rate = row->rate,
                                       .operations = row->operations,
                                       .turns = row->turns,
                                       .turn_bytes =
                                           row->turn_bytes > 0 ? row->turn_bytes : row->bytes,
                                       .launches = launches};
    const double least = kn_bench_least_us(tol_context_device(bench->context), &work);
    if (!(us < TIMER_SHARE * least)) return;
    printf("%s %s %s%s: %.2f us cannot be: the device takes %.2f us at least\n", row->operation,
           row->shape, by, by == row->variant ? "" : "'s", us, least);
    state->impossible++;
}

/* Whether the peer in another process is ready for the row's problem. */
static bool kernel_bench_prepare(struct kn_bench *bench, struct kn_bench_row *row) {
    struct kn_peer *peer = bench->state->peer;
    if (peer == NULL || row->problem[0] == '\0') return false;
    if (kn_peer_prepare(peer, row->problem)) return true;
    snprintf(row->without, sizeof row->without, "%s", kn_peer_reason(peer));
    return false;
}

/* Its figures, if it was there to the end and finds its results right. */
static void take_beside(struct kn_bench *bench, struct kn_bench_row *row, struct side *sides,
                        size_t batches) {
    struct side *side = &sides[PROCESS];
    if (!side->is_there || !kn_peer_check(side->process)) {
        snprintf(row->without, sizeof row->without, "%s", kn_peer_reason(side->process));
        return;
    }
    take_ratios(side->us, sides[OURS].us, batches, row->of_beside);
    snprintf(row->beside, sizeof row->beside, "%s", kn_peer_name(side->process));
    row->beside_us = sort_and_take_median(side->us, batches);
    kernel_bench_judge(bench, row, row->beside, row->beside_us, side->launches);
}

tol_status kn_bench_compare(struct kn_bench *bench, struct kn_bench_row *row,
                            tol_status (*launch)(void *user, size_t turn), void *user,
                            const struct kn_bench_peer *peer) {
    tol_status status = TOL_OK;
    struct kn_bench_state *state = bench->state;
    struct side sides[SIDES] = {{.launch = launch, .user = user, .is_there = true}};
    const size_t batches = bench->is_small ? 3 : BATCHES;
    size_t most = 1;
    TOL_CHECK(state->count < KN_BENCH_ROWS_MAX, TOL_OVER_LIMIT, "more than %d rows",
              KN_BENCH_ROWS_MAX);
    row->without[0] = row->beside[0] = '\0';
    if (peer != NULL && peer->launch != NULL) {
        sides[LIBRARY] =
            (struct side){.launch = peer->launch, .user = peer->user, .is_there = true};
    }
    const bool is_beside = kernel_bench_prepare(bench, row);
    sides[PROCESS] = (struct side){.process = state->peer, .is_there = is_beside};
    for (size_t i = 0; i < SIDES; i++) {
        TOL_TRY(warm_up(bench, &sides[i]));
        if (sides[i].is_there && sides[i].launches > most) most = sides[i].launches;
    }
    /* Batches of all sides are as long, in launches. */
    for (size_t i = 0; i < SIDES; i++) sides[i].launches = most;
    for (size_t i = 0; i < batches * SIDES; i++) {
        struct side *side = &sides[i % SIDES];
        TOL_TRY(time_side(bench, side, side->launches, &side->us[i / SIDES]));
    }
    if (is_beside) take_beside(bench, row, sides, batches);
    if (sides[LIBRARY].is_there) {
        take_ratios(sides[LIBRARY].us, sides[OURS].us, batches, row->of_ceiling);
        row->ceiling = peer->name;
        row->ceiling_us = sort_and_take_median(sides[LIBRARY].us, batches);
        kernel_bench_judge(bench, row, row->ceiling, row->ceiling_us, most);
    }
    row->us = sort_and_take_median(sides[OURS].us, batches);
    if (row->ceiling_us == 0 && row->operations == 0 && bench->copy_bytes_per_us > 0) {
        row->ceiling = "copy";
        row->ceiling_us = row->bytes / bench->copy_bytes_per_us;
    }
    state->rows[state->count++] = *row;
    kernel_bench_print_row(row);
    kernel_bench_judge(bench, row, row->variant, row->us, most);
    if (row->ggml_us > 0) kernel_bench_judge(bench, row, "ggml", row->ggml_us, most);
out:
    return status;
}

tol_status kn_bench_measure(struct kn_bench *bench, struct kn_bench_row *row,
                            tol_status (*launch)(void *user, size_t turn), void *user) {
    return kn_bench_compare(bench, row, launch, user, NULL);
}

void kn_bench_keep(struct kn_bench *bench, const struct kn_bench_row *row) {
    struct kn_bench_state *state = bench->state;
    kernel_bench_print_row(row);
    if (state->count < KN_BENCH_ROWS_MAX) state->rows[state->count++] = *row;
}

double kn_bench_ggml_us(const struct kn_bench *bench, const char *type, size_t m, size_t n,
                        size_t k) {
    const struct kn_ggml_times *times = bench->state->ggml;
    return times != NULL ? kn_ggml_times_us(times, type, m, n, k) : 0;
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
