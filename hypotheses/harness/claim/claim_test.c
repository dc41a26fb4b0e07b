/*
 * The table of claims, and what the environment may say.
 */
#include "harness/claim.h"
#include "files/atomic_file.h"
#include "harness/sabotage.h"
#include "harness/session.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Test(claim, the_thirteen_are_there_and_each_has_its_name) {
    cr_assert(hyp_claim_own_count() >= 13);
    for (int i = 0; i < (int)hyp_claim_own_count(); i++) {
        const struct hyp_claim *claim = &hyp_claims()[i];
        char id[16], suite[16];
        snprintf(id, sizeof id, "H%d", i + 1);
        snprintf(suite, sizeof suite, "h%02d", i + 1);
        cr_assert_str_eq(claim->id, id);
        cr_assert_str_eq(claim->suite, suite);
        cr_assert(claim->title[0] != '\0' && claim->source[0] != '\0' && claim->unit[0] != '\0');
        cr_assert(hyp_claim_find(id) == claim && hyp_claim_of_suite(suite) == claim);
    }
    static const char *const wrong[] = {"H0", "H99", "H", "", "3", "H3x", "G3", "H-1", "H 3"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_assert(hyp_claim_find(wrong[i]) == NULL, "%s", wrong[i]);
    }
}

/* The thresholds of the specification, section 2.3 and 2.4. */
Test(claim, thresholds_are_the_specifications) {
    static const struct {
        const char *id;
        double threshold;
        enum hyp_direction direction;
    } rows[] = {{"H4", 2.0, HYP_AT_MOST},   {"H5", 1e-3, HYP_BELOW},   {"H6", 1e-2, HYP_BELOW},
                {"H7", 1e-4, HYP_BELOW},    {"H8", 10, HYP_BELOW},     {"H10", 1.5, HYP_ABOVE},
                {"H11", 1.05, HYP_AT_MOST}, {"H12", 1.1, HYP_AT_MOST}, {"H13", 0, HYP_AT_MOST}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct hyp_claim *claim = hyp_claim_find(rows[i].id);
        cr_assert(claim->threshold == rows[i].threshold, "%s: %g", rows[i].id, claim->threshold);
        cr_assert_eq(claim->direction, rows[i].direction, "%s", rows[i].id);
    }
}

Test(claim, the_edge_belongs_where_the_direction_says) {
    const struct hyp_claim *at_most = hyp_claim_find("H4"), *below = hyp_claim_find("H8"),
                           *above = hyp_claim_find("H10");
    cr_assert(hyp_claim_holds(at_most, 2.0) && !hyp_claim_holds(at_most, 2.0000001));
    cr_assert(hyp_claim_holds(below, 9.9) && !hyp_claim_holds(below, 10));
    cr_assert(hyp_claim_holds(above, 1.51) && !hyp_claim_holds(above, 1.5));
    cr_assert(!hyp_claim_holds(at_most, NAN) && !hyp_claim_holds(below, NAN) &&
              !hyp_claim_holds(above, NAN));
}

Test(claim, every_saboteur_of_the_table_exists) {
    for (size_t i = 0; i < hyp_claim_own_count(); i++) {
        size_t count = 0;
        const struct hyp_saboteur *saboteurs = hyp_claim_saboteurs(&hyp_claims()[i], &count);
        for (size_t s = 0; s < count; s++) {
            cr_assert(hyp_sabotage_find(saboteurs[s].name, NULL), "%s of %s: %s", saboteurs[s].name,
                      hyp_claims()[i].id, hyp_error());
        }
    }
}

Test(claim, some_saboteurs_have_attacks_that_are_tried_first) {
    struct hyp_claim plugins = *hyp_claim_find("H6");
    cr_assert_str_eq(hyp_claim_first_attacks(hyp_claim_find("H6"), "paged_old_page"),
                     "sequences_in_pages_*");
    cr_assert_null(hyp_claim_first_attacks(hyp_claim_find("H6"), "launch_drop"));
    cr_assert_null(hyp_claim_first_attacks(hyp_claim_find("H5"), "paged_old_page"));
    plugins.plugin = "pages 1.0";
    cr_assert_null(hyp_claim_first_attacks(&plugins, "paged_old_page"));
}

