/*
 * model bench: how fast a language model reads a prompt and writes tokens, as llama-bench says it.
 *
 * A prompt of random tokens is timed as a whole, and with its first token; then steps of 1, 8 and
 * 32 sessions at once, each step on its own. The first repetition of each does not count: kernels
 * are loaded and graphs captured in it. Times are of the host's clock around calls that wait for
 * the device, as a user sees them.
 */
#include "run/command.h"
#include "decode_session.h"
#include "files/atomic_file.h"
#include "files/hlog.h"
#include "harness/clock.h"
#include "harness/session.h"
#include "model_devices.h"
#include "model_gaps.h"
#include "model_load.h"
#include "model_words.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5, PROMPT = 512, TOKENS = 128, BATCHES = 3, SESSIONS = 32, NAME_BYTES = 32 };

static const char usage[] =
    "usage: tollens model bench FILE [options]\n"
    "\n"
    "Times a language model: a prompt (pp), and generated tokens with 1, 8 and 32 sessions at "
    "once\n"
    "(tg), in tokens per second with the standard deviation over repetitions.\n"
    "\n"
    "  -p N         tokens of the prompt; default 512\n"
    "  -n N         tokens that each session generates; default 128\n"
    "  -r N         repetitions, after one that does not count; default 5\n"
    "  --device D   auto (default), cuda, cuda:N or soft\n"
    "  --devices L  compute the model on all devices of this list, such as 0,1\n"
    "  --exchange W how they exchange data: flags in memory, direct copies, or auto (default)\n"
    "  --cache TYPE keys and values as f16 (default) or q8_0\n"
    "  --temp T     sample at a temperature of 0 to 2; default 0, the largest logit\n"
    "  --top-k K    from the K largest logits; 0 (default): from all\n"
    "  --top-p P    from the fewest tokens whose probabilities reach P; 0 (default): from all\n"
    "  --host-draws sample on the host, from logits that are copied to it\n"
    "  --out DIR    write times.hlog, the histograms of all times, and bench.json\n"
    "  --json       print one object per row\n"
    "\n"
    "\"load\" is the rate at which the weights were copied from the file to the device, the "
    "fastest of\n"
    "four. p50 and p99 are percentiles of the time to the first token (first), or between two "
    "tokens\n"
    "(tg). \"read\" is the number of bytes that a step reads (weights, keys and values) divided "
    "by its\n"
    "median time, and its share of the devices' memory bandwidth, if the driver reports it. The "
    "last\n"
    "row, on one device, has the kernels of one session's token, measured one by one, and the "
    "part of\n"
    "the median time between two tokens in which no kernel ran. Events prolong kernels, so that "
    "part is\n"
    "a lower bound.\n";

struct bench {
    const char *path;
    uint64_t prompt, tokens, repeats;
    bool as_json;
    enum kn_cache cache;
    struct tol_sampling sampling; /* of each session */
    bool draws_on_host;
    const char *out; /* NULL: no evidence */
    json_t *rows;
    struct hyp_hlog log;
    double begin_s;
    enum hyp_device_kind kind;
    int ordinal;
    struct tol_driver *driver;
    struct hyp_model_devices devices;
    enum kn_collective_way way;
    struct tol_model *model;
    struct tol_loaded *loaded;
    struct hyp_model_load load;
    struct tol_session *sessions[SESSIONS];
    size_t open;
    int *words; /* random tokens */
};

/* A sampling limit, at words[*i]. *known: whether it is one. */
static bool read_draw(int count, char **words, int *i, struct bench *b, bool *known) {
    double top_k = 0;
    const struct {
        const char *name;
        double *number;
    } limits[] = {
        {"--temp", &b->sampling.temperature}, {"--top-p", &b->sampling.top_p}, {"--top-k", &top_k}};
    *known = true;
    if (strcmp(words[*i], "--host-draws") == 0) return b->draws_on_host = true;
    for (size_t at = 0; at < sizeof limits / sizeof limits[0]; at++) {
        char *end = NULL;
        const char *value = hyp_model_value_of(limits[at].name, count, words, i);
        if (value == NULL) continue;
        *limits[at].number = strtod(value, &end);
        if (end == value || *end != '\0' || !(*limits[at].number >= 0) ||
            *limits[at].number > 100000) {
            return hyp_fail("%s must be a number of 0 or more, not '%s'", limits[at].name, value);
        }
        if (limits[at].number == &top_k) b->sampling.top_k = (size_t)top_k;
        return true;
    }
    *known = false;
    return true;
}

