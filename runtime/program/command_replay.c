/*
 * replay: a recorded trace of a pool, done again with any profile or with all, and what came of it.
 */
#include "files/atomic_file.h"
#include "files/walk_csv.h"
#include "harness/clock.h"
#include "harness/session.h"
#include "replay_map.h"
#include "replay_search.h"
#include "run/command.h"
#include "trace/trace_file.h"

#include <stdlib.h>
#include <string.h>

/* Which replays: a profile, or all. */
struct replay_options {
    const char *path, *out;
    const struct hyp_replay_profile *profile; /* NULL: all */
    uint64_t limit, floor, search_s;
    bool has_floor, has_profile, has_search;
    enum hyp_device_kind kind;
    int ordinal;
};

static bool read_profile(const char *name, const struct hyp_replay_profile **profile) {
    *profile = NULL;
    if (strcmp(name, "all") == 0) return true;
    for (size_t i = 0; i < HYP_REPLAY_PROFILES; i++) {
        if (strcmp(hyp_replay_profiles[i].name, name) != 0) continue;
        *profile = &hyp_replay_profiles[i];
        return true;
    }
    return hyp_fail(
        "unknown profile '%s': it must be default, tight, latency, torch, lean, driver or "
        "all",
        name);
}

static bool replay_read_bytes(const char *option, const char *text, uint64_t *bytes) {
    return hyp_session_number(text, INT64_MAX, bytes) ||
           hyp_fail("%s must be a number of bytes, not '%s'", option, text);
}

/* The value of an option, as "--name VALUE" or "--name=VALUE". NULL: it is another word. */
static const char *replay_value_of(const char *name, int count, char **words, int *at) {
    size_t length = strlen(name);
    if (strcmp(words[*at], name) == 0) return *at + 1 < count ? words[++*at] : "";
    bool fits = strncmp(words[*at], name, length) == 0 && words[*at][length] == '=';
    return fits ? words[*at] + length + 1 : NULL;
}

static bool replay_read_words(int count, char **words, struct replay_options *options) {
    const char *value = NULL;
    *options = (struct replay_options){.profile = &hyp_replay_profiles[0]};
    if (!hyp_session_device(getenv("TOLLENS_DEVICE"), &options->kind, &options->ordinal))
        return false;
    for (int i = 0; i < count; i++) {
        if ((value = replay_value_of("--profile", count, words, &i)) != NULL) {
            if (!read_profile(value, &options->profile)) return false;
            options->has_profile = true;
        } else if ((value = replay_value_of("--search", count, words, &i)) != NULL) {
            if (!hyp_session_number(value, 1000000, &options->search_s)) {
                return hyp_fail("--search must be a number of seconds, not '%s'", value);
            }
            options->has_search = true;
        } else if ((value = replay_value_of("--device", count, words, &i)) != NULL) {
            if (!hyp_session_device(value, &options->kind, &options->ordinal)) return false;
        } else if ((value = replay_value_of("--limit", count, words, &i)) != NULL) {
            if (!replay_read_bytes("--limit", value, &options->limit)) return false;
        } else if ((value = replay_value_of("--floor", count, words, &i)) != NULL) {
            if (!replay_read_bytes("--floor", value, &options->floor)) return false;
            options->has_floor = true;
        } else if ((value = replay_value_of("--out", count, words, &i)) != NULL) {
            if (value[0] == '\0') return hyp_fail("--out requires a folder");
            options->out = value;
        } else if (words[i][0] == '-') {
            return hyp_command_no_option("replay", words[i]);
        } else if (options->path != NULL) {
            return hyp_fail("replay takes one trace; %s is a second one", words[i]);
        } else {
            options->path = words[i];
        }
    }
    if (options->path == NULL) return hyp_fail("replay requires a trace");
    if (options->limit != 0 && options->profile == &hyp_replay_profiles[HYP_REPLAY_DRIVER]) {
        return hyp_fail("the driver's own pool has no limit");
    }
    if (options->has_search && (options->has_profile || options->out != NULL)) {
        return hyp_fail("--search begins with the best profile and writes no files: it takes "
                        "neither --profile nor --out");
    }
    return true;
}

/* ---- one replay ------------------------------------------------------------------------------ */

/* With the evidence's table, where there is to be one. */
static bool replay_run_to(struct hyp_replay *replay, const char *folder) {
    char path[1100];
    if (folder == NULL) return hyp_replay_run(replay);
    snprintf(path, sizeof path, "%s/fragmentation.csv", folder);
    if (!hyp_directory_make(folder) || !hyp_walk_csv_begin(&replay->csv, path)) return false;
    replay->has_csv = true;
    if (hyp_replay_run(replay)) return hyp_file_keep(&replay->csv);
    hyp_file_drop(&replay->csv);
    return false;
}

/* More replays, which need the memory that the first one's pool had. */
static bool replay_find_limits(const struct hyp_replay_setting *setting, bool wants_limit,
                               struct hyp_replay_row *row) {
    const bool failed = row->replay.unserved > 0;
    if (failed && !hyp_replay_fits(setting->context, row->profile, setting->limit, setting->trace,
                                   row->replay.first_unserved.index, &row->fits)) {
        return false;
    }
    if (!wants_limit && (!failed || setting->limit == 0)) return true;
    return hyp_replay_least_limit(setting->context, row->profile, setting->trace, &row->least_limit,
                                  &row->least_unserved);
}

