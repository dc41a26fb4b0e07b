/*
 * H12's attack with the traces of programs. It replays each trace of fixtures/traces in the profile
 * lean, and compares the most that the pool held with the least that one of PyTorch's allocators
 * reserved at its peak for the same trace (peaks.json).
 */
#include "attack/pool_walk.h"
#include "harness/attack.h"
#include "files/atomic_file.h"
#include "files/walk_csv.h"
#include "harness/ledger.h"
#include "record/record.h"
#include "trace/trace_replay.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char traces_folder[] = "fixtures/traces";
static const char *const traces_pytorch[] = {"native", "expandable", "async"};
enum { PYTORCH = sizeof traces_pytorch / sizeof traces_pytorch[0] };

/* The least that one of PyTorch's allocators reserved at its worst moment; 0: none was measured. */
static uint64_t traces_best(const json_t *row, const char **whose) {
    uint64_t best = 0;
    for (size_t i = 0; i < PYTORCH; i++) {
        const json_t *peak = json_object_get(json_object_get(row, "peaks"), traces_pytorch[i]);
        const json_int_t bytes = json_integer_value(json_object_get(peak, "reserved"));
        if (bytes <= 0 || (best > 0 && (uint64_t)bytes >= best)) continue;
        best = (uint64_t)bytes;
        *whose = traces_pytorch[i];
    }
    return best;
}

/* What the driver has allocated since the replay began. */
static uint64_t traces_held(void *user) {
    return hyp_ledger_read().bytes - *(const uint64_t *)user;
}

/* ---- the picture, of one trace: the reports draw it ------------------------------------------ */

static const char traces_drawn[] = "frames.csv";

/* walk_csv.h as ATTACK.TRACE.csv, and where the blocks were as ATTACK.TRACE_places.csv. */
static void traces_path(const struct hyp_attack *attack, const char *name, const char *what,
                        char path[1024]) {
    snprintf(path, 1024, "%.700s/%.96s.%.*s%s.csv", attack->session.out, attack->record->name,
             (int)strcspn(name, "."), name, what);
}

static void traces_draw_begin(struct hyp_attack *attack, const char *name,
                              struct hyp_replay *replay) {
    char path[1024];
    if (attack->session.out == NULL || attack->session.is_repeated ||
        strcmp(name, traces_drawn) != 0) {
        return;
    }
    replay->places = calloc(replay->trace->blocks + (size_t)1, sizeof *replay->places);
    cr_assert(replay->places != NULL, "no memory for a picture");
    traces_path(attack, name, "", path);
    replay->has_csv = hyp_walk_csv_begin(&replay->csv, path);
    cr_assert(replay->has_csv, "the evidence could not be written: %s", hyp_error());
}

static void traces_draw_places(const struct hyp_replay *replay, FILE *out) {
    const struct hyp_trace_event *events = replay->trace->events;
    const size_t last = replay->trace->count - 1;
    fprintf(out, "begin,end,address,bytes\n");
    for (size_t i = 0; i < replay->trace->blocks; i++) {
        const struct hyp_replay_place *place = &replay->places[i];
        if (place->bytes == 0) continue;
        fprintf(out, "%llu,%llu,%llu,%llu\n", (unsigned long long)events[place->begin].number,
                (unsigned long long)events[place->end < last ? place->end : last].number,
                (unsigned long long)place->address, (unsigned long long)place->bytes);
    }
}

static void traces_draw_end(struct hyp_attack *attack, const char *name,
                            struct hyp_replay *replay) {
    char path[1024];
    struct hyp_file file;
    if (!replay->has_csv) return;
    bool ok = hyp_file_keep(&replay->csv);
    traces_path(attack, name, "_places", path);
    ok = ok && hyp_file_begin(&file, path);
    if (ok) {
        traces_draw_places(replay, file.stream);
        ok = hyp_file_keep(&file);
    }
    free(replay->places);
    cr_assert(ok, "the evidence could not be written: %s", hyp_error());
}

/* ---- a trace --------------------------------------------------------------------------------- */

