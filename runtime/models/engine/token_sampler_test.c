/*
 * The sampler's chain: each part by hand, shares of draws against probabilities, and the generator
 * against its published output.
 */
#include "token_sampler.h"

#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>

static struct tol_sampler *make(struct tol_sampling sampling, size_t vocabulary) {
    struct tol_sampler *sampler = NULL;
    MUST(tol_sampler_create(&sampling, vocabulary, &sampler));
    return sampler;
}

static int draw(struct tol_sampler *sampler, const float *logits) {
    int token = -1;
    MUST(tol_sampler_draw(sampler, logits, &token));
    return token;
}

enum { FEW = 6, DRAWS = 20000 };

/* Draws often; counts[i] is how often token i came. */
static void count(struct tol_sampling sampling, const float *logits, size_t vocabulary,
                  size_t *counts) {
    struct tol_sampler *sampler = make(sampling, vocabulary);
    memset(counts, 0, vocabulary * sizeof *counts);
    for (int i = 0; i < DRAWS; i++) counts[draw(sampler, logits)]++;
    tol_sampler_destroy(sampler);
}

/* Probabilities 0.5, 0.25, 0.125, ... of which the last two are equal. */
static const float halves[FEW] = {-0.6931472f, -1.3862944f, -2.0794415f,
                                  -2.7725887f, -3.4657359f, -3.4657359f};

Test(token_sampler, without_temperature_the_first_of_the_largest_is_drawn) {
    const float logits[FEW] = {1, 5, 5, -INFINITY, 4, 5};
    struct tol_sampler *sampler = make((struct tol_sampling){.top_k = 3, .seed = 9}, FEW);
    for (int i = 0; i < 20; i++) cr_assert(draw(sampler, logits) == 1);
    tol_sampler_destroy(sampler);
}

/* A share of n draws is within 5 standard deviations of its probability. */
static void check_shares(const size_t *counts, const double *shares) {
    for (int i = 0; i < FEW; i++) {
        const double expected = shares[i] * DRAWS;
        const double allowed = 5 * sqrt(expected * (1 - shares[i]));
        cr_assert(!(fabs((double)counts[i] - expected) > allowed), "token %d: %zu and not %g", i,
                  counts[i], expected);
    }
}

Test(token_sampler, draws_come_as_often_as_their_probabilities_say) {
    size_t counts[FEW];
    count((struct tol_sampling){.temperature = 1, .seed = 1}, halves, FEW, counts);
    check_shares(counts, (double[]){1 / 2., 1 / 4., 1 / 8., 1 / 16., 1 / 32., 1 / 32.});
    count((struct tol_sampling){.temperature = 1, .top_k = 2, .seed = 2}, halves, FEW, counts);
    check_shares(counts, (double[]){2 / 3., 1 / 3., 0, 0, 0, 0});
    /* 0.5 + 0.25 does not reach 0.8, with 0.125 it does */
    count((struct tol_sampling){.temperature = 1, .top_p = 0.8, .seed = 3}, halves, FEW, counts);
    check_shares(counts, (double[]){4 / 7., 2 / 7., 1 / 7., 0, 0, 0});
    count((struct tol_sampling){.temperature = 1, .min_p = 0.2, .seed = 4}, halves, FEW, counts);
    check_shares(counts, (double[]){4 / 7., 2 / 7., 1 / 7., 0, 0, 0});
    /* top-p is a share of what top-k left: of 2/3 and 1/3 the first reaches 0.6 */
    count((struct tol_sampling){.temperature = 1, .top_k = 2, .top_p = 0.6, .seed = 5}, halves, FEW,
          counts);
    check_shares(counts, (double[]){1, 0, 0, 0, 0, 0});
    /* half the temperature squares the probabilities */
    count((struct tol_sampling){.temperature = 0.5, .top_k = 2, .seed = 6}, halves, FEW, counts);
    check_shares(counts, (double[]){4 / 5., 1 / 5., 0, 0, 0, 0});
}

Test(token_sampler, repeated_tokens_are_penalised_once_and_only_in_the_window) {
    const float logits[FEW] = {3, 2.5f, 2, -1, -1.1f, -5};
    struct tol_sampler *sampler =
        make((struct tol_sampling){.repetition_penalty = 1.3, .repetition_window = 2}, FEW);
    cr_assert(draw(sampler, logits) == 0);
    tol_sampler_accept(sampler, 0);
    tol_sampler_accept(sampler, 0);
    cr_assert(draw(sampler, logits) == 1); /* 3 / 1.3 = 2.31; twice would be 1.78 */
    tol_sampler_accept(sampler, 1);
    cr_assert(draw(sampler, logits) == 0); /* 2.31, 1.92 and 2 */
    tol_sampler_accept(sampler, 1);
    tol_sampler_accept(sampler, 1);
    cr_assert(draw(sampler, logits) == 0); /* no longer in the window */
    tol_sampler_destroy(sampler);
    /* A negative logit is multiplied. */
    const float negative[2] = {-1, -1.2f};
    sampler = make((struct tol_sampling){.repetition_penalty = 1.3}, 2);
    tol_sampler_accept(sampler, 0);
    cr_assert(draw(sampler, negative) == 1);
    tol_sampler_destroy(sampler);
}