static bool model_bench_read_words(int count, char **words, struct bench *b) {
    *b = (struct bench){.prompt = PROMPT, .tokens = TOKENS, .repeats = REPEATS};
    if (!hyp_session_device(getenv("TOLLENS_DEVICE"), &b->kind, &b->ordinal)) return false;
    for (int i = 0; i < count; i++) {
        const struct {
            const char *name;
            uint64_t *number;
        } numbers[] = {{"-p", &b->prompt}, {"-n", &b->tokens}, {"-r", &b->repeats}};
        const char *value = NULL;
        size_t at = 0;
        bool is_draw = false;
        if (!read_draw(count, words, &i, b, &is_draw)) return false;
        if (is_draw) continue;
        while (at < 3 && (value = hyp_model_value_of(numbers[at].name, count, words, &i)) == NULL)
            at++;
        if (value != NULL) {
            if (!hyp_session_number(value, 100000, numbers[at].number) ||
                *numbers[at].number == 0) {
                return hyp_fail("%s must be a number from 1 to 100000, not '%s'", numbers[at].name,
                                value);
            }
        } else if ((value = hyp_model_value_of("--device", count, words, &i)) != NULL) {
            if (!hyp_session_device(value, &b->kind, &b->ordinal)) return false;
        } else if ((value = hyp_model_value_of("--devices", count, words, &i)) != NULL) {
            if (!hyp_model_devices_read(value, &b->devices)) return false;
        } else if ((value = hyp_model_value_of("--exchange", count, words, &i)) != NULL) {
            if (!hyp_model_way(value, &b->way)) return false;
        } else if ((value = hyp_model_value_of("--cache", count, words, &i)) != NULL) {
            if (!hyp_model_cache(value, &b->cache)) return false;
        } else if ((value = hyp_model_value_of("--out", count, words, &i)) != NULL) {
            if (value[0] == '\0') return hyp_fail("--out requires a folder");
            b->out = value;
        } else if (strcmp(words[i], "--json") == 0) {
            hyp_command_be_json();
            b->as_json = true;
        } else if ((value = hyp_model_value_of("-m --model", count, words, &i)) != NULL) {
            if (!hyp_model_take_path("model bench", value, &b->path)) return false;
        } else if (!hyp_model_take_path("model bench", words[i], &b->path)) {
            return false;
        }
    }
    return b->path != NULL || hyp_fail("model bench requires a file");
}

static tol_status model_bench_open_all(struct bench *b) {
    enum hyp_device_kind kind = b->kind;
    const size_t positions = (size_t)(b->prompt > b->tokens ? b->prompt : b->tokens) + 16;
    uint32_t state = 1;
    tol_status status = tol_model_open(b->path, &b->model);
    if (status == TOL_OK) status = hyp_session_open(&kind, &b->driver);
    struct tol_load_options options = {.context = positions,
                                       .sessions = SESSIONS,
                                       .cache = b->cache,
                                       .way = b->way,
                                       .draws_on_host = b->draws_on_host};
    if (status == TOL_OK) {
        status = hyp_model_devices_open(&b->devices, b->driver, b->ordinal, &options);
    }
    if (status == TOL_OK) {
        status = hyp_model_load(b->model, b->devices.contexts[0], &options, &b->loaded, &b->load);
    }
    if (status != TOL_OK) return status;
    b->words = calloc(positions, sizeof *b->words);
    if (b->words == NULL) return TOL_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < positions; i++) {
        state = state * 1664525 + 1013904223;
        b->words[i] = (int)((state >> 8) % tol_model_shape(b->model)->vocabulary);
    }
    return TOL_OK;
}

static void close_sessions(struct bench *b) {
    while (b->open > 0) tol_session_destroy(b->sessions[--b->open]);
}

static void model_bench_close_all(struct bench *b) {
    close_sessions(b);
    free(b->words);
    tol_model_unload(b->loaded);
    hyp_model_devices_close(&b->devices);
    tol_driver_close(b->driver);
    tol_model_close(b->model);
}

/* ---- what is timed ---- */

struct row {
    char name[NAME_BYTES]; /* "pp512", "first512", "tg128 @ 8" */
    double rates[100];     /* tokens a second, a repetition each */
    size_t count;
    struct tol_hdr *times; /* ns, to the first token or between two; NULL for a prompt */
    double read_bytes;     /* of a step; 0 for others */
};