/* The replay's blocks that are live at its end go with the pool. */
static void traces_compare(struct hyp_attack *attack, const char *name,
                           const struct hyp_trace *trace, uint64_t best, const char *whose) {
    uint64_t base = hyp_ledger_read().bytes;
    struct hyp_replay replay = {.trace = trace,
                                .context = attack->context,
                                .count_held = traces_held,
                                .count_user = &base,
                                .floor = trace->peak / 4};
    replay.pool = hyp_walk_pool(attack, tol_pool_lean, 1, 0);
    if (replay.pool == NULL) return;
    traces_draw_begin(attack, name, &replay);
    const bool ok = hyp_replay_run(&replay);
    traces_draw_end(attack, name, &replay);
    tol_pool_destroy(replay.pool);
    if (!HYP_CHECK(attack, ok, "%s: %s", name, hyp_error())) return;
    HYP_CHECK(attack, replay.unserved == 0 && replay.requested_peak == trace->peak,
              "%s: %llu allocations failed; at most %llu bytes were live, expected %llu", name,
              (unsigned long long)replay.unserved, (unsigned long long)replay.requested_peak,
              (unsigned long long)trace->peak);
    HYP_CHECK(attack, hyp_ledger_read().bytes == base,
              "%s: after the pool was destroyed %lld bytes were not returned to the driver", name,
              (long long)(hyp_ledger_read().bytes - base));
    HYP_CHECK(attack, replay.held_peak <= best,
              "%s: the pool held %llu bytes at its worst moment; PyTorch's allocator %s held %llu",
              name, (unsigned long long)replay.held_peak, whose, (unsigned long long)best);
    hyp_attack_record(attack, (double)replay.held_peak / (double)trace->peak, "%s: held / live",
                      name);
    hyp_attack_record(attack, (double)replay.held_peak / (double)best, "%s: held / PyTorch's best",
                      name);
}

static void traces_try(struct hyp_attack *attack, const char *name, const json_t *row) {
    char path[1100];
    const char *whose = NULL;
    struct hyp_trace trace = {.events = NULL};
    const uint64_t best = traces_best(row, &whose);
    snprintf(path, sizeof path, "%.900s/%s/%.60s.xz", hyp_session_root(), traces_folder, name);
    if (HYP_CHECK(attack, hyp_trace_read(path, &trace), "%s", hyp_error()) &&
        HYP_CHECK(attack, best >= trace.peak, "%s: PyTorch held %llu bytes, fewer than were live",
                  name, (unsigned long long)best)) {
        traces_compare(attack, name, &trace, best, whose);
    }
    hyp_trace_free(&trace);
}

/* Whether the device has room for a trace. */
static bool traces_fit(struct hyp_attack *attack, const char *name, const json_t *row,
                       size_t free_bytes) {
    const char *whose = NULL;
    const uint64_t best = traces_best(row, &whose);
    if (free_bytes > best) return true;
    hyp_attack_label(attack, "scaled");
    hyp_attack_note(attack, "%s: not replayed: %zu bytes are free, and PyTorch held %llu", name,
                    free_bytes, (unsigned long long)best);
    return false;
}

static void traces_try_all(struct hyp_attack *attack, json_t *rows) {
    const char *name = NULL;
    json_t *row = NULL;
    size_t free_bytes = 0, done = 0, tried = 0;
    if (!HYP_OK(attack, tol_context_memory(attack->context, &free_bytes, NULL))) return;
    json_object_foreach(rows, name, row) {
        if (traces_fit(attack, name, row, free_bytes)) {
            traces_try(attack, name, row);
            tried++;
        }
        hyp_attack_progress(attack, (double)++done / (double)json_object_size(rows));
    }
    if (tried > 0) return;
    hyp_attack_not_tested(attack, "no_memory", "%zu bytes are free, too few for any trace",
                          free_bytes);
}

HYP_ATTACK_WITH(h12, traces_need_no_more_than_with_pytorch, .ledger = true, .soft_memory = "40G") {
    size_t bytes = 0;
    char path[100];
    json_error_t error;
    snprintf(path, sizeof path, "%s/peaks.json", traces_folder);
    char *text = hyp_attack_file(attack, path, &bytes);
    if (text == NULL) return;
    json_t *rows = json_loads(text, 0, &error);
    free(text);
    if (HYP_CHECK(attack, json_object_size(rows) > 0, "%s: %s", path, error.text)) {
        traces_try_all(attack, rows);
    }
    json_decref(rows);
}
