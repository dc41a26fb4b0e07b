/*
 * Sessions whose texts begin alike: what they share, that their tokens do not change, and time
 * limits.
 */
#include "engine_scene.h"

#include <unistd.h>

TestSuite(session_sharing, .fini = test_end);

enum { COUNT = 60, VOCABULARY = 50 };

static const struct tol_session_options keeps = {.keeps_logits = true};

static struct tol_loaded_stats stats_of(const struct stage *s) {
    struct tol_loaded_stats stats;
    tol_loaded_stats(s->loaded, &stats);
    return stats;
}

/* The logits after tokens of a session, as a model whose sessions share nothing has them. None is
 * a long prompt, which would be computed in another way. */
static void expect_logits(const int *tokens, size_t count, float *logits) {
    struct stage s =
        open_stage(&stage_base, &(struct tol_load_options){.alone = true, .prompt_from = SIZE_MAX});
    struct tol_session *session = open_session(&s, &keeps);
    MUST(tol_session_prompt(session, tokens, count));
    memcpy(logits, tol_session_logits(session), VOCABULARY * sizeof *logits);
    tol_session_destroy(session);
    close_stage(&s);
}

static void check_logits(struct tol_session *session, const int *tokens, size_t count,
                         const char *what) {
    float expected[VOCABULARY];
    expect_logits(tokens, count, expected);
    cr_assert(memcmp(tol_session_logits(session), expected, sizeof expected) == 0, "%s", what);
}

/* Three pages of four are alike: they are shared, and the rest is computed. */
Test(session_sharing, a_common_beginning_is_computed_once) {
    struct stage s = open_stage(&stage_base, NULL);
    struct tol_session *first = open_session(&s, &keeps), *second = open_session(&s, &keeps);
    int tokens[COUNT], others[COUNT];
    make_tokens(tokens, COUNT, VOCABULARY, 1);
    make_tokens(others, COUNT, VOCABULARY, 2);
    memcpy(others, tokens, 50 * sizeof *tokens);
    MUST(tol_session_prompt(first, tokens, COUNT));
    cr_assert(stats_of(&s).pages == 4 && stats_of(&s).reused == 0);
    MUST(tol_session_prompt(second, others, COUNT));
    cr_assert(stats_of(&s).pages == 5 && stats_of(&s).reused == 48);
    cr_assert(tol_session_length(second) == COUNT);
    check_logits(second, others, COUNT, "the second");
    tol_session_destroy(first); /* the second keeps what it shares */
    cr_assert(stats_of(&s).pages == 4);
    int longer[COUNT + 7];
    memcpy(longer, others, sizeof others);
    memcpy(longer + COUNT, tokens, 7 * sizeof *tokens);
    MUST(tol_session_prompt(second, tokens, 7));
    check_logits(second, longer, COUNT + 7, "the second, after the first has gone");
    tol_session_destroy(second);
    cr_assert(stats_of(&s).pages == 0);
    close_stage(&s);
}

/* Texts that part in their second page share the first; others share nothing. */
Test(session_sharing, only_what_is_alike_is_shared) {
    struct stage s = open_stage(&stage_base, NULL);
    struct tol_session *sessions[3];
    int tokens[3][COUNT];
    make_tokens(tokens[0], COUNT, VOCABULARY, 1);
    memcpy(tokens[1], tokens[0], sizeof tokens[0]);
    tokens[1][20] = (tokens[0][20] + 1) % VOCABULARY;
    make_tokens(tokens[2], COUNT, VOCABULARY, 2);
    for (size_t i = 0; i < 3; i++) {
        sessions[i] = open_session(&s, &keeps);
        MUST(tol_session_prompt(sessions[i], tokens[i], COUNT));
        check_logits(sessions[i], tokens[i], COUNT, "a session");
        cr_assert(stats_of(&s).reused == (i == 0 ? 0 : 16));
    }
    for (size_t i = 0; i < 3; i++) tol_session_destroy(sessions[i]);
    close_stage(&s);
}

