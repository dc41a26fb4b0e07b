/*
 * Sampler: draws a token from the logits of a position.
 *
 * In this order: tokens among the latest are made less likely (a positive logit is divided by the
 * penalty, another one multiplied); logits are divided by the temperature, 0 meaning the largest,
 * the first of equal ones; the top_k largest stay; of these the fewest whose probabilities reach
 * top_p; of these the ones of at least min_p times the largest probability; then a number from the
 * generator picks one, in the order of tokens. Of equal logits the lower token is the larger one.
 *
 * Deterministic: the same logits, history and seed give the same tokens, on the host and on every
 * device: weights are whole numbers (decode/draw_arguments.h), 2^40 for the largest, and none for
 * what is less than 2^-40 of it. The generator is PCG-XSH-RR with 64 bits of state and 32 of output
 * (O'Neill, 2014), stream 54, separate for each sampler; a draw takes two outputs as 64 bits.
 * A sampler is for one thread at a time.
 */
#ifndef TOLLENS_TOKEN_SAMPLER_H
#define TOLLENS_TOKEN_SAMPLER_H

#include <tollens.h>

struct tol_sampler;
struct draw_row;

/* All zero: greedy. */
struct tol_sampling {
    double temperature;        /* 0 to 2 */
    double repetition_penalty; /* 0 or 1: none; from 1e-6 to 10 */
    size_t repetition_window;  /* how many of the latest tokens count; 0: 64 */
    size_t top_k;              /* 0: all */
    double top_p;              /* 0 or 1: all */
    double min_p;              /* 0 to 1 */
    uint64_t seed;
};

/* Whether a draw is the largest logit, whatever the history. */
TOL_API bool tol_sampling_is_greedy(const struct tol_sampling *sampling);

/* TOL_INVALID_ARGUMENT: a parameter is outside its range, or no number; the message names it; or
 * there are more than 2^23 tokens. TOL_OUT_OF_HOST_MEMORY. The caller destroys *sampler. */
TOL_API tol_status tol_sampler_create(const struct tol_sampling *sampling, size_t vocabulary,
                                      struct tol_sampler **sampler);

/* NULL is a no-op. */
TOL_API void tol_sampler_destroy(struct tol_sampler *sampler);

/* Adds a token of the text, from the prompt or drawn, to the history for the repetition penalty. */
TOL_API void tol_sampler_accept(struct tol_sampler *sampler, int token);

/* Draws a token from `vocabulary` logits. TOL_MISMATCH: a logit is NaN or +infinity, or all are
 * -infinity. */
TOL_API tol_status tol_sampler_draw(struct tol_sampler *sampler, const float *logits, int *token);

/* For a draw elsewhere (decode/draw.h): its parameters, and the tokens that it penalises, which
 * are the sampler's until its next call. tol_sampler_take hears what came of it, and moves the
 * generator; it fails as tol_sampler_draw, which is both on the host. */
TOL_API void tol_sampler_row(struct tol_sampler *sampler, struct draw_row *row,
                             const uint32_t **tokens);
TOL_API tol_status tol_sampler_take(struct tol_sampler *sampler, int drawn, int *token);

/* How many tokens a draw penalises at most. */
TOL_API size_t tol_sampler_penalises(const struct tol_sampler *sampler);

/* Skips `draws` draws of the generator, for a text that another process began.
 * Whatever was accepted stays as it is. */
TOL_API void tol_sampler_skip(struct tol_sampler *sampler, size_t draws);

#endif