static void model_bench_note(struct row *row, double rate) {
    if (row->count < sizeof row->rates / sizeof row->rates[0]) row->rates[row->count++] = rate;
}

/* The prompt, and the prompt with the first token, of which all but one position is new. */
static tol_status time_prompt(struct bench *b, struct row *row, struct row *first) {
    tol_status status = TOL_OK;
    snprintf(row->name, sizeof row->name, "pp%llu", (unsigned long long)b->prompt);
    snprintf(first->name, sizeof first->name, "first%llu", (unsigned long long)b->prompt);
    for (uint64_t i = 0; i <= b->repeats && status == TOL_OK; i++) {
        int token = 0;
        const uint64_t begin = hyp_clock_ns();
        status = tol_session_create(b->loaded, NULL, &b->sessions[0]);
        if (status != TOL_OK) break;
        b->open = 1;
        const uint64_t created = hyp_clock_ns();
        status = tol_session_prompt(b->sessions[0], b->words, (size_t)b->prompt);
        const int64_t ns = (int64_t)(hyp_clock_ns() - created);
        if (status == TOL_OK) status = tol_session_step(b->sessions[0], &token);
        const int64_t first_ns = (int64_t)(hyp_clock_ns() - begin);
        if (i > 0 && ns > 0) {
            model_bench_note(row, (double)b->prompt * 1e9 / (double)ns);
            model_bench_note(first, 1e9 / (double)first_ns);
            tol_hdr_record(first->times, first_ns);
        }
        close_sessions(b);
    }
    return status;
}

/* What a step reads: all weights but rows of an embedding that is not the output, and the keys and
 * values of half of the tokens it goes through. */
static double step_bytes(const struct bench *b, size_t sessions) {
    struct tol_loaded_stats stats;
    tol_loaded_stats(b->loaded, &stats);
    double bytes = (double)stats.weight_bytes;
    const struct tol_gguf *file = tol_model_file(b->model);
    const struct tol_gguf_tensor *table = tol_gguf_find_tensor(file, "token_embd.weight");
    if (table != NULL) { /* on each device; where it is the output matrix, each reads its share */
        const bool is_output = tol_gguf_find_tensor(file, "output.weight") == NULL;
        bytes -= (double)table->bytes * (stats.devices - (is_output ? 1 : 0));
    }
    const double positions = (double)b->tokens / 2 + 1;
    return bytes + (double)sessions * positions / 16 * (double)stats.page_bytes;
}

static tol_status open_sessions(struct bench *b, size_t count) {
    tol_status status = TOL_OK;
    for (size_t i = 0; i < count && status == TOL_OK; i++) {
        struct tol_session_options options = {.sampling = b->sampling};
        options.sampling.seed = i;
        status = tol_session_create(b->loaded, &options, &b->sessions[i]);
        if (status != TOL_OK) break;
        b->open++;
        status = tol_session_prompt(b->sessions[i], b->words + i % 8, 1);
    }
    return status;
}

static tol_status time_steps(struct bench *b, size_t sessions, struct row *row) {
    tol_status status = TOL_OK;
    snprintf(row->name, sizeof row->name, "tg%llu @ %zu", (unsigned long long)b->tokens, sessions);
    row->read_bytes = step_bytes(b, sessions);
    for (uint64_t i = 0; i <= b->repeats && status == TOL_OK; i++) {
        struct tol_step steps[SESSIONS];
        int64_t all = 0;
        status = open_sessions(b, sessions);
        for (uint64_t token = 0; token <= b->tokens && status == TOL_OK; token++) {
            for (size_t j = 0; j < sessions; j++) steps[j].session = b->sessions[j];
            const uint64_t begin = hyp_clock_ns();
            status = tol_sessions_step(steps, sessions);
            const int64_t ns = (int64_t)(hyp_clock_ns() - begin);
            if (token == 0) continue; /* draws from the prompt, and computes nothing */
            all += ns;
            if (i > 0) tol_hdr_record(row->times, ns);
        }
        if (i > 0 && all > 0)
            model_bench_note(row, (double)(b->tokens * sessions) * 1e9 / (double)all);
        close_sessions(b);
    }
    return status;
}

/* ---- rows ---- */

