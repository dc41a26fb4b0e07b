/*
 * Evidence: the files other programs read hold together whatever text they carry.
 */
#include "evidence.h"
#include "files/atomic_file.h"
#include "judge/verdict_judge.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static char folder[64];
static struct hyp_run run;

static void begin(void) {
    snprintf(folder, sizeof folder, "/tmp/tollens_evidence_XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
    run = (struct hyp_run){.folder = folder, .command = "tollens run \"H3\"", .sabotage = true};
    run.machine.kind = HYP_DEVICE_SOFT;
    snprintf(run.machine.device.name, sizeof run.machine.device.name, "A <device> & \"more\"");
    run.chosen[2] = run.chosen[3] = true;
    struct hyp_verdict *verdict = &run.verdicts[2];
    verdict->outcomes = calloc(1, sizeof *verdict->outcomes);
    verdict->outcome_count = 1;
    struct hyp_outcome *outcome = verdict->outcomes;
    snprintf(outcome->name, sizeof outcome->name, "every_size");
    outcome->ending = HYP_FAILED;
    outcome->has_record = true;
    outcome->record.samples = 8;
    outcome->record.violations = 1;
    outcome->record.example_count = 1;
    snprintf(outcome->record.examples[0], HYP_EXAMPLE_BYTES,
             "]]> & <b> \"q\" \x01\xff | line\nend");
    hyp_verdict_judge(hyp_claim_find("H3"), 0, verdict);
    verdict->has_severity = true;
    verdict->caught = 2;
    verdict->saboteurs = 3;
    hyp_verdict_not_tested(&run.verdicts[3], "not_implemented", "not implemented yet");
}
static void end(void) {
    hyp_verdict_end(&run.verdicts[2]);
    cr_assert(hyp_directory_remove(folder), "%s", hyp_error());
}
TestSuite(evidence, .init = begin, .fini = end);

static char *read_back(const char *name) {
    char path[256];
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *text = hyp_file_read(path, 1 << 20, &bytes);
    cr_assert(text != NULL, "%s", hyp_error());
    return text;
}

Test(evidence, results_have_the_names_others_rely_on) {
    cr_assert(hyp_evidence_results(&run), "%s", hyp_error());
    char *text = read_back("results.json");
    json_t *object = json_loads(text, 0, NULL);
    cr_assert(object != NULL, "%s", text);
    cr_assert(json_integer_value(json_object_get(object, "schema")) == 1);
    const json_t *claims = json_object_get(object, "claims");
    cr_assert(json_array_size(claims) == 2);
    const json_t *first = json_array_get(claims, 0), *second = json_array_get(claims, 1);
    static const char *const names[] = {"id",        "verdict", "reason",  "effect",
                                        "unit",      "low",     "high",    "threshold",
                                        "direction", "samples", "severity"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cr_assert(json_object_get(first, names[i]) != NULL, "%s is missing", names[i]);
        cr_assert(json_object_get(second, names[i]) != NULL, "%s is missing", names[i]);
    }
    cr_assert_str_eq(json_string_value(json_object_get(first, "verdict")), "falsified");
    cr_assert(json_real_value(json_object_get(first, "effect")) == 1);
    cr_assert(json_integer_value(json_object_get(json_object_get(first, "severity"), "of")) == 3);
    cr_assert_str_eq(json_string_value(json_object_get(second, "verdict")), "not_tested");
    cr_assert(json_is_null(json_object_get(second, "effect")));
    cr_assert(json_is_null(json_object_get(second, "severity")));
    json_decref(object);
    free(text);
}

Test(evidence, the_summary_counts_one_in_the_singular) {
    cr_assert(hyp_evidence_summary(&run), "%s", hyp_error());
    char *text = read_back("summary.md");
    cr_assert(strstr(text, "1 violation") != NULL || strstr(text, "1 of ") != NULL, "%s", text);
    cr_assert(strstr(text, "1 violations") == NULL && strstr(text, " 1 samples") == NULL, "%s",
              text);
    free(text);
}

Test(evidence, junit_escapes_everything) {
    cr_assert(hyp_evidence_junit(&run), "%s", hyp_error());
    char *text = read_back("junit.xml");
    cr_assert(strstr(text, "]]&gt; &amp; &lt;b&gt; &quot;q&quot; ?? | line&#10;end") != NULL, "%s",
              text);
    cr_assert(strstr(text, "A &lt;device&gt; &amp; &quot;more&quot;") != NULL);
    cr_assert(strstr(text, "tests=\"2\" failures=\"2\" errors=\"0\" skipped=\"0\"") != NULL);
    cr_assert(strstr(text, "tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"1\"") != NULL);
    static const char *const numbers[] = {
        "\"effect\" value=\"1\"", "\"threshold\" value=\"0\"", "\"samples\" value=\"8\"",
        "\"severity\" value=\"2 of 3\"", "\"unit\" value=\"violations\""};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        cr_assert(strstr(text, numbers[i]) != NULL, "%s is missing: %s", numbers[i], text);
    }
    cr_assert(strstr(text, "<skipped message=\"not implemented yet\"/>") != NULL);
    free(text);
}

