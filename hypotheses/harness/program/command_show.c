/*
 * list and explain: what there is, before anything is run.
 */
#include "harness/claim.h"
#include "attack/ladder.h"
#include "run/command.h"
#include "plugin/plugins.h"
#include "harness/sabotage.h"
#include "run/worker.h"

#include <stdio.h>
#include <string.h>

/* ---- list ------------------------------------------------------------------------------------ */

int hyp_command_list(int count, char **words) {
    if (count > 0) return hyp_command_complain("list takes no arguments: %s", words[0]);
    json_t *rows = json_array();
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_claim *claim = &hyp_claims()[i];
        size_t saboteurs = 0, attacks = hyp_worker_list(claim->suite, NULL, NULL, 0);
        (void)hyp_claim_saboteurs(claim, &saboteurs);
        json_array_append_new(rows,
                              json_pack("{s:s, s:s, s:s?, s:b, s:I, s:I}", "id", claim->id, "title",
                                        claim->title, "plugin", claim->plugin, "is_implemented",
                                        (int)(claim->words != NULL), "attacks", (json_int_t)attacks,
                                        "saboteurs", (json_int_t)saboteurs));
        hyp_command_say("%-*s%-70s  ", hyp_claim_width(), claim->id, claim->title);
        if (claim->words == NULL) {
            hyp_command_say("not implemented yet\n");
        } else {
            hyp_command_say("%zu attack%s, %zu saboteur%s\n", attacks, hyp_plural(attacks),
                            saboteurs, hyp_plural(saboteurs));
        }
    }
    json_t *document = json_pack("{s:o}", "claims", rows);
    if (hyp_command_is_json()) return hyp_command_answer("list", document, HYP_EXIT_OK);
    json_decref(document);
    return HYP_EXIT_OK;
}

/* ---- explain --------------------------------------------------------------------------------- */

/* Prints text under a heading, broken into lines of at most WIDTH characters. */
static void put_words(const char *heading, const char *text) {
    enum { WIDTH = 92, INDENT = 14 };
    size_t column = 0;
    if (text == NULL) return;
    hyp_command_say("%-*s", INDENT, heading);
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (column > 0 && column + 1 + length > WIDTH - INDENT) {
            hyp_command_say("\n%*s", INDENT, "");
            column = 0;
        }
        hyp_command_say("%s%.*s", column > 0 ? " " : "", (int)length, text);
        column += length + (column > 0);
        text += length;
        text += strspn(text, " ");
    }
    hyp_command_say("\n");
}

static const char *find_sentence(const char *name) {
    size_t index = 0;
    return hyp_sabotage_find(name, &index) ? hyp_sabotage_sentence(index) : "";
}

static void show_explain(const struct hyp_claim *claim) {
    char threshold[128], unit[HYP_UNIT_BYTES];
    const char *names[64];
    size_t count = hyp_worker_list(claim->suite, NULL, names, 64);
    hyp_command_say("%s: %s\n\n", claim->id, claim->title);
    snprintf(threshold, sizeof threshold, "%s %.6g %s", hyp_direction_words(claim->direction),
             claim->threshold, hyp_unit_of(claim->threshold, claim->unit, unit));
    if (claim->words != NULL) {
        put_words("claim", claim->words->claim);
        put_words("prediction", claim->words->prediction);
        put_words("falsified if", claim->words->falsified_if);
        put_words("method", claim->words->method);
        put_words("control", claim->words->control);
        put_words("confounders", claim->words->confounders);
    }
    put_words("threshold", threshold);
    put_words("source", claim->source);
    put_words("plugin", claim->plugin);
    if (claim->words == NULL) {
        hyp_command_say("\nIt has no attack yet, so it is not tested.\n");
        return;
    }
    hyp_command_say("\nattacks\n");
    for (size_t i = 0; i < count && i < 64; i++) hyp_command_say("  %s\n", names[i]);
    const struct hyp_saboteur *saboteurs = hyp_claim_saboteurs(claim, &count);
    hyp_command_say("\nsaboteurs, and the verdict that each must force\n");
    for (size_t i = 0; i < count; i++) {
        hyp_command_say("  %-24s %-14s %s\n", saboteurs[i].name,
                        hyp_forced_words(saboteurs[i].forced), find_sentence(saboteurs[i].name));
    }
    const char *const *ladders = NULL;
    count = hyp_claim_ladders(claim, &ladders);
    if (count > 0)
        hyp_command_say("\nfaults whose detection limit --limits finds, from gross to fine\n");
    for (size_t i = 0; i < count; i++) {
        struct hyp_ladder ladder;
        if (!hyp_ladder_read(ladders[i], &ladder)) continue;
        hyp_command_say("  %s\n%*s%s\n", ladders[i], 6, "", find_sentence(ladder.steps[0]));
    }
}

/* The same for programs. */
static json_t *show_explanation(const struct hyp_claim *claim) {
    const char *names[64];
    const char *const *ladders = NULL;
    json_t *attacks = json_array(), *saboteurs = json_array(), *limits = json_array();
    const struct hyp_words none = {.claim = NULL},
                           *words = claim->words != NULL ? claim->words : &none;
    size_t count = claim->words != NULL ? hyp_worker_list(claim->suite, NULL, names, 64) : 0;
    for (size_t i = 0; i < count && i < 64; i++) {
        json_array_append_new(attacks, json_string(names[i]));
    }
    const struct hyp_saboteur *all = hyp_claim_saboteurs(claim, &count);
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(saboteurs, json_pack("{s:s, s:s, s:s}", "name", all[i].name, "must",
                                                   hyp_forced_words(all[i].forced), "words",
                                                   find_sentence(all[i].name)));
    }
    count = hyp_claim_ladders(claim, &ladders);
    for (size_t i = 0; i < count; i++) json_array_append_new(limits, json_string(ladders[i]));
    return json_pack(
        "{s:s, s:s, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:f, s:s, s:s, s:s?, s:s?, s:o, s:o, s:o}",
        "id", claim->id, "title", claim->title, "claim", words->claim, "prediction",
        words->prediction, "falsified_if", words->falsified_if, "method", words->method, "control",
        words->control, "confounders", words->confounders, "threshold", claim->threshold, "unit",
        claim->unit, "direction", hyp_direction_name(claim->direction), "source", claim->source,
        "plugin", claim->plugin, "attacks", attacks, "saboteurs", saboteurs, "limits", limits);
}

int hyp_command_explain(int count, char **words) {
    json_t *claims = json_array();
    if (count == 0) {
        json_decref(claims);
        hyp_command_next("%s list", hyp_command_program());
        return hyp_command_complain("explain requires the names of claims, H1 to H%zu",
                                    hyp_claim_own_count());
    }
    for (int i = 0; i < count; i++) {
        const struct hyp_claim *claim = hyp_claim_find(words[i]);
        if (claim == NULL) {
            json_decref(claims);
            hyp_command_next("%s list", hyp_command_program());
            return hyp_command_complain("%s", hyp_plugin_no_claim(words[i]));
        }
        if (i > 0) hyp_command_say("\n");
        show_explain(claim);
        json_array_append_new(claims, show_explanation(claim));
    }
    json_t *document = json_pack("{s:o}", "claims", claims);
    if (hyp_command_is_json()) return hyp_command_answer("explain", document, HYP_EXIT_OK);
    json_decref(document);
    return HYP_EXIT_OK;
}
