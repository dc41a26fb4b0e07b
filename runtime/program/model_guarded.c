/*
 * What a worker keeps of a text: one line with everything that its sampling depends on, then one
 * line per token. The prompt is the job itself. A successor compares the first line with its own,
 * so that a text is never continued under other settings, and replays the tokens.
 */
#include "model_guarded.h"

#include "tollens.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SETTINGS_BYTES = 2048, TOKEN_BYTES = 16 };

/* ---- what is kept ---- */

/* The settings of a job in one line. */
static void model_guarded_describe(const struct hyp_model_guarded *m,
                                   const struct tol_text_options *text, char *line, size_t bytes) {
    const struct tol_sampling *s = &text->sampling;
    struct stat about = {.st_size = 0};
    (void)stat(m->path, &about); /* it was opened before */
    int length = snprintf(
        line, bytes,
        "model=%.500s:%lld ctx=%llu cache=%s seed=%llu temp=%.17g top-k=%zu "
        "top-p=%.17g min-p=%.17g repeat-penalty=%.17g repeat-last-n=%zu n=%zu special=%d "
        "ignore-end=%d",
        m->path, (long long)about.st_size, m->context, m->cache, (unsigned long long)s->seed,
        s->temperature, s->top_k, s->top_p, s->min_p, s->repetition_penalty, s->repetition_window,
        text->tokens_max, text->parses_special, text->ignores_end);
    for (size_t i = 0; i < text->stop_count && (size_t)length + 60 < bytes; i++) {
        length += snprintf(line + length, bytes - (size_t)length, " stop=%.50s", text->stops[i]);
    }
    for (char *c = line; *c != '\0'; c++) {
        if (*c == '\n') *c = ' ';
    }
    snprintf(line + length, bytes - (size_t)length, "\n");
}

/* The tokens after the first line; free *tokens. false: they are not this worker's. */
static bool read_parts(const struct tol_guard_work *job, const char *settings, int **tokens,
                       size_t *count) {
    const char *text = job->parts;
    const size_t length = strlen(settings);
    *count = 0;
    *tokens = calloc(job->parts_count / 2 + 1, sizeof **tokens);
    if (*tokens == NULL || job->parts_count == 0) return *tokens != NULL;
    if (job->parts_count < length || memcmp(text, settings, length) != 0) return false;
    const char *const end = text + job->parts_count;
    for (text += length; text < end;) {
        char *end_of_token = NULL;
        (*tokens)[(*count)++] = (int)strtol(text, &end_of_token, 10);
        if (end_of_token == text || *end_of_token != '\n') return false;
        text = end_of_token + 1;
    }
    return true;
}

static tol_status keep_token(struct tol_guard_worker *worker, const struct tol_guard_work *job,
                             int token) {
    char line[TOKEN_BYTES];
    const int length = snprintf(line, sizeof line, "%d\n", token);
    return tol_guard_worker_keep(worker, job, line, (size_t)length);
}

/* ---- a text ---- */

struct written {
    char *bytes;
    size_t count;
};

static tol_status add_fresh(const struct tol_text *text, struct written *written) {
    const struct tol_gguf_text fresh = tol_text_fresh(text);
    char *grown = realloc(written->bytes, written->count + fresh.count + 1);
    if (grown == NULL) return TOL_OUT_OF_HOST_MEMORY;
    if (fresh.count > 0) memcpy(grown + written->count, fresh.bytes, fresh.count);
    written->bytes = grown;
    written->count += fresh.count;
    grown[written->count] = '\0';
    return TOL_OK;
}

/* Samples to the end, and stores each token before the next is sampled. */
static tol_status model_guarded_write_text(struct tol_guard_worker *worker,
                                           const struct tol_guard_work *job, struct tol_text *text,
                                           struct written *written) {
    tol_status status = add_fresh(text, written);
    while (status == TOL_OK && tol_text_about(text).end == TOL_TEXT_GOES_ON) {
        status = tol_texts_step(&text, 1);
        if (status == TOL_OK) status = tol_text_about(text).status;
        if (status == TOL_OK) status = keep_token(worker, job, tol_text_about(text).token);
        if (status == TOL_OK) status = add_fresh(text, written);
    }
    return status;
}

static tol_status model_guarded_answer(const struct hyp_model_guarded *m,
                                       struct tol_guard_worker *worker,
                                       const struct tol_guard_work *job,
                                       const struct tol_text *text, const struct written *written,
                                       size_t replayed) {
    const struct tol_text_about about = tol_text_about(text);
    if (!m->as_json) {
        return tol_guard_worker_done(worker, job, written->bytes, written->count);
    }
    json_t *object = json_pack(
        "{s:i, s:s%, s:I, s:I, s:I, s:s, s:s}", "schema", 1, "text", written->bytes, written->count,
        "prompt_tokens", (json_int_t)about.prompt_tokens, "tokens", (json_int_t)about.tokens,
        "replayed", (json_int_t)replayed, "end", tol_text_end_name(about.end), "device", m->device);
    char *line = object != NULL ? json_dumps(object, 0) : NULL;
    json_decref(object);
    if (line == NULL) return TOL_OUT_OF_HOST_MEMORY;
    const tol_status status = tol_guard_worker_done(worker, job, line, strlen(line));
    free(line);
    return status;
}

/* ---- jobs ---- */

static tol_status model_guarded_refuse(struct tol_guard_worker *worker,
                                       const struct tol_guard_work *job) {
    fprintf(stderr, "tollens: job %llu was begun with other settings\n",
            (unsigned long long)job->number);
    return tol_guard_worker_failed(worker, job, TOL_MISMATCH);
}

static tol_status model_guarded_serve(const struct hyp_model_guarded *m,
                                      struct tol_guard_worker *worker,
                                      const struct tol_guard_work *job) {
    char settings[SETTINGS_BYTES];
    struct tol_text_options options = m->text;
    struct tol_text *text = NULL;
    struct written written = {.bytes = NULL};
    int *tokens = NULL;
    size_t count = 0;
    options.sampling.seed += job->number - 1;
    model_guarded_describe(m, &options, settings, sizeof settings);
    if (!read_parts(job, settings, &tokens, &count)) {
        free(tokens);
        return model_guarded_refuse(worker, job);
    }
    tol_status status = TOL_OK;
    if (job->parts_count == 0) {
        status = tol_guard_worker_keep(worker, job, settings, strlen(settings));
    }
    options.replayed = tokens;
    options.replayed_count = count;
    if (status == TOL_OK) {
        status = tol_text_create(m->loaded, m->tokenizer, &options, job->bytes, job->count, &text);
    }
    if (status == TOL_OK) status = model_guarded_write_text(worker, job, text, &written);
    if (status == TOL_OK) status = model_guarded_answer(m, worker, job, text, &written, count);
    tol_text_destroy(text);
    free(written.bytes);
    free(tokens);
    return status != TOL_OK ? tol_guard_worker_failed(worker, job, status) : TOL_OK;
}

tol_status hyp_model_serve(const struct hyp_model_guarded *m) {
    struct tol_guard_worker *worker = NULL;
    struct tol_guard_work job = {.number = 1};
    tol_status status = tol_guard_worker_open(m->device, &worker);
    while (status == TOL_OK) {
        status = tol_guard_worker_next(worker, &job);
        if (status != TOL_OK || job.number == 0) break;
        status = model_guarded_serve(m, worker, &job);
    }
    tol_guard_worker_close(worker);
    return status;
}