Test(evidence, the_summary_says_what_fell_and_why) {
    cr_assert(hyp_evidence_summary(&run), "%s", hyp_error());
    char *text = read_back("summary.md");
    cr_assert(strstr(text, "0 survived, 1 falsified, 0 inconclusive, 1 not tested") != NULL);
    cr_assert(strstr(text, "| H3 |") != NULL && strstr(text, "**falsified**") != NULL);
    cr_assert(strstr(text, "2 of 3") != NULL);
    cr_assert(strstr(text, "\\| line end") != NULL, "a bar would end the table's cell: %s", text);
    free(text);
}

Test(evidence, a_claim_has_its_words_and_its_attacks) {
    cr_assert(hyp_evidence_claim(&run, hyp_claim_find("H3")), "%s", hyp_error());
    char *text = read_back("H3/verdict.json");
    json_t *object = json_loads(text, 0, NULL);
    cr_assert(json_array_size(json_object_get(object, "attacks")) == 1);
    json_decref(object);
    free(text);
    free(read_back("H3/claim.json"));
}

Test(evidence, a_saboteur_leaves_what_it_had_to_force_and_what_came_out) {
    const struct hyp_claim *claim = hyp_claim_find("H3");
    const struct hyp_saboteur saboteur = {.name = "copy_flip_bit", .forced = HYP_MUST_FALSIFY};
    cr_assert(hyp_evidence_saboteur(&run, claim, &saboteur, &run.verdicts[2], true), "%s",
              hyp_error());
    char *text = read_back("H3/sabotage/copy_flip_bit/verdict.json");
    json_t *object = json_loads(text, 0, NULL);
    cr_assert_str_eq(json_string_value(json_object_get(object, "must")), "falsified");
    cr_assert_str_eq(json_string_value(json_object_get(object, "verdict")), "falsified");
    cr_assert(json_is_true(json_object_get(object, "right")));
    json_decref(object);
    free(text);
}

Test(evidence, what_is_listed_is_what_was_written) {
    cr_assert(hyp_evidence_claim(&run, hyp_claim_find("H3")) && hyp_evidence_results(&run) &&
                  hyp_evidence_end(&run),
              "%s", hyp_error());
    char *text = read_back("manifest.json");
    cr_assert(strstr(text, "\"H3/verdict.json\"") && strstr(text, "\"results.json\""), "%s", text);
    cr_assert(strstr(text, "\"run.json\"") == NULL, "run.json comes after it");
    unsigned long list_crc = crc32(0, (const unsigned char *)text, (unsigned)strlen(text));
    free(text);
    text = read_back("run.json");
    const char *crc = strstr(text, "\"list_crc32\": \"");
    cr_assert(crc != NULL && strtoul(crc + 15, NULL, 16) == list_crc, "run.json: %s", text);
    free(text);
}
