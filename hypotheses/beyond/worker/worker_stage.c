/*
 * Models of fixtures/, changed copies of them, and the records beside them.
 */
#include "worker_stage.h"

#include "fnv.h"
#include "worker_faults.h"

#include <lzma.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- files ---- */

static char copy_path[64];

/* The low nibbles of one of the twelve bytes of scales of each Q4_K block of a matrix. false: there
 * is no such matrix, or the file cannot be read. */
static bool change_scales(char *bytes) {
    enum { BLOCK_BYTES = 144, SCALES_AT = 4 };
    struct tol_gguf *gguf = NULL;
    struct tol_gguf_description about;
    if (tol_gguf_open(copy_path, &gguf) != TOL_OK) return false;
    tol_gguf_describe(gguf, &about);
    const struct tol_gguf_tensor *tensor = tol_gguf_find_tensor(gguf, "blk.0.ffn_up.weight");
    const bool is_found = tensor != NULL && tensor->type == TOL_TENSOR_Q4_K;
    for (uint64_t at = 0; is_found && at < tensor->bytes; at += BLOCK_BYTES) {
        bytes[about.data_offset + tensor->offset + at + SCALES_AT] ^= 0x0f;
    }
    tol_gguf_close(gguf);
    return is_found;
}

/* The first text of two letters, "th", in the file. */
static void worker_stage_misspell(char *bytes, size_t count) {
    static const char token[] = {2, 0, 0, 0, 0, 0, 0, 0, 't', 'h'};
    char *found = memmem(bytes, count, token, sizeof token);
    if (found != NULL) found[sizeof token - 1] = '~';
}

static bool worker_stage_write_bytes(const char *bytes, size_t count) {
    FILE *file = fopen(copy_path, "wb");
    const bool is_written = file != NULL && fwrite(bytes, 1, count, file) == count;
    return file != NULL && fclose(file) == 0 && is_written;
}

const char *worker_file_new(void) {
    strcpy(copy_path, "/tmp/tollens-model-XXXXXX");
    const int file = mkstemp(copy_path);
    if (file >= 0) close(file);
    return file >= 0 ? copy_path : NULL;
}

const char *worker_file(struct hyp_attack *attack, const char *name) {
    char below[128];
    size_t bytes = 0;
    snprintf(below, sizeof below, "fixtures/models/%s.gguf", name);
    char *content = hyp_attack_file(attack, below, &bytes);
    if (content == NULL) return NULL;
    bool ok = worker_file_new() != NULL && worker_stage_write_bytes(content, bytes);
    if (ok && worker_fault_is(attack, "scale_nibble_wrong") && change_scales(content)) {
        ok = worker_stage_write_bytes(content, bytes);
    } else if (ok && worker_fault_is(attack, "token_misspelt")) {
        worker_stage_misspell(content, bytes);
        ok = worker_stage_write_bytes(content, bytes);
    }
    free(content);
    HYP_CHECK(attack, ok, "%s could not be copied to %s", below, copy_path);
    return ok ? copy_path : NULL;
}

void worker_file_end(void) {
    if (copy_path[0] != '\0') unlink(copy_path);
    copy_path[0] = '\0';
}

/* ---- models ---- */

bool worker_stage_begin(struct hyp_attack *attack, const char *name,
                        const struct tol_load_options *options, struct worker_stage *stage) {
    *stage = (struct worker_stage){.model = NULL};
    const char *path = worker_file(attack, name);
    const bool ok =
        path != NULL && HYP_OK(attack, tol_model_open(path, &stage->model)) &&
        HYP_OK(attack, tol_model_load(stage->model, attack->context, options, &stage->loaded));
    worker_file_end();
    if (ok) stage->vocabulary = tol_model_shape(stage->model)->vocabulary;
    return ok;
}

void worker_stage_end(struct worker_stage *stage) {
    tol_model_unload(stage->loaded);
    tol_model_close(stage->model);
    *stage = (struct worker_stage){.model = NULL};
}

void worker_tokens(uint64_t seed, size_t vocabulary, int *tokens, size_t count) {
    uint32_t state = (uint32_t)seed + 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        tokens[i] = (int)((state >> 8) % vocabulary);
    }
}

uint64_t worker_sum(const float *logits, size_t vocabulary) {
    return kn_fnv(KN_FNV_BEGIN, logits, vocabulary * sizeof *logits);
}

/* ---- packed records ---- */

enum { UNPACKED_MAX = 64 << 20 };

uint32_t worker_number(struct worker_cursor *cursor, size_t bytes) {
    uint32_t value = 0;
    if (cursor->count - cursor->at >= bytes) memcpy(&value, cursor->bytes + cursor->at, bytes);
    cursor->at = cursor->count - cursor->at >= bytes ? cursor->at + bytes : cursor->count;
    return value;
}

