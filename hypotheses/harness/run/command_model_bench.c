/*
 * model bench: how fast a language model reads a prompt and writes tokens, as llama-bench says it.
 *
 * A prompt of random tokens is timed as a whole; then steps of 1, 8 and 32 sessions at once, each
 * step by itself. The first repetition of each is left out: kernels are loaded and graphs captured
 * in it. Times are of the host's clock around calls that wait for the device, as a user sees them.
 */
#include "command.h"
#include "decode_session.h"
#include "files/atomic_file.h"
#include "harness/clock.h"
#include "harness/session.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5, PROMPT = 512, TOKENS = 128, BATCHES = 3, SESSIONS = 32, NAME_BYTES = 32 };

static const char usage[] =
    "usage: tollens model bench FILE [options]\n"
    "\n"
    "Times a language model: a prompt (pp), and tokens written at 1, 8 and 32 sessions at once\n"
    "(tg), as tokens a second with the standard deviation over repetitions.\n"
    "\n"
    "  -p N         tokens of the prompt; default 512\n"
    "  -n N         tokens that each session writes; default 128\n"
    "  -r N         repetitions, after one that is left out; default 5\n"
    "  --device D   auto (default), cuda, cuda:N or soft\n"
    "  --json       an object a row\n"
    "\n"
    "p50 and p99 are of the time between two tokens. \"of weights\" is the bytes of the weights\n"
    "that a step reads, over its median time.\n";

struct bench {
    const char *path;
    uint64_t prompt, tokens, repeats;
    bool as_json;
    enum hyp_device_kind kind;
    int ordinal;
    struct tol_driver *driver;
    struct tol_context *context;
    struct tol_model *model;
    struct tol_loaded *loaded;
    struct tol_session *sessions[SESSIONS];
    size_t open;
    int *words; /* random tokens */
};

static const char *value_of(const char *name, int count, char **words, int *at) {
    if (strcmp(words[*at], name) != 0) return NULL;
    return *at + 1 < count ? words[++*at] : "";
}

static bool read_words(int count, char **words, struct bench *b) {
    *b = (struct bench){.prompt = PROMPT, .tokens = TOKENS, .repeats = REPEATS};
    if (!hyp_session_device(getenv("TOLLENS_DEVICE"), &b->kind, &b->ordinal)) return false;
    for (int i = 0; i < count; i++) {
        const struct {
            const char *name;
            uint64_t *number;
        } numbers[] = {{"-p", &b->prompt}, {"-n", &b->tokens}, {"-r", &b->repeats}};
        const char *value = NULL;
        size_t at = 0;
        while (at < 3 && (value = value_of(numbers[at].name, count, words, &i)) == NULL) at++;
        if (value != NULL) {
            if (!hyp_session_number(value, 100000, numbers[at].number) ||
                *numbers[at].number == 0) {
                return hyp_fail("%s must be a number from 1 to 100000, not '%s'", numbers[at].name,
                                value);
            }
        } else if ((value = value_of("--device", count, words, &i)) != NULL) {
            if (!hyp_session_device(value, &b->kind, &b->ordinal)) return false;
        } else if (strcmp(words[i], "--json") == 0) {
            b->as_json = true;
        } else if (words[i][0] == '-') {
            return hyp_fail("model bench has no option %s; see tollens model bench --help",
                            words[i]);
        } else if (b->path != NULL) {
            return hyp_fail("model bench takes one file; %s is a second one", words[i]);
        } else {
            b->path = words[i];
        }
    }
    return b->path != NULL || hyp_fail("model bench requires a file");
}

