/*
 * What a plugin may declare, and what is said to one that may not be loaded.
 */
#include "files/atomic_file.h"
#include "plugin_rules.h"
#include "plugins.h"
#include "program/shell_scene.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void attack_body(struct hyp_attack *attack) {
    (void)attack;
}

static const struct hyp_saboteur saboteurs[] = {{.name = "launch_drop", .forced = HYP_MUST_FALSIFY},
                                                {.name = NULL}};
static const char *const ladders[] = {"launch_drop_one_in=10,100", NULL};
static const struct hyp_plugin_attack first = {.suite = "ring", .name = "a", .body = attack_body},
                                      second = {.suite = "ring", .name = "b", .body = attack_body},
                                      stray = {.suite = "rong", .name = "c", .body = attack_body};
static const struct hyp_plugin_attack *attacks[2];
static struct hyp_plugin_claim claims[2];
static struct hyp_plugin plugin;

/* One that nothing is wrong with; a test then spoils one part of it. */
static void make_whole(void) {
    attacks[0] = &first;
    attacks[1] = &second;
    claims[0] = (struct hyp_plugin_claim){.id = "RING",
                                          .title = "It turns",
                                          .unit = "violations",
                                          .source = "its manual",
                                          .words = {.claim = "It turns.",
                                                    .prediction = "0 violations.",
                                                    .falsified_if = "It stands.",
                                                    .method = "Turn it.",
                                                    .control = "Another ring.",
                                                    .confounders = "Rust."},
                                          .saboteurs = saboteurs};
    plugin = (struct hyp_plugin){.abi = HYP_PLUGIN_ABI,
                                 .layout = HYP_PLUGIN_LAYOUT,
                                 .name = "rings",
                                 .version = "2.1",
                                 .claims = claims,
                                 .attacks = attacks,
                                 .attacks_end = attacks + 2};
}

TestSuite(plugin, .init = make_whole);

static bool is_whole(void) {
    return hyp_plugin_is_whole(&plugin) && hyp_plugin_claim_is_whole(&plugin, claims);
}

static void expect_refused(const char *words) {
    cr_assert(!is_whole(), "accepted, and should say: %s", words);
    cr_assert(strstr(hyp_error(), words) != NULL, "it says: %s", hyp_error());
    make_whole();
}

Test(plugin, one_that_is_whole_is_accepted) {
    cr_assert(is_whole(), "%s", hyp_error());
}

Test(plugin, ids_are_capital_and_not_the_runtimes) {
    static const char *const refused[] = {"",    "R",  "ring", "Ring", "RINGRINGR", "R G",
                                          "1RG", "H3", "H14",  "H9A",  "../X"};
    static const char *const accepted[] = {"RB", "RING2", "HASH"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        claims[0].id = refused[i];
        cr_assert(!hyp_plugin_claim_is_whole(&plugin, claims), "%s", refused[i]);
        cr_assert(strstr(hyp_error(), "is not a valid id") != NULL, "%s: %s", refused[i],
                  hyp_error());
    }
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        claims[0].id = accepted[i];
        cr_assert(!hyp_plugin_claim_is_whole(&plugin, claims));
        cr_assert(strstr(hyp_error(), "has no attack") != NULL, "%s: %s", accepted[i], hyp_error());
    }
}

Test(plugin, every_part_must_be_there) {
    plugin.name = " ";
    expect_refused("a name and a version");
    plugin.version = NULL;
    expect_refused("a name and a version");
    plugin.claims = claims + 1;
    expect_refused("no claim");
    claims[0].title = NULL;
    expect_refused("RING has no title");
    claims[0].unit = "";
    expect_refused("RING has no unit");
    claims[0].words.control = "";
    expect_refused("RING has no words.control");
    claims[0].words.confounders = NULL;
    expect_refused("RING has no words.confounders");
    plugin.attacks_end = attacks;
    expect_refused("RING has no attack");
}