/* folder: for the files of --out; NULL: none. The pool goes. */
static bool replay_do(const struct hyp_replay_setting *setting,
                      const struct hyp_replay_profile *profile, const char *folder,
                      bool wants_limit, struct hyp_replay_row *row) {
    const size_t events = folder != NULL ? 2 * setting->trace->count + 64 : 0;
    *row = (struct hyp_replay_row){
        .profile = profile,
        .replay = {.trace = setting->trace, .context = setting->context, .floor = setting->floor},
        .begin_s = hyp_clock_day_s()};
    row->replay.pool = hyp_replay_pool(setting->context, profile, setting->limit, events);
    bool ok = row->replay.pool != NULL && (folder == NULL || hyp_replay_map_begin(&row->replay)) &&
              replay_run_to(&row->replay, folder);
    row->length_s = hyp_clock_day_s() - row->begin_s;
    ok = ok && hyp_replay_row_fill(row) && (folder == NULL || hyp_replay_write_pool(row, folder));
    tol_pool_destroy(row->replay.pool);
    row->replay.pool = NULL;
    ok = ok && replay_find_limits(setting, wants_limit, row);
    if (ok && folder != NULL) {
        ok = hyp_replay_write(setting, row, folder) && hyp_replay_map_write(setting, row, folder);
    }
    hyp_replay_map_free(&row->replay);
    return ok;
}

/* ---- one or all ------------------------------------------------------------------------------ */

static bool replay_answer(json_t *document) {
    return hyp_command_answer("replay", document, HYP_EXIT_OK) == HYP_EXIT_OK ||
           hyp_fail("out of memory");
}

static bool replay_one(const struct replay_options *options,
                       const struct hyp_replay_setting *setting, bool *serves) {
    struct hyp_replay_row row;
    bool ok = replay_do(setting, options->profile, options->out, false, &row);
    *serves = row.replay.unserved == 0;
    if (ok && hyp_command_is_json()) {
        ok = replay_answer(hyp_replay_json(setting, &row));
    } else if (ok) {
        hyp_replay_print_trace(setting);
        hyp_replay_print(setting, &row);
    }
    hyp_replay_row_free(&row);
    return ok;
}

/* The driver's own pool is compared on a GPU only, where it is NVIDIA's, and without a limit, which
 * it does not have. */
static bool replay_all(const struct replay_options *options,
                       const struct hyp_replay_setting *setting, bool *serves) {
    struct hyp_replay_row rows[HYP_REPLAY_PROFILES] = {{.profile = NULL}};
    const bool has_driver = options->kind == HYP_DEVICE_CUDA && options->limit == 0;
    const size_t count = has_driver ? HYP_REPLAY_PROFILES : HYP_REPLAY_DRIVER;
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        char folder[1100];
        const struct hyp_replay_profile *profile = &hyp_replay_profiles[i];
        if (options->out != NULL) {
            snprintf(folder, sizeof folder, "%.1000s/%s", options->out, profile->name);
        }
        ok = replay_do(setting, profile, options->out != NULL ? folder : NULL, true, &rows[i]);
    }
    *serves = ok && rows[hyp_replay_best(rows, count)].replay.unserved == 0;
    if (ok && hyp_command_is_json()) {
        ok = replay_answer(hyp_replay_table_json(setting, rows, count));
    } else if (ok) {
        hyp_replay_print_trace(setting);
        hyp_replay_print_table(setting, rows, count);
    }
    for (size_t i = 0; i < count; i++) hyp_replay_row_free(&rows[i]);
    return ok;
}

static bool replay_search(const struct replay_options *options,
                          const struct hyp_replay_setting *setting, bool *serves) {
    struct hyp_search search;
    if (!hyp_search_run(setting, (double)options->search_s, &search)) return false;
    *serves = search.after[0].unserved + search.after[1].unserved == 0;
    if (hyp_command_is_json()) {
        json_t *all = hyp_replay_setting_json(setting);
        json_object_set_new(all, "search", hyp_search_json(&search));
        return replay_answer(all);
    }
    hyp_replay_print_trace(setting);
    hyp_search_print(&search);
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* The soft device has twice what the trace needs, and at least 40 GiB. None of it is touched. */
static void replay_set_memory(const struct hyp_trace *trace) {
    char text[32];
    const uint64_t needs = (trace->peak >> 29) + 1; /* twice the peak, in GiB */
    snprintf(text, sizeof text, "%lluG",
             (unsigned long long)(needs < 40     ? 40
                                  : needs > 4096 ? 4096
                                                 : needs));
    setenv("TOLLENS_SOFT_MEMORY", text, 0);
}

static bool replay_on_device(struct replay_options *options, const struct hyp_trace *trace,
                             bool *serves) {
    struct tol_driver *driver = NULL;
    struct hyp_replay_setting setting = {.path = options->path,
                                         .trace = trace,
                                         .limit = options->limit,
                                         .floor =
                                             options->has_floor ? options->floor : trace->peak / 4};
    replay_set_memory(trace);
    bool ok = hyp_session_open(&options->kind, &driver) == TOL_OK &&
              tol_context_create(driver, options->ordinal, &setting.context) == TOL_OK;
    if (!ok) hyp_fail("%s", hyp_session_message());
    ok = ok && (options->has_search        ? replay_search(options, &setting, serves)
                : options->profile != NULL ? replay_one(options, &setting, serves)
                                           : replay_all(options, &setting, serves));
    tol_context_destroy(setting.context);
    tol_driver_close(driver);
    return ok;
}

int hyp_command_replay(int count, char **words) {
    struct replay_options options;
    struct hyp_trace trace = {.events = NULL};
    bool serves = false;
    bool ok = replay_read_words(count, words, &options) && hyp_trace_read(options.path, &trace) &&
              replay_on_device(&options, &trace, &serves);
    hyp_trace_free(&trace);
    if (!ok) return hyp_command_complain("%s", hyp_error());
    return serves ? HYP_EXIT_OK : HYP_EXIT_FALSIFIED;
}