/* Bytes a second of the devices' memory by its clock, two transfers a cycle; 0: not known. */
static double peak_of(const struct bench *b) {
    const struct tol_device *device = tol_context_device(b->devices.contexts[0]);
    return b->devices.count * 2e3 * (double)device->memory_clock_khz *
           (double)device->memory_bus_bits / 8;
}

static json_t *line_of(const struct bench *b, const char *test) {
    return json_pack("{s:i, s:s, s:s, s:s}", "schema", 2, "model", b->path, "device",
                     hyp_model_devices_name(&b->devices), "test", test);
}

/* Prints an object or keeps it for bench.json. Takes it. */
static tol_status model_bench_put_line(const struct bench *b, json_t *line) {
    char *text = line != NULL ? json_dumps(line, JSON_REAL_PRECISION(9)) : NULL;
    if (text == NULL) return TOL_OUT_OF_HOST_MEMORY;
    if (b->as_json) puts(text);
    free(text);
    return json_array_append_new(b->rows, line) == 0 ? TOL_OK : TOL_OUT_OF_HOST_MEMORY;
}

/* The times' tag has no blanks: "tg128@8". */
static bool add_times(struct bench *b, const struct row *row) {
    char tag[NAME_BYTES];
    size_t length = 0;
    if (b->out == NULL || row->times == NULL) return true;
    for (const char *at = row->name; *at != '\0'; at++) {
        if (*at != ' ') tag[length++] = *at;
    }
    tag[length] = '\0';
    return hyp_hlog_add(&b->log, tag, 0, hyp_clock_day_s() - b->begin_s, row->times);
}

static tol_status model_bench_print_row(struct bench *b, const struct row *row) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < row->count; i++) mean += row->rates[i] / (double)row->count;
    for (size_t i = 0; i < row->count; i++) squares += pow(row->rates[i] - mean, 2);
    const double deviation = row->count > 1 ? sqrt(squares / (double)(row->count - 1)) : 0;
    const double p50 = row->times != NULL ? (double)tol_hdr_percentile(row->times, 50) : 0;
    const double p99 = row->times != NULL ? (double)tol_hdr_percentile(row->times, 99) : 0;
    const double rate = p50 > 0 ? row->read_bytes * 1e9 / p50 : 0;
    json_t *line = line_of(b, row->name);
    json_object_set_new(line, "tokens_per_s", json_real(mean));
    json_object_set_new(line, "deviation", json_real(deviation));
    json_object_set_new(line, "repeats", json_integer((json_int_t)row->count));
    json_object_set_new(line, "p50_ns", json_real(p50));
    json_object_set_new(line, "p99_ns", json_real(p99));
    json_object_set_new(line, "weight_bytes",
                        json_real((double)tol_model_shape(b->model)->weight_bytes));
    json_object_set_new(line, "read_bytes", json_real(row->read_bytes));
    json_object_set_new(line, "read_bytes_per_s", json_real(rate));
    json_object_set_new(line, "peak_bytes_per_s", json_real(peak_of(b)));
    if (!b->as_json) {
        printf("%-14s %12.2f +- %8.2f", row->name, mean, deviation);
        if (row->times != NULL) printf("   %10.3f %10.3f", p50 / 1e6, p99 / 1e6);
        if (rate > 0) printf("   %8.2f GB/s read", rate / 1e9);
        if (rate > 0 && peak_of(b) > 0) printf(", %.1f %% of peak", 100 * rate / peak_of(b));
        printf("\n");
    }
    const tol_status status = model_bench_put_line(b, line);
    fflush(stdout);
    return status == TOL_OK && !add_times(b, row) ? TOL_UNREADABLE : status;
}

/* The kernels of a token of one session, whose median time was p50. */
static tol_status print_gaps(struct bench *b, double p50) {
    struct hyp_model_kernels kernels = {.count = 0};
    const tol_status status = hyp_model_kernels(b->path, b->kind, b->devices.ordinals[0], &kernels);
    if (status != TOL_OK) return status;
    const double between = fmax(0, p50 - kernels.ns);
    json_t *line = line_of(b, "gaps");
    json_object_set_new(line, "kernels", json_integer((json_int_t)kernels.count));
    json_object_set_new(line, "kernels_ns", json_real(kernels.ns));
    json_object_set_new(line, "between_ns", json_real(between));
    if (!b->as_json) {
        printf(
            "%zu kernels of a token take %.3f ms, and %.3f ms at least are between them: %.2f us "
            "each\n",
            kernels.count, kernels.ns / 1e6, between / 1e6, between / 1e3 / (double)kernels.count);
    }
    return model_bench_put_line(b, line);
}

