/*
 * A sampler's parameters, history and generator; decode/draw.h has the chain.
 */
#include "token_sampler.h"

#include "core/check.h"
#include "decode/draw.h"

#include <math.h>
#include <stdlib.h>

enum { WINDOW = 64, STREAM = 54 };

struct tol_sampler {
    struct tol_sampling sampling;
    size_t vocabulary;
    uint64_t state;
    int *latest;    /* a ring of the window's tokens */
    size_t history; /* tokens accepted so far */
    uint32_t *penalised;
    bool *is_listed; /* per token; all false between lists */
    void *workspace; /* of draws on the host */
};

/* ---- the generator ---- */

static const uint64_t increment = STREAM << 1 | 1;

static uint32_t token_sampler_generate(uint64_t *state) {
    const uint64_t old = *state;
    *state = old * 6364136223846793005u + increment;
    const uint32_t mixed = (uint32_t)((old >> 18 ^ old) >> 27), turn = (uint32_t)(old >> 59);
    return mixed >> turn | mixed << (-turn & 31);
}

static uint64_t generate_both(uint64_t *state) {
    const uint64_t high = token_sampler_generate(state), low = token_sampler_generate(state);
    return high << 32 | low;
}

static uint64_t token_sampler_seeded(uint64_t seed) {
    uint64_t state = 0;
    token_sampler_generate(&state);
    state += seed;
    token_sampler_generate(&state);
    return state;
}

/* ---- parameters ---- */

bool tol_sampling_is_greedy(const struct tol_sampling *s) {
    return s->temperature == 0 && (s->repetition_penalty == 0 || s->repetition_penalty == 1);
}

static tol_status token_sampler_check(const struct tol_sampling *s) {
    tol_status status = TOL_OK;
    TOL_CHECK(s->temperature >= 0 && s->temperature <= 2, TOL_INVALID_ARGUMENT,
              "the temperature is %g; it must be from 0 to 2", s->temperature);
    TOL_CHECK(s->repetition_penalty == 0 ||
                  (s->repetition_penalty >= 1e-6 && s->repetition_penalty <= 10),
              TOL_INVALID_ARGUMENT,
              "the repetition penalty is %g; it must be from 1e-6 to 10, or 0 for none",
              s->repetition_penalty);
    TOL_CHECK(s->top_p >= 0 && s->top_p <= 1, TOL_INVALID_ARGUMENT,
              "top-p is %g; it must be from 0 to 1", s->top_p);
    TOL_CHECK(s->min_p >= 0 && s->min_p <= 1, TOL_INVALID_ARGUMENT,
              "min-p is %g; it must be from 0 to 1", s->min_p);
    TOL_CHECK(s->repetition_window <= INT32_MAX, TOL_INVALID_ARGUMENT,
              "a repetition window of %zu tokens", s->repetition_window);
out:
    return status;
}

tol_status tol_sampler_create(const struct tol_sampling *sampling, size_t vocabulary,
                              struct tol_sampler **sampler) {
    tol_status status = TOL_OK;
    struct tol_sampler *s = NULL;
    TOL_CHECK(sampling != NULL && sampler != NULL && vocabulary > 0 && vocabulary <= DRAW_COLUMNS,
              TOL_INVALID_ARGUMENT,
              "a sampler needs parameters and a vocabulary of up to %d tokens", DRAW_COLUMNS);
    TOL_TRY(token_sampler_check(sampling));
    s = calloc(1, sizeof *s);
    TOL_CHECK(s != NULL, TOL_OUT_OF_HOST_MEMORY, "a sampler");
    s->sampling = *sampling;
    if (s->sampling.repetition_window == 0) s->sampling.repetition_window = WINDOW;
    s->vocabulary = vocabulary;
    s->state = token_sampler_seeded(sampling->seed);
    s->latest = calloc(s->sampling.repetition_window, sizeof *s->latest);
    s->penalised = calloc(s->sampling.repetition_window, sizeof *s->penalised);
    s->is_listed = calloc(vocabulary, sizeof *s->is_listed);
    s->workspace = malloc(kn_draw_host_bytes(vocabulary));
    TOL_CHECK(s->latest != NULL && s->penalised != NULL && s->is_listed != NULL &&
                  s->workspace != NULL,
              TOL_OUT_OF_HOST_MEMORY, "a sampler of %zu tokens", vocabulary);
    *sampler = s;
    s = NULL;
out:
    tol_sampler_destroy(s);
    return status;
}