/* A whole prompt that is there already leaves its last token to be computed. */
Test(session_sharing, the_same_prompt_computes_its_last_page) {
    struct stage s = open_stage(&stage_base, NULL);
    struct tol_session *sessions[3];
    int tokens[48];
    make_tokens(tokens, 48, VOCABULARY, 3);
    for (size_t i = 0; i < 3; i++) {
        sessions[i] = open_session(&s, &keeps);
        MUST(tol_session_prompt(sessions[i], tokens, 48));
        check_logits(sessions[i], tokens, 48, "a session");
    }
    cr_assert(stats_of(&s).pages == 5 && stats_of(&s).reused == 64);
    tol_session_destroy(sessions[0]);
    tol_session_destroy(sessions[1]);
    cr_assert(stats_of(&s).pages == 3);
    tol_session_destroy(sessions[2]);
    close_stage(&s);
}

/* Either session goes back into a page that both have, and writes other tokens there. */
Test(session_sharing, a_session_that_goes_back_leaves_the_other_as_it_was) {
    for (size_t who = 0; who < 2; who++) {
        struct stage s = open_stage(&stage_base, NULL);
        struct tol_session *sessions[2];
        int tokens[COUNT], others[COUNT];
        make_tokens(tokens, COUNT, VOCABULARY, 4);
        make_tokens(others, COUNT, VOCABULARY, 5);
        memcpy(others, tokens, 37 * sizeof *tokens);
        for (size_t i = 0; i < 2; i++) {
            sessions[i] = open_session(&s, &keeps);
            MUST(tol_session_prompt(sessions[i], tokens, COUNT));
        }
        MUST(tol_session_rewind(sessions[who], 40));
        cr_assert(tol_session_length(sessions[who]) == 40);
        MUST(tol_session_rewind(sessions[who], 37));
        MUST(tol_session_prompt(sessions[who], others + 37, COUNT - 37));
        check_logits(sessions[who], others, COUNT, "the one that went back");
        cr_assert(tol_session_length(sessions[who]) == COUNT);
        MUST(tol_session_rewind(sessions[1 - who], 59));
        MUST(tol_session_prompt(sessions[1 - who], tokens + 59, 1));
        check_logits(sessions[1 - who], tokens, COUNT, "the other");
        cr_assert(stats_of(&s).pages == 6);
        tol_session_destroy(sessions[0]);
        tol_session_destroy(sessions[1]);
        cr_assert(stats_of(&s).pages == 0);
        close_stage(&s);
    }
}

/* Draws depend on what came before: a session hears of tokens that it did not compute. */
Test(session_sharing, draws_are_those_of_a_session_that_shares_nothing) {
    const struct tol_session_options draws = {
        .sampling = {.temperature = 1, .repetition_penalty = 1.8, .seed = 9}};
    int tokens[40], drawn[2][12];
    make_tokens(tokens, 40, VOCABULARY, 6);
    for (size_t alone = 0; alone < 2; alone++) {
        struct stage s = open_stage(&stage_base, &(struct tol_load_options){.alone = alone == 1});
        struct tol_session *first = open_session(&s, &draws), *second = open_session(&s, &draws);
        MUST(tol_session_prompt(first, tokens, 40));
        MUST(tol_session_prompt(second, tokens, 40));
        for (size_t i = 0; i < 12; i++) MUST(tol_session_step(second, &drawn[alone][i]));
        cr_assert(stats_of(&s).reused == (alone == 1 ? 0 : 32));
        tol_session_destroy(first);
        tol_session_destroy(second);
        close_stage(&s);
    }
    cr_assert(memcmp(drawn[0], drawn[1], sizeof drawn[0]) == 0);
}

Test(session_sharing, a_session_whose_time_has_passed_stops_and_the_others_go_on) {
    struct stage s = open_stage(&stage_base, NULL);
    struct tol_session *late = open_session(&s, &(struct tol_session_options){.time_ms = 200});
    struct tol_session *other = open_session(&s, NULL);
    int tokens[4], token = 0;
    make_tokens(tokens, 4, VOCABULARY, 7);
    MUST(tol_session_prompt(late, tokens, 4));
    MUST(tol_session_prompt(other, tokens, 4));
    usleep(201000);
    struct tol_step steps[2] = {{.session = late}, {.session = other}};
    MUST(tol_sessions_step(steps, 2));
    cr_assert(steps[0].status == TOL_OVERDUE && steps[0].token == -1);
    cr_assert(steps[1].status == TOL_OK && steps[1].token >= 0);
    MUST_FAIL(tol_session_step(late, &token), TOL_OVERDUE, "time has passed after 4 positions");
    MUST_FAIL(tol_session_prompt(late, tokens, 4), TOL_OVERDUE, "4 positions");
    tol_session_destroy(late);
    tol_session_destroy(other);
    close_stage(&s);
}