Test(plugin, numbers_are_finite_and_not_negative) {
    claims[0].threshold = NAN;
    expect_refused("must be finite");
    claims[0].threshold = -1;
    expect_refused("must be finite");
    claims[0].tolerance = INFINITY;
    expect_refused("must be finite");
    claims[0].direction = (enum hyp_direction)7;
    expect_refused("one of the three");
    claims[0].words.is_timed = claims[0].words.is_measured = true;
    expect_refused("timed and measured");
    claims[0].words.is_timed = claims[0].shares_device = true;
    expect_refused("RING is timed, and shares_device");
}

Test(plugin, attacks_are_upon_its_own_claims_and_have_names_of_their_own) {
    attacks[1] = &stray;
    expect_refused("the attack c is on rong");
    attacks[1] = &first;
    expect_refused("two attacks on RING are called a");
    static const struct hyp_plugin_attack suiteless = {.name = "d", .body = attack_body},
                                          nameless = {.suite = "ring", .body = attack_body};
    attacks[1] = &suiteless;
    expect_refused("its attack number 2 has no suite or no name");
    attacks[0] = &nameless;
    expect_refused("its attack number 1 has no suite or no name");
}

/* A claim that nothing can bring down says nothing. */
Test(plugin, a_claim_needs_a_saboteur_that_exists) {
    static const struct hyp_saboteur none[] = {{.name = NULL}},
                                     unknown[] = {{.name = "gremlin"}, {.name = NULL}},
                                     half[] = {{.name = "launch_drop"},
                                               {.name = "launch_delay_us=3",
                                                .forced = HYP_MUST_NOT_SURVIVE},
                                               {.name = NULL}};
    claims[0].saboteurs = NULL;
    expect_refused("RING has no saboteur");
    claims[0].saboteurs = none;
    expect_refused("RING has no saboteur");
    claims[0].saboteurs = unknown;
    expect_refused("no saboteur named 'gremlin'");
    claims[0].saboteurs = half;
    expect_refused("both ends");
}

Test(plugin, faults_have_names_that_can_be_typed) {
    static const struct hyp_fault blank[] = {{.name = "a b", .sentence = "s"}, {.name = NULL}},
                                  dumb[] = {{.name = "a"}, {.name = NULL}},
                                  taken = {.name = "launch_drop", .sentence = "s"};
    plugin.faults = blank;
    expect_refused("is not a valid name of a fault");
    plugin.faults = dumb;
    expect_refused("has no sentence");
    cr_assert(!hyp_sabotage_add(&taken) && strstr(hyp_error(), "already") != NULL);
}

Test(plugin, ladders_are_faults_from_gross_to_fine) {
    static const char *const good[] = {"launch_drop_one_in=10,100", "launch_twice", NULL},
                             *const wrong[] = {"launch_drop_one_in=10,100",
                                               "launch_twice_one_in=100,10", NULL},
                             *const unknown[] = {"ring_stops=1,2", NULL},
                             *const many[] = {"launch_drop", "launch_drop", "launch_drop",
                                              "launch_drop", "launch_drop", NULL};
    claims[0].ladders = good;
    cr_assert(is_whole(), "%s", hyp_error());
    claims[0].ladders = wrong;
    expect_refused("must go from gross to fine");
    claims[0].ladders = unknown;
    expect_refused("no saboteur named 'ring_stops=1'");
    claims[0].ladders = many;
    expect_refused("RING has 5 ladders; at most 4");
}

Test(plugin, a_fault_that_was_added_is_found) {
    static const struct hyp_fault fault = {
        .name = "ring_slips", .sentence = "it slips so often", .has_amount = true};
    size_t index = 0;
    cr_assert(!hyp_sabotage_find("ring_slips=2", NULL));
    cr_assert(hyp_sabotage_add(&fault) && hyp_sabotage_find("ring_slips=2", &index));
    cr_assert_str_eq(hyp_sabotage_sentence(index), "it slips so often");
    struct tol_interpose_options options;
    cr_assert(hyp_sabotage_hooks("ring_slips=2", &options) && hyp_sabotage_given() == 2);
}

