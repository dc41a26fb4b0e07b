/*
 * Rounds of launches of each variant, and their medians.
 */
#include "tune/tune.h"

#include "core/check.h"
#include "fnv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES_MAX = 32, ROUNDS = 7, LAUNCHES_MAX = 1000, TIMEOUT_MS = 120000 };
static const double batch_us = 1000, must_be_below = 0.98;

/* A problem of some operation, and how to launch it by a variant; NULL: that of the table. */
struct tune_work {
    const struct kn_variants *table;
    tol_status (*launch)(const struct tune_work *work, const char *variant);
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    const void *problem;
};

struct tune_candidate {
    const char *name; /* NULL: what the table picks */
    double us[ROUNDS];
};

/* After launches that are not timed: between an event that is reached at once and a kernel that is
 * still being launched lies time of the host, which is not the kernel's. */
static tol_status time_launches(const struct tune_work *work, const char *variant, int launches,
                                struct tol_event *begin, struct tol_event *end, double *us) {
    tol_status status = TOL_OK;
    double ns = 0;
    for (int i = 0; i < (launches + 1) / 2; i++) TOL_TRY(work->launch(work, variant));
    TOL_TRY(tol_event_record(begin, work->stream));
    for (int i = 0; i < launches; i++) TOL_TRY(work->launch(work, variant));
    TOL_TRY(tol_event_record(end, work->stream));
    TOL_TRY(tol_event_synchronize_for(end, TIMEOUT_MS));
    TOL_TRY(tol_event_elapsed_ns(begin, end, &ns));
    *us = fmax(ns, 1) * 1e-3 / launches;
out:
    return status;
}

/* The table's choice, and all names of the table whose variants serve. Each runs once, which also
 * loads it. */
static tol_status find_candidates(const struct tune_work *work, struct tune_candidate *candidates,
                                  int *count) {
    tol_status status = TOL_OK;
    int found = 1;
    candidates[0].name = NULL;
    TOL_TRY(work->launch(work, NULL));
    for (size_t i = 0; i < work->table->count && found < CANDIDATES_MAX; i++) {
        const char *name = work->table->rows[i].name;
        bool is_known = false;
        for (int j = 1; j < found && !is_known; j++) {
            is_known = strcmp(candidates[j].name, name) == 0;
        }
        if (is_known) continue;
        status = work->launch(work, name);
        if (status == TOL_UNSUPPORTED) continue;
        TOL_TRY(status);
        candidates[found++].name = name;
    }
    TOL_TRY(tol_stream_synchronize_for(work->stream, TIMEOUT_MS));
    *count = found;
    status = TOL_OK;
out:
    return status;
}

static int tune_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static tol_status time_all(const struct tune_work *work, struct tune_candidate *candidates,
                           int count) {
    tol_status status = TOL_OK;
    struct tol_event *begin = NULL, *end = NULL;
    int launches[CANDIDATES_MAX];
    TOL_TRY(tol_event_create(kn_kernels_context(work->kernels), true, &begin));
    TOL_TRY(tol_event_create(kn_kernels_context(work->kernels), true, &end));
    for (int i = 0; i < count; i++) {
        double us = 0;
        TOL_TRY(time_launches(work, candidates[i].name, 3, begin, end, &us));
        launches[i] = (int)fmin(fmax(ceil(batch_us / us), 1), LAUNCHES_MAX);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < count; i++) {
            TOL_TRY(time_launches(work, candidates[i].name, launches[i], begin, end,
                                  &candidates[i].us[round]));
        }
    }
    for (int i = 0; i < count; i++) {
        qsort(candidates[i].us, ROUNDS, sizeof(double), tune_compare);
    }
out:
    tol_event_destroy(begin);
    tol_event_destroy(end);
    return status;
}

/* `picked` is the variant of the table. */
static tol_status tune(const struct tune_work *work, const char *picked,
                       const struct kn_tuning_key *key, struct kn_tuning *tuning,
                       struct kn_tuned *tuned) {
    tol_status status = TOL_OK;
    struct tune_candidate candidates[CANDIDATES_MAX];
    int count = 0;
    TOL_TRY(find_candidates(work, candidates, &count));
    TOL_TRY(time_all(work, candidates, count));
    const double table_us = candidates[0].us[ROUNDS / 2];
    const struct tune_candidate *best = &candidates[0];
    for (int i = 1; i < count; i++) {
        const double us = candidates[i].us[ROUNDS / 2];
        if (us <= must_be_below * table_us && us < best->us[ROUNDS / 2]) best = &candidates[i];
    }
    struct kn_tuned result = {
        .us = best->us[ROUNDS / 2], .table_us = table_us, .candidates = count - 1};
    snprintf(result.variant, sizeof result.variant, "%s", best->name != NULL ? best->name : picked);
    TOL_TRY(kn_tuning_add(tuning, key, &result));
    *tuned = result;
out:
    return status;
}