struct worker_piece worker_piece(struct worker_cursor *cursor, size_t length_bytes) {
    size_t count = worker_number(cursor, length_bytes);
    if (count > cursor->count - cursor->at) count = cursor->count - cursor->at;
    const struct worker_piece found = {(const char *)cursor->bytes + cursor->at, count};
    cursor->at += count;
    return found;
}

bool worker_unpack(struct hyp_attack *attack, const char *path, struct worker_cursor *cursor) {
    size_t packed = 0, in = 0;
    uint64_t limit = UINT64_MAX;
    char *file = hyp_attack_file(attack, path, &packed);
    *cursor = (struct worker_cursor){.bytes = malloc(UNPACKED_MAX)};
    const bool ok =
        file != NULL && cursor->bytes != NULL &&
        lzma_stream_buffer_decode(&limit, 0, NULL, (const uint8_t *)file, &in, packed,
                                  cursor->bytes, &cursor->count, UNPACKED_MAX) == LZMA_OK;
    free(file);
    return HYP_CHECK(attack, ok, "%s cannot be unpacked", path);
}

/* ---- records ---- */

enum { POSITION_BYTES = WORKER_TOP * 6 + WORKER_PROJECTIONS * 4 };

static bool worker_stage_take(struct worker_record *record, void *to, size_t bytes) {
    if ((size_t)(record->end - record->at) < bytes) return false;
    memcpy(to, record->at, bytes);
    record->at += bytes;
    return true;
}

static bool take_id(struct worker_record *record, int *id) {
    uint16_t value = 0;
    const bool ok = worker_stage_take(record, &value, sizeof value);
    *id = value;
    return ok;
}

bool worker_record_begin(struct worker_record *record, const char *text, size_t bytes) {
    *record = (struct worker_record){(const unsigned char *)text,
                                     (const unsigned char *)text + bytes, 0, 0};
    return worker_stage_take(record, &record->vocabulary, 4) &&
           worker_stage_take(record, &record->prompts, 4);
}

/* is_last: of the prompt's positions only the last one follows. */
static bool worker_stage_read(struct worker_record *record, bool is_last,
                              struct worker_prompt *prompt) {
    uint32_t count = 0;
    bool ok = worker_stage_take(record, &count, 4) && count > 0 && count <= WORKER_PROMPT_MAX;
    for (uint32_t i = 0; ok && i < count; i++) ok = take_id(record, &prompt->tokens[i]);
    const size_t positions = is_last ? 1 : count;
    ok = ok && (size_t)(record->end - record->at) >= positions * POSITION_BYTES;
    if (!ok) return false;
    prompt->count = count;
    prompt->positions = record->at;
    record->at += positions * POSITION_BYTES;
    ok = worker_stage_take(record, &count, 4) && count <= WORKER_GREEDY;
    prompt->greedy_count = count;
    for (uint32_t i = 0; ok && i < count; i++) {
        ok = take_id(record, &prompt->greedy[i]) && worker_stage_take(record, &prompt->leads[i], 4);
    }
    return ok;
}

bool worker_record_next(struct worker_record *record, struct worker_prompt *prompt) {
    return worker_stage_read(record, false, prompt);
}

bool worker_record_last(struct worker_record *record, struct worker_prompt *prompt) {
    return worker_stage_read(record, true, prompt);
}

struct worker_position worker_position_at(const struct worker_prompt *prompt, size_t index) {
    struct worker_position position;
    const unsigned char *at = prompt->positions + index * POSITION_BYTES;
    memcpy(position.ids, at, sizeof position.ids);
    memcpy(position.values, at + sizeof position.ids, sizeof position.values);
    memcpy(position.projections, at + sizeof position.ids + sizeof position.values,
           sizeof position.projections);
    return position;
}

static double worker_stage_projection(const float *logits, size_t count, uint32_t row) {
    uint32_t state = row + 1;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        sum += state >> 31 ? (double)logits[i] : -(double)logits[i];
    }
    return sum / sqrt((double)count);
}

double worker_position_off(const struct worker_position *position, const float *logits,
                           size_t vocabulary) {
    double worst = 0;
    for (uint32_t i = 0; i < WORKER_TOP + WORKER_PROJECTIONS; i++) {
        const double expected =
            (double)(i < WORKER_TOP ? position->values[i] : position->projections[i - WORKER_TOP]);
        const double got = i < WORKER_TOP
                               ? (double)logits[position->ids[i]]
                               : worker_stage_projection(logits, vocabulary, i - WORKER_TOP);
        const double off = fabs(got - expected);
        if (!(off <= worst)) worst = isnan(off) ? INFINITY : off;
    }
    return worst / fabs((double)position->values[0]);
}