Test(plugin, a_plugins_claim_is_found_by_its_id_and_its_suite) {
    const struct hyp_claim added = {.id = "RING",
                                    .plugin = "rings 2.1",
                                    .saboteurs = saboteurs,
                                    .saboteur_count = 1,
                                    .ladders = ladders,
                                    .ladder_count = 1};
    size_t count = 0;
    cr_assert(hyp_claim_find("RING") == NULL && hyp_claim_width() == 4);
    struct hyp_claim *claim = hyp_claim_add(&added);
    cr_assert(claim != NULL && hyp_claim_count() == hyp_claim_own_count() + 1 &&
              claim->number == (int)hyp_claim_count());
    cr_assert_str_eq(claim->suite, "ring");
    cr_assert(hyp_claim_find("ring") == claim && hyp_claim_of_suite("ring") == claim);
    cr_assert(hyp_claim_find("H99") == NULL && hyp_claim_find("h3") == &hyp_claims()[2]);
    cr_assert(hyp_claim_saboteurs(claim, &count) == saboteurs && count == 1);
    const char *const *found = NULL;
    cr_assert(hyp_claim_ladders(claim, &found) == 1 && found == ladders);
    cr_assert(hyp_claim_width() == 5);
    while (hyp_claim_count() < hyp_claim_own_count() + HYP_GUESTS_MAX) {
        cr_assert(hyp_claim_add(&added) != NULL);
    }
    cr_assert(hyp_claim_add(&added) == NULL);
}

TestSuite(plugin_program, .init = program_begin, .fini = program_end);

static void expect_error(const char *command, const char *words) {
    int code = program_shell(command);
    cr_assert(code == 2 && program_says(words), "%s: %d: %s", command, code, program_output);
}

Test(plugin_program, what_is_no_plugin_is_refused_by_every_command) {
    program_write("junk.so", "not a library");
    expect_error("\"$T\" run --plugin \"$D/none.so\"", "does not exist");
    expect_error("\"$T\" list --plugin \"$D/junk.so\"", "cannot be loaded");
    expect_error("\"$T\" explain --plugin=\"$D/junk.so\" H1", "cannot be loaded");
    expect_error("TOLLENS_PLUGIN=\"$D/junk.so\" \"$T\" run H1", "cannot be loaded");
    expect_error("cd \"$D\"; TOLLENS_PLUGIN=junk.so \"$T\" run H1", "not a shared library");
    expect_error("TOLLENS_PLUGIN=none.so \"$T\" run H1", "does not exist");
    expect_error("\"$T\" run --plugin \"$D\"", "cannot be loaded");
    expect_error("\"$T\" run --plugin", "requires the path");
    expect_error("\"$T\" --plugin=", "requires the path");
    expect_error("\"$T\" list --plugin \"$T\"", "cannot be loaded");
    expect_error("cp \"$D/junk.so\" \"$D/a:b.so\"; \"$T\" list --plugin \"$D/a:b.so\"", "colon");
    expect_error("\"$T\" list --plugin \"${T%/*}/libtollens-soft.so\"", "is not a plugin");
    expect_error("head -c 20000 \"${T%/*}/libtollens-soft.so\" >\"$D/half.so\"; "
                 "\"$T\" list --plugin \"$D/half.so\"",
                 "is truncated");
}

Test(plugin_program, evidence_with_a_plugin_needs_its_plugin) {
    program_write(
        "run/results.json",
        "{\"schema\": 1, \"device\": {\"kind\": \"soft\", \"name\": \"s\"}, \"mode\": "
        "\"quick\", \"claims\": [{\"id\": \"RING\", \"verdict\": \"survived\", "
        "\"effect\": 0, \"unit\": \"u\", \"threshold\": 0, \"direction\": \"at_most\"}]}");
    expect_error("\"$T\" export \"$D/run\" --format bmf", "--plugin");
}