Test(claim, one_of_a_thing_is_in_the_singular) {
    static const struct {
        double value;
        const char *unit, *said;
    } rows[] = {{1, "violations", "violation"},
                {0, "violations", "violations"},
                {2, "violations", "violations"},
                {1.00001, "violations", "violation"}, /* which is printed as 1 */
                {1, "driver allocations", "driver allocation"},
                {1, "launches", "launch"},
                {1, "passes", "pass"},
                {1, "us", "us"},
                {1, "GB/s", "GB/s"},
                {1, "ratio", "ratio"},
                {1, "speedup", "speedup"},
                {1, "loss", "loss"},
                {-1, "points", "points"}};
    char text[HYP_UNIT_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert_str_eq(hyp_unit_of(rows[i].value, rows[i].unit, text), rows[i].said);
    }
    cr_assert_str_eq(hyp_plural(1), "");
    cr_assert_str_eq(hyp_plural(0), "s");
}

Test(session, devices_are_parsed) {
    enum hyp_device_kind kind = HYP_DEVICE_CUDA;
    int ordinal = 5;
    cr_assert(hyp_session_device("", &kind, &ordinal) && kind == HYP_DEVICE_AUTO && ordinal == 0);
    cr_assert(hyp_session_device("cuda:3", &kind, &ordinal) && kind == HYP_DEVICE_CUDA &&
              ordinal == 3);
    cr_assert(hyp_session_device("soft", &kind, &ordinal) && kind == HYP_DEVICE_SOFT);
    static const char *const wrong[] = {"gpu",   "cuda:",  "cuda:x", "cuda:-1",         "cuda:1x",
                                        "cudax", "soft:y", "AUTO",   "cuda:99999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_assert(!hyp_session_device(wrong[i], &kind, &ordinal), "%s", wrong[i]);
        cr_assert(strstr(hyp_error(), wrong[i]) != NULL);
    }
}

Test(session, a_wrong_environment_is_named) {
    struct hyp_session session;
    setenv("TOLLENS_MODE", "slow", 1);
    cr_assert(!hyp_session_read(&session) && strstr(hyp_error(), "slow") != NULL);
    setenv("TOLLENS_MODE", "full", 1);
    setenv("TOLLENS_SEED", "twelve", 1);
    cr_assert(!hyp_session_read(&session) && strstr(hyp_error(), "twelve") != NULL);
    setenv("TOLLENS_SEED", "12", 1);
    setenv("TOLLENS_DEVICE", "soft", 1);
    cr_assert(hyp_session_read(&session), "%s", hyp_error());
    cr_assert(session.full && session.seed == 12 && session.kind == HYP_DEVICE_SOFT);
    cr_assert_null(session.node);
    setenv("TOLLENS_NODE", "rack-3.gpu_07", 1);
    cr_assert(hyp_session_read(&session) && strcmp(session.node, "rack-3.gpu_07") == 0);
    setenv("TOLLENS_NODE", "<b>node</b>", 1);
    cr_assert(!hyp_session_read(&session) && strstr(hyp_error(), "TOLLENS_NODE=<b>") != NULL);
}

/* In a process of its own, as each test is: no call has failed before. */
Test(session, what_a_status_means_is_said_where_no_message_was_made) {
    struct tol_stream *stream = NULL;
    cr_assert(hyp_session_message()[0] == '\0');
    cr_assert_str_eq(hyp_session_message_of(TOL_OUT_OF_HOST_MEMORY),
                     tol_status_sentence(TOL_OUT_OF_HOST_MEMORY));
    hyp_fail("%d kernels", 3);
    cr_assert_str_eq(hyp_session_message_of(TOL_INVALID_FILE), "3 kernels");
    cr_assert(tol_stream_create(NULL, NULL, &stream) == TOL_INVALID_ARGUMENT);
    cr_assert_str_eq(hyp_session_message_of(TOL_INVALID_ARGUMENT), hyp_session_message());
    cr_assert(strstr(hyp_session_message(), "NULL") != NULL, "%s", hyp_session_message());
}
