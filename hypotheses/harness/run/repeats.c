/*
 * Counting verdicts over runs.
 */
#include "repeats.h"

#include "files/atomic_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* How bad an exit code is. One that fell outweighs a harness that failed, as within one run. */
static int repeats_weight(int exit_code) {
    return exit_code == 1 ? 3 : exit_code == 2 ? 2 : exit_code == 3 ? 1 : 0;
}

void hyp_repeats_count(struct hyp_repeats *repeats, const struct hyp_run *run) {
    repeats->done++;
    if (repeats_weight(run->exit_code) > repeats_weight(repeats->worst))
        repeats->worst = run->exit_code;
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        if (run->chosen[i]) repeats->counts[i][run->verdicts[i].kind]++;
    }
}

bool hyp_repeats_agree(const struct hyp_repeats *repeats, const struct hyp_claim *claim) {
    unsigned kinds = 0;
    for (int k = HYP_SURVIVED; k <= HYP_NOT_TESTED; k++) {
        kinds += repeats->counts[claim->number - 1][k] > 0;
    }
    return kinds <= 1;
}

bool hyp_repeats_write(const struct hyp_repeats *repeats, const struct hyp_run *run,
                       const char *folder) {
    char path[1100];
    json_t *claims = json_array();
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        if (!run->chosen[i]) continue;
        json_t *row = json_pack("{s:s}", "id", hyp_claims()[i].id);
        for (int k = HYP_SURVIVED; row != NULL && k <= HYP_NOT_TESTED; k++) {
            json_object_set_new(row, hyp_verdict_name((enum hyp_verdict_kind)k),
                                json_integer(repeats->counts[i][k]));
        }
        json_array_append_new(claims, row);
    }
    json_t *object = json_pack("{s:i, s:s, s:i, s:i, s:i, s:o}", "schema", 1, "command",
                               run->command, "wanted", (int)repeats->wanted, "done",
                               (int)repeats->done, "exit_code", repeats->worst, "claims", claims);
    char *text = object != NULL ? json_dumps(object, JSON_INDENT(2)) : NULL;
    json_decref(object);
    if (text == NULL) return hyp_fail("out of memory for repeats.json");
    snprintf(path, sizeof path, "%s/repeats.json", folder);
    bool ok = hyp_file_write(path, text);
    free(text);
    return ok;
}

void hyp_repeats_print(const struct hyp_repeats *repeats, const struct hyp_run *run, FILE *out) {
    size_t differing = 0;
    fprintf(out, "\n%u of %u runs  survived  falsified  inconclusive  not tested\n", repeats->done,
            repeats->wanted);
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_claim *claim = &hyp_claims()[i];
        const unsigned *counts = repeats->counts[i];
        if (!run->chosen[i]) continue;
        bool agree = hyp_repeats_agree(repeats, claim);
        fprintf(out, "%-12s  %8u  %9u  %12u  %10u%s\n", claim->id, counts[HYP_SURVIVED],
                counts[HYP_FALSIFIED], counts[HYP_INCONCLUSIVE], counts[HYP_NOT_TESTED],
                agree ? "" : "  not always the same");
        differing += !agree;
    }
    if (differing > 0) fprintf(out, "Claims with differing verdicts: %zu. ", differing);
    fprintf(out, "Evidence: %s\n", run->folder);
    fflush(out);
}