/* ---- operations ------------------------------------------------------------------------------ */

static tol_status check_call(const void *problem, const struct kn_tuning *tuning,
                             const struct kn_tuned *tuned) {
    tol_status status = TOL_OK;
    TOL_CHECK(problem != NULL && tuning != NULL && tuned != NULL, TOL_INVALID_ARGUMENT,
              "tuning needs a problem, a tuning and a place for the result");
out:
    return status;
}

static tol_status check_is_open(const char *variant, const struct kn_variants *variants) {
    tol_status status = TOL_OK;
    TOL_CHECK(kn_wish_is_open((struct kn_wish){variant, variants}), TOL_INVALID_ARGUMENT,
              "what is tuned names no variant and no table");
out:
    return status;
}

/* The table decides, and no tuning that the set of kernels uses: the default table is given. */
static tol_status launch_gemm(const struct tune_work *work, const char *variant) {
    struct kn_gemm gemm = *(const struct kn_gemm *)work->problem;
    gemm.variant = variant, gemm.variants = work->table;
    return kn_gemm(work->kernels, work->stream, &gemm);
}

tol_status kn_tune_gemm(struct kn_kernels *kernels, struct tol_stream *stream,
                        const struct kn_gemm *gemm, struct kn_tuning *tuning,
                        struct kn_tuned *tuned) {
    tol_status status = TOL_OK;
    struct kn_tuning_key key;
    const struct kn_variant *picked = NULL;
    struct kn_gemm by_table;
    const struct tune_work work = {&kn_gemm_variants, launch_gemm, kernels, stream, gemm};
    TOL_TRY(check_call(gemm, tuning, tuned));
    TOL_TRY(check_is_open(gemm->variant, gemm->variants));
    TOL_TRY(kn_gemm_key(gemm, &key));
    by_table = *gemm, by_table.variants = work.table;
    TOL_TRY(launch_gemm(&work, NULL)); /* checks kernels and stream */
    TOL_TRY(kn_gemm_pick(kernels, &by_table, &picked));
    status = tune(&work, picked->name, &key, tuning, tuned);
out:
    return status;
}

static tol_status launch_grouped(const struct tune_work *work, const char *variant) {
    struct kn_grouped grouped = *(const struct kn_grouped *)work->problem;
    grouped.variant = variant, grouped.variants = work->table;
    return kn_grouped(work->kernels, work->stream, &grouped);
}

tol_status kn_tune_grouped(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_grouped *grouped, struct kn_tuning *tuning,
                           struct kn_tuned *tuned) {
    tol_status status = TOL_OK;
    struct kn_tuning_key key;
    const struct kn_variant *picked = NULL;
    struct kn_grouped by_table;
    const struct tune_work work = {&kn_grouped_variants, launch_grouped, kernels, stream, grouped};
    TOL_TRY(check_call(grouped, tuning, tuned));
    TOL_TRY(check_is_open(grouped->variant, grouped->variants));
    TOL_TRY(kn_grouped_key(kernels, grouped, &key));
    by_table = *grouped, by_table.variants = work.table;
    TOL_TRY(kn_grouped_pick(kernels, &by_table, &picked));
    status = tune(&work, picked->name, &key, tuning, tuned);
out:
    return status;
}

static tol_status launch_softmax(const struct tune_work *work, const char *variant) {
    struct kn_softmax softmax = *(const struct kn_softmax *)work->problem;
    softmax.variant = variant, softmax.variants = work->table;
    return kn_softmax(work->kernels, work->stream, &softmax);
}