static tol_status open_all(struct bench *b) {
    enum hyp_device_kind kind = b->kind;
    const size_t positions = (size_t)(b->prompt > b->tokens ? b->prompt : b->tokens) + 16;
    uint32_t state = 1;
    tol_status status = tol_model_open(b->path, &b->model);
    if (status == TOL_OK) status = hyp_session_open(&kind, &b->driver);
    if (status == TOL_OK) status = tol_context_create(b->driver, b->ordinal, &b->context);
    if (status == TOL_OK) {
        status = tol_model_load(
            b->model, b->context,
            &(struct tol_load_options){.context = positions, .sessions = SESSIONS}, &b->loaded);
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

static void close_all(struct bench *b) {
    close_sessions(b);
    free(b->words);
    tol_model_unload(b->loaded);
    tol_context_destroy(b->context);
    tol_driver_close(b->driver);
    tol_model_close(b->model);
}

/* ---- what is timed ---- */

struct row {
    char name[NAME_BYTES]; /* "pp512", "tg128 @ 8" */
    double rates[100];     /* tokens a second, a repetition each */
    size_t count;
    struct tol_hdr *steps; /* ns; NULL for a prompt */
};

static void note(struct row *row, double rate) {
    if (row->count < sizeof row->rates / sizeof row->rates[0]) row->rates[row->count++] = rate;
}

static tol_status time_prompt(struct bench *b, struct row *row) {
    tol_status status = TOL_OK;
    snprintf(row->name, sizeof row->name, "pp%llu", (unsigned long long)b->prompt);
    for (uint64_t i = 0; i <= b->repeats && status == TOL_OK; i++) {
        status = tol_session_create(b->loaded, NULL, &b->sessions[0]);
        if (status != TOL_OK) break;
        b->open = 1;
        const uint64_t begin = hyp_clock_ns();
        status = tol_session_prompt(b->sessions[0], b->words, (size_t)b->prompt);
        const int64_t ns = (int64_t)(hyp_clock_ns() - begin);
        if (i > 0 && ns > 0) note(row, (double)b->prompt * 1e9 / (double)ns);
        close_sessions(b);
    }
    return status;
}

static tol_status open_sessions(struct bench *b, size_t count) {
    tol_status status = TOL_OK;
    for (size_t i = 0; i < count && status == TOL_OK; i++) {
        status = tol_session_create(b->loaded, NULL, &b->sessions[i]);
        if (status != TOL_OK) break;
        b->open++;
        status = tol_session_prompt(b->sessions[i], b->words + i % 8, 1);
    }
    return status;
}

static tol_status time_steps(struct bench *b, size_t sessions, struct row *row) {
    tol_status status = TOL_OK;
    snprintf(row->name, sizeof row->name, "tg%llu @ %zu", (unsigned long long)b->tokens, sessions);
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
            if (i > 0) tol_hdr_record(row->steps, ns);
        }
        if (i > 0 && all > 0) note(row, (double)(b->tokens * sessions) * 1e9 / (double)all);
        close_sessions(b);
    }
    return status;
}

/* ---- rows ---- */

static void print_row(const struct bench *b, const struct row *row) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < row->count; i++) mean += row->rates[i] / (double)row->count;
    for (size_t i = 0; i < row->count; i++) squares += pow(row->rates[i] - mean, 2);
    const double deviation = row->count > 1 ? sqrt(squares / (double)(row->count - 1)) : 0;
    const double p50 = row->steps != NULL ? (double)tol_hdr_percentile(row->steps, 50) : 0;
    const double p99 = row->steps != NULL ? (double)tol_hdr_percentile(row->steps, 99) : 0;
    const double bytes = (double)tol_model_shape(b->model)->weight_bytes;
    if (b->as_json) {
        json_t *line =
            json_pack("{s:i, s:s, s:s, s:s, s:f, s:f, s:i, s:f, s:f, s:f}", "schema", 1, "model",
                      b->path, "device", tol_context_device(b->context)->name, "test", row->name,
                      "tokens_per_s", mean, "deviation", deviation, "repeats", (int)row->count,
                      "p50_ns", p50, "p99_ns", p99, "weight_bytes", bytes);
        char *text = line != NULL ? json_dumps(line, JSON_REAL_PRECISION(9)) : NULL;
        if (text != NULL) puts(text);
        free(text);
        json_decref(line);
    } else if (row->steps == NULL) {
        printf("%-14s %12.2f +- %8.2f\n", row->name, mean, deviation);
    } else {
        printf("%-14s %12.2f +- %8.2f   %10.3f %10.3f   %8.2f GB/s of weights\n", row->name, mean,
               deviation, p50 / 1e6, p99 / 1e6, p50 > 0 ? bytes / p50 : 0);
    }
    fflush(stdout);
}

static tol_status run(struct bench *b) {
    static const size_t batches[BATCHES] = {1, 8, SESSIONS};
    struct row row = {.count = 0};
    tol_status status = time_prompt(b, &row);
    if (!b->as_json) {
        printf("%s on %s\n%-14s %12s    %8s   %10s %10s\n", b->path,
               tol_context_device(b->context)->name, "", "tokens/s", "", "p50 ms", "p99 ms");
    }
    if (status == TOL_OK) print_row(b, &row);
    for (size_t i = 0; i < BATCHES && status == TOL_OK; i++) {
        row = (struct row){.count = 0};
        if (tol_hdr_new_latency(&row.steps) != TOL_HDR_OK) return TOL_OUT_OF_HOST_MEMORY;
        status = time_steps(b, batches[i], &row);
        if (status == TOL_OK) print_row(b, &row);
        tol_hdr_free(row.steps);
    }
    return status;
}

int hyp_command_model_bench(int count, char **words) {
    static struct bench bench;
    if (count > 0 && (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0)) {
        fputs(usage, stdout);
        return HYP_EXIT_OK;
    }
    if (!read_words(count, words, &bench)) return hyp_command_complain("%s", hyp_error());
    tol_status status = open_all(&bench);
    if (status == TOL_OK) status = run(&bench);
    const int code =
        status == TOL_OK ? HYP_EXIT_OK : hyp_command_complain("%s", hyp_session_message());
    close_all(&bench);
    return code;
}