/* How fast the weights came, and their share of what a pinned copy can do. */
static tol_status print_load(struct bench *b) {
    const double share = 100 * b->load.bytes_per_s / b->load.pinned_bytes_per_s;
    json_t *line = line_of(b, "load");
    json_object_set_new(line, "bytes_per_s", json_real(b->load.bytes_per_s));
    json_object_set_new(line, "pinned_bytes_per_s", json_real(b->load.pinned_bytes_per_s));
    if (!b->as_json) {
        printf("%-14s %12.2f GB/s, %.1f %% of a pinned copy\n", "load", b->load.bytes_per_s / 1e9,
               share);
    }
    return model_bench_put_line(b, line);
}

static tol_status model_bench_run_rows(struct bench *b) {
    static const size_t batches[BATCHES] = {1, 8, SESSIONS};
    struct row prompt = {.count = 0}, first = {.count = 0};
    double p50 = 0;
    if (tol_hdr_new_latency(&first.times) != TOL_HDR_OK) return TOL_OUT_OF_HOST_MEMORY;
    tol_status status = time_prompt(b, &prompt, &first);
    if (!b->as_json) {
        printf("%s on %s\n%-14s %12s    %8s   %10s %10s\n", b->path,
               hyp_model_devices_name(&b->devices), "", "tokens/s", "", "p50 ms", "p99 ms");
    }
    if (status == TOL_OK) status = print_load(b);
    if (status == TOL_OK) status = model_bench_print_row(b, &prompt);
    if (status == TOL_OK) status = model_bench_print_row(b, &first);
    tol_hdr_free(first.times);
    for (size_t i = 0; i < BATCHES && status == TOL_OK; i++) {
        struct row row = {.count = 0};
        if (tol_hdr_new_latency(&row.times) != TOL_HDR_OK) return TOL_OUT_OF_HOST_MEMORY;
        status = time_steps(b, batches[i], &row);
        if (status == TOL_OK) status = model_bench_print_row(b, &row);
        if (i == 0) p50 = (double)tol_hdr_percentile(row.times, 50);
        tol_hdr_free(row.times);
    }
    return status == TOL_OK && b->devices.count == 1 ? print_gaps(b, p50) : status;
}

/* Writes the rows to a file that is complete or does not exist. */
static bool write_rows(const struct bench *b) {
    char path[4200];
    struct hyp_file file;
    snprintf(path, sizeof path, "%s/bench.json", b->out);
    if (!hyp_file_begin(&file, path)) return false;
    json_dumpf(b->rows, file.stream, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    return hyp_file_keep(&file);
}

/* false: what could not be written; hyp_error(). */
static bool model_bench_run(struct bench *b, tol_status *status) {
    char path[4200];
    b->rows = json_array();
    b->begin_s = hyp_clock_day_s();
    if (b->out != NULL) {
        snprintf(path, sizeof path, "%s/times.hlog", b->out);
        if (!hyp_directory_make(b->out) || !hyp_hlog_begin(&b->log, path, b->begin_s)) {
            return false;
        }
    }
    *status = model_bench_run_rows(b);
    bool ok = b->out == NULL || hyp_hlog_end(&b->log);
    ok = ok && (b->out == NULL || *status != TOL_OK || write_rows(b));
    json_decref(b->rows);
    return ok;
}

int hyp_command_model_bench(int count, char **words) {
    static struct bench bench;
    if (count > 0 && (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0)) {
        fputs(usage, stdout);
        return HYP_EXIT_OK;
    }
    hyp_command_has_help(usage, strlen(usage));
    if (!model_bench_read_words(count, words, &bench))
        return hyp_command_complain("%s", hyp_error());
    tol_status status = model_bench_open_all(&bench);
    bool is_written = true;
    if (status == TOL_OK) is_written = model_bench_run(&bench, &status);
    int code = HYP_EXIT_OK;
    if (!is_written) {
        code = hyp_command_complain("%s", hyp_error());
    } else if (status != TOL_OK) {
        code = hyp_command_complain("%s", hyp_session_message_of(status));
    }
    model_bench_close_all(&bench);
    return code;
}