tol_status kn_tune_softmax(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_softmax *softmax, struct kn_tuning *tuning,
                           struct kn_tuned *tuned) {
    tol_status status = TOL_OK;
    struct kn_tuning_key key;
    const struct kn_variant *picked = NULL;
    struct kn_softmax by_table;
    const struct tune_work work = {&kn_softmax_variants, launch_softmax, kernels, stream, softmax};
    TOL_TRY(check_call(softmax, tuning, tuned));
    TOL_TRY(check_is_open(softmax->variant, softmax->variants));
    TOL_TRY(kn_softmax_key(kernels, stream, softmax, &key));
    by_table = *softmax, by_table.variants = work.table;
    TOL_TRY(kn_softmax_pick(kernels, stream, &by_table, &picked));
    status = tune(&work, picked->name, &key, tuning, tuned);
out:
    return status;
}

static tol_status launch_norm(const struct tune_work *work, const char *variant) {
    struct kn_norm norm = *(const struct kn_norm *)work->problem;
    norm.variant = variant, norm.variants = work->table;
    return kn_norm(work->kernels, work->stream, &norm);
}

tol_status kn_tune_norm(struct kn_kernels *kernels, struct tol_stream *stream,
                        const struct kn_norm *norm, struct kn_tuning *tuning,
                        struct kn_tuned *tuned) {
    tol_status status = TOL_OK;
    struct kn_tuning_key key;
    const struct kn_variant *picked = NULL;
    struct kn_norm by_table;
    const struct tune_work work = {&kn_norm_variants, launch_norm, kernels, stream, norm};
    TOL_TRY(check_call(norm, tuning, tuned));
    TOL_TRY(check_is_open(norm->variant, norm->variants));
    TOL_TRY(kn_norm_key(kernels, stream, norm, &key));
    by_table = *norm, by_table.variants = work.table;
    TOL_TRY(kn_norm_pick(kernels, stream, &by_table, &picked));
    status = tune(&work, picked->name, &key, tuning, tuned);
out:
    return status;
}

static tol_status launch_attention(const struct tune_work *work, const char *variant) {
    struct kn_attention attention = *(const struct kn_attention *)work->problem;
    attention.variant = variant, attention.variants = work->table;
    return kn_attention(work->kernels, work->stream, &attention);
}

tol_status kn_tune_attention(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_attention *attention, struct kn_tuning *tuning,
                             struct kn_tuned *tuned) {
    tol_status status = TOL_OK;
    struct kn_tuning_key key;
    const struct kn_variant *picked = NULL;
    struct kn_attention by_table;
    const struct tune_work work = {&kn_attention_variants, launch_attention, kernels, stream,
                                   attention};
    TOL_TRY(check_call(attention, tuning, tuned));
    TOL_TRY(check_is_open(attention->variant, attention->variants));
    TOL_TRY(kn_attention_key(attention, &key));
    by_table = *attention, by_table.variants = work.table;
    TOL_TRY(launch_attention(&work, NULL)); /* checks the stream */
    TOL_TRY(kn_attention_pick(kernels, &by_table, &picked));
    status = tune(&work, picked->name, &key, tuning, tuned);
out:
    return status;
}

/* ---- what it was measured with --------------------------------------------------------------- */

static uint64_t hash_images(uint64_t hash, const struct kn_variants *table) {
    for (size_t i = 0; i < table->count; i++) {
        const struct kn_variant *row = &table->rows[i];
        hash = kn_fnv(hash, row->entry, strlen(row->entry));
        if (i > 0 && row->images == table->rows[i - 1].images) continue;
        for (const struct kn_image *image = row->images; image->packed != NULL; image++) {
            hash = kn_fnv(hash, image->packed, image->packed_bytes);
        }
    }
    return hash;
}

tol_status kn_tune_identity(struct tol_context *context, const char *commit,
                            struct kn_tuning_identity *identity) {
    tol_status status = TOL_OK;
    TOL_CHECK(context != NULL && identity != NULL, TOL_INVALID_ARGUMENT,
              "an identity needs a context and a place");
    const struct tol_device *device = tol_context_device(context);
    uint64_t hash = hash_images(KN_FNV_BEGIN, &kn_gemm_variants);
    hash = hash_images(hash_images(hash, &kn_grouped_variants), &kn_softmax_variants);
    hash = hash_images(hash_images(hash, &kn_norm_variants), &kn_attention_variants);
    *identity =
        (struct kn_tuning_identity){.multiprocessors = (int)device->multiprocessors,
                                    .driver = tol_driver_version(tol_context_driver(context)),
                                    .kernels = hash};
    snprintf(identity->device, sizeof identity->device, "%s", device->name);
    snprintf(identity->commit, sizeof identity->commit, "%s", commit != NULL ? commit : "unknown");
out:
    return status;
}
