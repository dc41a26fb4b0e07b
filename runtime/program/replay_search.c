/*
 * From each profile, one option at a time, as long as that helps.
 */
#include "replay_search.h"

#include "files/atomic_file.h"
#include "harness/claim.h"
#include "harness/clock.h"
#include "harness/session.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024.0
#define MIB (1024 * KIB)
#define LEAST_GAIN 0.999 /* a smaller one is not worth an option that somebody has to keep */

typedef unsigned long long number;

enum search_kind { BYTES, SHARE, SWITCH };
enum { VALUES_MAX = 5 };

/* An option and the values to try. Those of trimming go together: see search_set. */
static const struct search_option {
    const char *name;
    size_t offset;
    enum search_kind kind;
    size_t count;
    double values[VALUES_MAX];
} options[] = {
#define OPTION(name, kind, ...)                                                                    \
    {                                                                                              \
#name, offsetof(struct tol_pool_options, name), kind,                                      \
            sizeof((double[]){__VA_ARGS__}) / sizeof(double), {                                    \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
    OPTION(lowest_first, SWITCH, 0, 1),
    OPTION(page_bytes, BYTES, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB),
    OPTION(large_bytes, BYTES, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB),
    OPTION(joins_pages, SWITCH, 0, 1),
    OPTION(first_bytes, BYTES, 2 * MIB, 16 * MIB, 64 * MIB),
    OPTION(grow_share, SHARE, 0, 0.0015, 0.02, 0.072),
    OPTION(trim_above, SHARE, 1.01, 1.02, 1.025, 1.25),
    OPTION(slack_bytes, BYTES, 0, MIB, 4 * MIB, 8 * MIB, 64 * MIB),
    OPTION(keep_bytes, BYTES, MIB, 16 * MIB, 64 * MIB, 256 * MIB),
    OPTION(magazine_max_bytes, BYTES, 64 * KIB, 256 * KIB, MIB),
    OPTION(magazine_bytes, BYTES, MIB, 2 * MIB, 8 * MIB, 64 * MIB),
    OPTION(park_bytes, BYTES, 0, 16 * MIB, 64 * MIB, 256 * MIB),
#undef OPTION
};
enum { OPTIONS = sizeof options / sizeof options[0] };
_Static_assert((int)OPTIONS <= (int)HYP_SEARCH_CHANGES_MAX, "each option may change");

static double search_get(const struct tol_pool_options *from, const struct search_option *option) {
    const char *at = (const char *)from + option->offset;
    if (option->kind == SWITCH) return *(const bool *)(const void *)at;
    if (option->kind == SHARE) return *(const double *)(const void *)at;
    return (double)*(const size_t *)(const void *)at;
}

static void search_set(struct tol_pool_options *to, const struct search_option *option,
                       double value) {
    char *at = (char *)to + option->offset;
    if (option->kind == SWITCH) *(bool *)(void *)at = value != 0;
    if (option->kind == SHARE) *(double *)(void *)at = value;
    if (option->kind == BYTES) *(size_t *)(void *)at = (size_t)value;
    /* A pool trims to less than it trims above. */
    if (to->trim_to > to->trim_above) to->trim_to = to->trim_above;
}

/* ---- halves of a trace ----------------------------------------------------------------------- */

/* The events from begin to end, after the allocations of the blocks that are live at begin. */
static bool search_cut(const struct hyp_trace *whole, size_t begin, size_t end,
                       struct hyp_trace *part) {
    bool *is_live = calloc((size_t)whole->blocks + 1, sizeof *is_live);
    *part = *whole;
    part->count = 0;
    part->peak = 0;
    part->events = malloc((end + 1) * sizeof *part->events);
    const bool ok = (is_live != NULL && part->events != NULL) || hyp_fail("out of host memory");
    for (size_t i = 0; ok && i < begin; i++) {
        const struct hyp_trace_event *event = &whole->events[i];
        if (event->kind == TOL_POOL_EVENT_ALLOCATE) is_live[event->block] = true;
        if (event->kind == TOL_POOL_EVENT_FREE) is_live[event->block] = false;
    }
    for (size_t i = 0; ok && i < end; i++) {
        const struct hyp_trace_event *event = &whole->events[i];
        const bool is_before = event->kind == TOL_POOL_EVENT_ALLOCATE && is_live[event->block];
        if (i >= begin || is_before) part->events[part->count++] = *event;
    }
    free(is_live);
    return ok;
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* Options, and what the first half says about them. */
struct search_point {
    const struct hyp_replay_profile *start;
    struct tol_pool_options options;
    struct hyp_search_score score;
};

struct search_run {
    const struct hyp_replay_setting *setting;
    struct hyp_trace halves[HYP_SEARCH_HALVES];
    struct hyp_search *search;
    double end_s;
};

/* *is_taken false: the pool does not take these options. */
static bool search_score(const struct search_run *run, size_t half, struct tol_pool_options pool,
                         struct hyp_search_score *score, bool *is_taken) {
    struct hyp_replay replay = {.trace = &run->halves[half], .context = run->setting->context};
    struct tol_pool_stats stats;
    struct tol_hdr *times = NULL;
    pool.limit_bytes = (size_t)run->setting->limit;
    pool.time_one_in = 1;
    const tol_status status = tol_pool_create(run->setting->context, &pool, &replay.pool);
    *is_taken = status == TOL_OK;
    if (status == TOL_INVALID_ARGUMENT) return true;
    if (status != TOL_OK) return hyp_fail("%s", hyp_session_message());
    bool ok = hyp_replay_run(&replay);
    if (ok && (tol_pool_stats(replay.pool, &stats) != TOL_OK ||
               tol_pool_times(replay.pool, TOL_POOL_CALL_ALLOCATE, &times) != TOL_OK)) {
        ok = hyp_fail("%s", hyp_session_message());
    }
    if (ok) {
        *score = (struct hyp_search_score){replay.unserved, replay.held_peak, stats.driver_calls,
                                           tol_hdr_percentile(times, 99)};
    }
    tol_hdr_free(times);
    tol_pool_destroy(replay.pool);
    return ok;
}

static bool search_is_better(const struct hyp_search_score *a, const struct hyp_search_score *b) {
    if (a->unserved != b->unserved) return a->unserved < b->unserved;
    return (double)a->held_peak < LEAST_GAIN * (double)b->held_peak;
}

/* Scores options on the first half, and keeps them in *best if they are better. */
static bool search_try(struct search_run *run, const struct search_point *tried,
                       struct search_point *best, bool *is_kept) {
    struct search_point point = *tried;
    bool is_taken = false;
    *is_kept = false;
    if (!search_score(run, 0, point.options, &point.score, &is_taken)) return false;
    run->search->replays += is_taken;
    if (!is_taken || !search_is_better(&point.score, &best->score)) return true;
    *best = point;
    *is_kept = true;
    return true;
}

/* ---- the search ------------------------------------------------------------------------------ */

/* Each value of one option, with the others as they are in *best. */
static bool search_option(struct search_run *run, const struct search_option *option,
                          struct search_point *best, double end_s, bool *helped) {
    for (size_t i = 0; i < option->count && hyp_clock_day_s() < end_s; i++) {
        struct search_point point = *best;
        bool is_kept = false;
        if (search_get(&point.options, option) == option->values[i]) continue;
        search_set(&point.options, option, option->values[i]);
        if (!search_try(run, &point, best, &is_kept)) return false;
        *helped |= is_kept;
    }
    return true;
}

static bool search_rounds(struct search_run *run, struct search_point *best, double end_s) {
    bool helped = true;
    while (helped && hyp_clock_day_s() < end_s) {
        helped = false;
        for (size_t i = 0; i < OPTIONS; i++) {
            if (!search_option(run, &options[i], best, end_s, &helped)) return false;
        }
    }
    return true;
}

/* The profiles as they are. *best is the best of them. */
static bool search_profiles(struct search_run *run, struct search_point points[HYP_REPLAY_DRIVER],
                            struct search_point *best) {
    *best = (struct search_point){.score.unserved = UINT64_MAX};
    for (size_t i = 0; i < HYP_REPLAY_DRIVER; i++) {
        bool is_taken = false;
        points[i].start = &hyp_replay_profiles[i];
        points[i].start->options(tol_context_device(run->setting->context), &points[i].options);
        if (!search_score(run, 0, points[i].options, &points[i].score, &is_taken)) return false;
        if (!is_taken)
            return hyp_fail("profile %s: %s", points[i].start->name, hyp_session_message());
        run->search->replays++;
        if (search_is_better(&points[i].score, &best->score)) *best = points[i];
    }
    run->search->profile = best->start;
    run->search->before[0] = best->score;
    return true;
}

/* Each start has the same share of the time that is left. */
static bool search_starts(struct search_run *run, struct search_point *best) {
    struct search_point points[HYP_REPLAY_DRIVER];
    if (!search_profiles(run, points, best)) return false;
    for (size_t i = 0; i < HYP_REPLAY_DRIVER; i++) {
        const double now_s = hyp_clock_day_s();
        const double share_s = (run->end_s - now_s) / (double)(HYP_REPLAY_DRIVER - i);
        if (!search_rounds(run, &points[i], now_s + share_s)) return false;
        if (search_is_better(&points[i].score, &best->score)) *best = points[i];
    }
    run->search->start = best->start;
    run->search->after[0] = best->score;
    return true;
}

/* What differs from the start, and what the other half says about it and about the profile. */
static bool search_judge(struct search_run *run, const struct search_point *best) {
    struct hyp_search *search = run->search;
    const struct tol_device *device = tol_context_device(run->setting->context);
    struct tol_pool_options start, profile;
    bool is_taken = false;
    search->start->options(device, &start);
    search->profile->options(device, &profile);
    for (size_t i = 0; i < OPTIONS; i++) {
        const double value = search_get(&best->options, &options[i]);
        if (value == search_get(&start, &options[i])) continue;
        search->changes[search->change_count].option = options[i].name;
        search->changes[search->change_count++].value = value;
    }
    if (!search_score(run, 1, profile, &search->before[1], &is_taken) ||
        !search_score(run, 1, best->options, &search->after[1], &is_taken)) {
        return false;
    }
    search->holds = search_is_better(&search->after[1], &search->before[1]);
    return true;
}

bool hyp_search_run(const struct hyp_replay_setting *setting, double seconds,
                    struct hyp_search *search) {
    const struct hyp_trace *trace = setting->trace;
    const double begin_s = hyp_clock_day_s();
    struct search_run run = {.setting = setting, .search = search, .end_s = begin_s + seconds};
    struct search_point best;
    *search = (struct hyp_search){.profile = NULL};
    if (trace->count < 2) return hyp_fail("a search requires at least 2 events");
    bool ok = search_cut(trace, 0, trace->count / 2, &run.halves[0]);
    ok = search_cut(trace, trace->count / 2, trace->count, &run.halves[1]) && ok;
    ok = ok && search_starts(&run, &best);
    search->seconds = hyp_clock_day_s() - begin_s;
    ok = ok && search_judge(&run, &best);
    for (size_t i = 0; i < HYP_SEARCH_HALVES; i++) free(run.halves[i].events);
    return ok;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void search_print_row(const char *name, const struct hyp_search_score *half) {
    printf("%-8s", name);
    for (size_t i = 0; i < HYP_SEARCH_HALVES; i++) {
        printf(" | %6llu %15llu %12llu %8lld", (number)half[i].unserved, (number)half[i].held_peak,
               (number)half[i].driver_calls, (long long)half[i].allocate_p99_ns);
    }
    printf("\n");
}

static void search_print_code(const struct hyp_search *search) {
    struct tol_pool_options start;
    search->start->options(NULL, &start);
    printf("    struct tol_pool_options options;\n"
           "    tol_pool_%s(tol_context_device(context), &options);\n",
           search->start->name);
    /* Replays remap as long as it takes; of the pool's profiles only lean does. */
    if (start.stitch_always) printf("    options.stitch_always = true;\n");
    for (size_t i = 0; i < search->change_count; i++) {
        printf("    options.%s = %.15g;\n", search->changes[i].option, search->changes[i].value);
        /* As search_set does it. */
        if (strcmp(search->changes[i].option, "trim_above") == 0) {
            printf("    if (options.trim_to > options.trim_above) "
                   "options.trim_to = options.trim_above;\n");
        }
    }
}

void hyp_search_print(const struct hyp_search *search) {
    printf("%zu replay%s of the first half in %.1f s; the best profile is %s\n", search->replays,
           hyp_plural(search->replays), search->seconds, search->profile->name);
    printf("%-8s | %-44s | %s\n%-8s", "", "first half, searched", "other half, held out", "");
    for (size_t i = 0; i < HYP_SEARCH_HALVES; i++) {
        printf(" | %6s %15s %12s %8s", "failed", "held peak", "driver calls", "p99 ns");
    }
    printf("\n");
    search_print_row(search->profile->name, search->before);
    if (search->change_count > 0) search_print_row("found", search->after);
    if (search->change_count == 0) {
        printf("no option helps by 0.1 %%: take the profile\n");
    } else if (!search->holds) {
        printf("what was found does not help on the other half: take the profile\n");
    } else {
        printf("what was found helps on the other half, too:\n");
    }
    if (search->holds) search_print_code(search);
    printf("in PyTorch, TOLLENS_TORCH_PROFILE=%s selects the profile alone\n",
           search->profile->name);
}

static json_t *search_score_json(const struct hyp_search_score *half) {
    json_t *list = json_array();
    for (size_t i = 0; i < HYP_SEARCH_HALVES; i++) {
        json_array_append_new(list, json_pack("{s:I, s:I, s:I, s:I}", "unserved",
                                              (json_int_t)half[i].unserved, "held_peak",
                                              (json_int_t)half[i].held_peak, "driver_calls",
                                              (json_int_t)half[i].driver_calls, "allocate_p99_ns",
                                              (json_int_t)half[i].allocate_p99_ns));
    }
    return list;
}

json_t *hyp_search_json(const struct hyp_search *search) {
    json_t *changes = json_object();
    for (size_t i = 0; i < search->change_count; i++) {
        json_object_set_new(changes, search->changes[i].option,
                            json_real(search->changes[i].value));
    }
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:I, s:f, s:b}", "profile", search->profile->name,
                     "start", search->start->name, "options", changes, "before",
                     search_score_json(search->before), "after", search_score_json(search->after),
                     "replays", (json_int_t)search->replays, "seconds", search->seconds, "holds",
                     search->holds);
}