/* Of 10, 8 and 6, those in the window are halved, draw after draw. */
Test(token_sampler, a_token_is_penalised_in_every_draw_of_its_window) {
    static const int history[] = {0, 0, 1, 1, 1, 0, 2, 2, 2, 2};
    static const int drawn[] = {1, 1, 2, 2, 2, 2, 0, 0, 1, 0};
    const float logits[3] = {10, 8, 6};
    struct tol_sampler *sampler =
        make((struct tol_sampling){.repetition_penalty = 2, .repetition_window = 4}, 3);
    for (size_t i = 0; i < sizeof history / sizeof history[0]; i++) {
        tol_sampler_accept(sampler, history[i]);
        cr_assert(draw(sampler, logits) == drawn[i], "draw %zu", i);
    }
    tol_sampler_destroy(sampler);
}

Test(token_sampler, a_seed_gives_the_same_tokens_and_another_seed_others) {
    enum { MANY = 5000, TOKENS = 100 };
    static float logits[MANY];
    static int first[TOKENS];
    int same = 0;
    for (int i = 0; i < MANY; i++) logits[i] = (float)(i * 7919 % MANY) / 1000;
    for (int run = 0; run < 3; run++) {
        struct tol_sampler *sampler = make((struct tol_sampling){.temperature = 1.5,
                                                                 .top_p = 0.95,
                                                                 .repetition_penalty = 1.1,
                                                                 .seed = run < 2 ? 42 : 43},
                                           MANY);
        for (int i = 0; i < TOKENS; i++) {
            const int token = draw(sampler, logits);
            tol_sampler_accept(sampler, token);
            if (run == 0) first[i] = token;
            if (run == 1) cr_assert(token == first[i]);
            if (run == 2) same += token == first[i];
        }
        tol_sampler_destroy(sampler);
    }
    cr_assert(same < 10);
}

/* pcg32-global-demo of the author's library: seed 42, stream 54, first outputs 0xa15c02b7 and
 * 0x7b47f409. A draw among two tokens of equal logits shows the first bit of the first output. */
Test(token_sampler, the_generator_is_pcg32) {
    static float equal[1 << 16];
    struct tol_sampler *sampler =
        make((struct tol_sampling){.temperature = 1, .seed = 42}, 1 << 16);
    cr_assert(draw(sampler, equal) == 0xa15c);
    cr_assert(draw(sampler, equal) == 0xba1d); /* the third output is 0xba1d3330 */
    tol_sampler_destroy(sampler);
}

Test(token_sampler, what_makes_no_sense_is_refused) {
    struct tol_sampler *sampler = NULL;
    int token = 5;
#define REFUSED(text, ...)                                                                         \
    MUST_FAIL(tol_sampler_create(&(struct tol_sampling){__VA_ARGS__}, 10, &sampler),               \
              TOL_INVALID_ARGUMENT, text)
    REFUSED("temperature is 2.5", .temperature = 2.5);
    REFUSED("temperature is nan", .temperature = NAN);
    REFUSED("penalty is -1", .repetition_penalty = -1);
    REFUSED("penalty is 1e-07", .repetition_penalty = 1e-7);
    REFUSED("top-p is 1.5", .top_p = 1.5);
    REFUSED("min-p is -0.1", .min_p = -0.1);
    MUST_FAIL(tol_sampler_create(&(struct tol_sampling){0}, 0, &sampler), TOL_INVALID_ARGUMENT,
              "a vocabulary");
    sampler = make((struct tol_sampling){.temperature = 1}, 2);
    MUST_FAIL(tol_sampler_draw(sampler, (float[]){1, NAN}, &token), TOL_MISMATCH, "token 1 is NaN");
    MUST_FAIL(tol_sampler_draw(sampler, (float[]){INFINITY, 1}, &token), TOL_MISMATCH, "token 0");
    MUST_FAIL(tol_sampler_draw(sampler, (float[]){-INFINITY, -INFINITY}, &token), TOL_MISMATCH,
              "all logits");
    cr_assert(token == 5);
    tol_sampler_destroy(sampler);
    tol_sampler_destroy(NULL);
}
