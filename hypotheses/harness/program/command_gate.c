/*
 * gate: one run's evidence against a baseline's; the exit code is for CI.
 */
#include "run/command.h"
#include "files/atomic_file.h"
#include "judge/gate.h"
#include "record/record.h"

#include <stdio.h>
#include <string.h>

struct gate_options {
    const char *evidence, *baseline;
    bool across, inconclusive_warns;
};

static bool gate_read_words(int count, char **words, struct gate_options *options) {
    static const char baseline[] = "--baseline=";
    for (int i = 0; i < count; i++) {
        const char *word = words[i];
        if (strcmp(word, "--baseline") == 0) {
            options->baseline = i + 1 < count ? words[++i] : "";
        } else if (strncmp(word, baseline, strlen(baseline)) == 0) {
            options->baseline = word + strlen(baseline);
        } else if (strcmp(word, "--across") == 0) {
            options->across = true;
        } else if (strcmp(word, "--inconclusive=warn") == 0) {
            options->inconclusive_warns = true;
        } else if (strcmp(word, "--inconclusive=fail") == 0) {
            options->inconclusive_warns = false;
        } else if (word[0] == '-') {
            return hyp_command_no_option("gate", word);
        } else if (options->evidence != NULL) {
            return hyp_fail("gate takes one folder of evidence; %s is a second one", word);
        } else {
            options->evidence = word;
        }
    }
    if (options->evidence == NULL || options->baseline == NULL || options->baseline[0] == '\0') {
        return hyp_fail(
            "gate requires two folders written by tollens run: EVIDENCE --baseline EVIDENCE");
    }
    return true;
}

int hyp_command_gate(int count, char **words) {
    static struct hyp_results now, before;
    struct gate_options options = {0};
    size_t counts[HYP_WORSE + 1] = {0};
    if (!gate_read_words(count, words, &options) || !hyp_results_read(options.evidence, &now) ||
        !hyp_results_read(options.baseline, &before)) {
        return hyp_command_complain("%s", hyp_error());
    }
    if (!options.across && !hyp_gate_comparable(&now, &before)) {
        hyp_command_next("%s gate --across, to compare anyway", hyp_command_program());
        return hyp_command_complain("%s", hyp_error());
    }
    json_t *rows = json_array();
    hyp_command_say("%s, %s run: commit %.12s against %.12s\n", now.device_name, now.mode,
                    now.commit[0] != '\0' ? now.commit : "unknown",
                    before.commit[0] != '\0' ? before.commit : "unknown");
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_claim *claim = &hyp_claims()[i];
        const struct hyp_result *row = hyp_results_find(&now, claim),
                                *other = hyp_results_find(&before, claim);
        char sentence[512];
        if (row == NULL && other == NULL) continue;
        enum hyp_change change = hyp_gate_compare(row, other, sentence, sizeof sentence);
        counts[change]++;
        hyp_command_say("%-*s%-12s  %s\n", hyp_claim_width(), claim->id, hyp_change_words(change),
                        sentence);
        json_array_append_new(rows, json_pack("{s:s, s:s, s:o}", "id", claim->id, "change",
                                              hyp_change_words(change), "sentence",
                                              hyp_record_text(sentence)));
    }
    size_t worse = counts[HYP_WORSE], untold = counts[HYP_CANNOT_TELL];
    size_t compared = counts[HYP_SAME] + counts[HYP_BETTER] + counts[HYP_NEW] + worse + untold;
    if (compared == 0) {
        json_decref(rows);
        return hyp_command_complain("neither run tested anything: there is nothing to compare");
    }
    hyp_command_say("\n%zu same, %zu better, %zu new, %zu worse, %zu cannot tell\n",
                    counts[HYP_SAME], counts[HYP_BETTER], counts[HYP_NEW], worse, untold);
    const int code = worse > 0                                   ? HYP_EXIT_FALSIFIED
                     : untold > 0 && !options.inconclusive_warns ? HYP_EXIT_INCONCLUSIVE
                                                                 : HYP_EXIT_OK;
    json_t *document =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:{s:I, s:I, s:I, s:I, s:I}, s:i}", "device",
                  now.device_name, "mode", now.mode, "commit", hyp_record_text(now.commit),
                  "baseline_commit", hyp_record_text(before.commit), "claims", rows, "counts",
                  "same", (json_int_t)counts[HYP_SAME], "better", (json_int_t)counts[HYP_BETTER],
                  "new", (json_int_t)counts[HYP_NEW], "worse", (json_int_t)worse, "cannot_tell",
                  (json_int_t)untold, "exit_code", code);
    if (hyp_command_is_json()) return hyp_command_answer("gate", document, code);
    json_decref(document);
    return code;
}