void tol_sampler_destroy(struct tol_sampler *sampler) {
    if (sampler == NULL) return;
    free(sampler->latest);
    free(sampler->penalised);
    free(sampler->is_listed);
    free(sampler->workspace);
    free(sampler);
}

void tol_sampler_accept(struct tol_sampler *s, int token) {
    s->latest[s->history++ % s->sampling.repetition_window] = token;
}

/* ---- draws ---- */

size_t tol_sampler_penalises(const struct tol_sampler *s) {
    const double penalty = s->sampling.repetition_penalty;
    return penalty == 0 || penalty == 1 ? 0 : s->sampling.repetition_window;
}

/* Lists the different tokens of the window, in linear time, because it may be the whole text. */
static size_t list_penalised(struct tol_sampler *s) {
    const size_t window = tol_sampler_penalises(s);
    const size_t count = s->history < window ? s->history : window;
    size_t listed = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t token = (uint32_t)s->latest[i];
        if (token >= s->vocabulary || s->is_listed[token]) continue;
        s->is_listed[token] = true;
        s->penalised[listed++] = token;
    }
    for (size_t i = 0; i < listed; i++) s->is_listed[s->penalised[i]] = false;
    return listed;
}

/* 2^32 / (ln 2 temperature). Without a temperature the largest is drawn, whatever the scale is. */
static double token_sampler_scale_of(double temperature) {
    static const double one = 6196328018.719481; /* 2^32 / ln 2 */
    return temperature > one / 1e300 ? one / temperature : 1e300;
}

void tol_sampler_row(struct tol_sampler *s, struct draw_row *row, const uint32_t **tokens) {
    const struct tol_sampling *limits = &s->sampling;
    uint64_t state = s->state;
    const bool is_greedy = limits->temperature == 0;
    *row = (struct draw_row){.scale = token_sampler_scale_of(limits->temperature),
                             .random = is_greedy ? 0 : generate_both(&state),
                             .least = (uint64_t)ceil(limits->min_p * (double)DRAW_ONE),
                             .top_k = is_greedy ? 1 : 0,
                             .penalised = (uint32_t)list_penalised(s),
                             .penalty = (float)limits->repetition_penalty};
    if (!is_greedy && limits->top_k < s->vocabulary) row->top_k = (uint32_t)limits->top_k;
    if (limits->top_p > 0 && limits->top_p < 1) row->share = (uint64_t)(limits->top_p * 0x1p64);
    if (row->share == 0 && limits->top_p > 0 && limits->top_p < 1) row->share = 1;
    *tokens = s->penalised;
}

tol_status tol_sampler_take(struct tol_sampler *s, int drawn, int *token) {
    tol_status status = TOL_OK;
    TOL_CHECK(drawn != DRAW_NONE, TOL_MISMATCH, "all logits are -infinity");
    TOL_CHECK(drawn >= 0, TOL_MISMATCH, "the logit of token %d is NaN or +infinity",
              DRAW_BAD - drawn);
    TOL_CHECK((size_t)drawn < s->vocabulary, TOL_MISMATCH,
              "token %d was drawn from a vocabulary of %zu", drawn, s->vocabulary);
    tol_sampler_skip(s, 1);
    *token = drawn;
out:
    return status;
}

tol_status tol_sampler_draw(struct tol_sampler *s, const float *logits, int *token) {
    struct draw_row row;
    const uint32_t *tokens = NULL;
    tol_sampler_row(s, &row, &tokens);
    return tol_sampler_take(s, kn_draw_on_host(&row, tokens, logits, s->vocabulary, s->workspace),
                            token);
}

void tol_sampler_skip(struct tol_sampler *s, size_t draws) {
    if (s->sampling.temperature == 0) return; /* such a draw takes nothing from the generator */
    for (size_t i = 0; i < draws; i++) (void)generate_both(&s->state);
}
