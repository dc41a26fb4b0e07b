/*
 * Worker stage: a committed model on the device of an attack, and llama.cpp's records of its output
 * (fixtures/models/README.md).
 */
#ifndef HYP_WORKER_STAGE_H
#define HYP_WORKER_STAGE_H

#include "harness/plugin.h"

#include "decode_session.h"

struct worker_stage {
    struct tol_model *model;
    struct tol_loaded *loaded;
    size_t vocabulary;
};

/* Opens fixtures/models/NAME.gguf and loads it. false: a violation was recorded. End it in either
 * case. */
bool worker_stage_begin(struct hyp_attack *attack, const char *name,
                        const struct tol_load_options *options, struct worker_stage *stage);
void worker_stage_end(struct worker_stage *stage);

/* The path of a copy of fixtures/models/NAME.gguf, which the faults that change files have
 * changed, until worker_file_end. One at a time. NULL: a violation was recorded. */
const char *worker_file(struct hyp_attack *attack, const char *name);
void worker_file_end(void);

/* The path of a new, empty file, until worker_file_end. One at a time. NULL: there is none. */
const char *worker_file_new(void);

/* Seeded random tokens. */
void worker_tokens(uint64_t seed, size_t vocabulary, int *tokens, size_t count);

/* A hash of the bits of a token's logits. */
uint64_t worker_sum(const float *logits, size_t vocabulary);

/* ---- packed records ---- */

/* An unpacked file that is read from front to back. The caller frees bytes. */
struct worker_cursor {
    unsigned char *bytes;
    size_t at, count;
};

struct worker_piece {
    const char *bytes;
    size_t count;
};

/* Unpacks a file of fixtures/. false: a violation was recorded. */
bool worker_unpack(struct hyp_attack *attack, const char *path, struct worker_cursor *cursor);

/* The next number of this many bytes, and the next bytes after a number of this many bytes that
 * counts them. Zeros follow the end. */
uint32_t worker_number(struct worker_cursor *cursor, size_t bytes);
struct worker_piece worker_piece(struct worker_cursor *cursor, size_t length_bytes);

/* ---- records ---- */

enum { WORKER_TOP = 16, WORKER_PROJECTIONS = 4, WORKER_PROMPT_MAX = 2048, WORKER_GREEDY = 64 };

/* llama.cpp's result at a position: its largest logits, and sums over all of them. */
struct worker_position {
    uint16_t ids[WORKER_TOP];
    float values[WORKER_TOP], projections[WORKER_PROJECTIONS];
};

/* A prompt of a record: what follows each of its positions, then tokens that were drawn. */
struct worker_prompt {
    size_t count, greedy_count;
    int tokens[WORKER_PROMPT_MAX];
    const unsigned char *positions;
    int greedy[WORKER_GREEDY];
    float leads[WORKER_GREEDY]; /* of a greedy token before the next largest */
};

struct worker_record {
    const unsigned char *at, *end;
    uint32_t vocabulary, prompts;
};

/* Reads the beginning of a record of `bytes` bytes, and then prompt by prompt. false: the record
 * ends early. */
bool worker_record_begin(struct worker_record *record, const char *text, size_t bytes);
bool worker_record_next(struct worker_record *record, struct worker_prompt *prompt);

/* As worker_record_next, of a prompt that has only its last position, at index 0. */
bool worker_record_last(struct worker_record *record, struct worker_prompt *prompt);

/* The position at an index of the prompt. */
struct worker_position worker_position_at(const struct worker_prompt *prompt, size_t index);

/* How far logits are from a position of the record, as a share of its largest logit. */
double worker_position_off(const struct worker_position *position, const float *logits,
                           size_t vocabulary);

#endif
