/*
 * Fuzz target: a plugin is judged before its code runs. An input that begins with ELF's four bytes
 * is a file of a plugin; any other is a declaration with one field per line. Either is accepted or
 * refused with a sentence, and what is accepted keeps the rules of plugin.h. Nothing is loaded.
 */
#include "fuzz_input.h"

#include "attack/ladder.h"
#include "files/atomic_file.h"
#include "plugin/plugin_file.h"
#include "plugin/plugin_rules.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CLAIMS_MAX = 3, ATTACKS_MAX = 4, FAULTS_MAX = 3, SABOTEURS_MAX = 3, LADDERS_MAX = 6 };

/* ---- the file -------------------------------------------------------------------------------- */

static void check_file(const uint8_t *data, size_t size) {
    ElfW(Ehdr) head;
    ElfW(Phdr) segment;
    if (!hyp_plugin_file_is_whole(fuzz_file("plugin.so", data, size))) {
        FUZZ_HOLDS(hyp_error()[0] != '\0');
        return;
    }
    FUZZ_HOLDS(size >= sizeof head);
    memcpy(&head, data, sizeof head);
    for (size_t i = 0; i < head.e_phnum; i++) {
        size_t at = head.e_phoff + i * sizeof segment;
        FUZZ_HOLDS(at <= size && size - at >= sizeof segment);
        memcpy(&segment, data + at, sizeof segment);
        FUZZ_HOLDS(segment.p_offset <= size && segment.p_filesz <= size - segment.p_offset);
    }
}

/* ---- the declaration ------------------------------------------------------------------------- */

/* The next line without its end; NULL where the input has none left, or the line is "-". */
static const char *next_text(char **rest) {
    const char *line = strsep(rest, "\n");
    return line != NULL && strcmp(line, "-") == 0 ? NULL : line;
}

static double plugin_next_number(char **rest) {
    const char *text = next_text(rest);
    return text != NULL ? strtod(text, NULL) : 0;
}

static unsigned next_below(char **rest, unsigned bound) {
    const char *text = next_text(rest);
    return text != NULL ? (unsigned)strtoul(text, NULL, 10) % bound : 0;
}

struct declaration {
    struct hyp_plugin plugin;
    struct hyp_plugin_claim claims[CLAIMS_MAX + 1];
    struct hyp_saboteur saboteurs[CLAIMS_MAX][SABOTEURS_MAX + 1];
    const char *ladders[CLAIMS_MAX][LADDERS_MAX + 1];
    struct hyp_fault faults[FAULTS_MAX + 1];
    struct hyp_plugin_attack attacks[ATTACKS_MAX];
    const struct hyp_plugin_attack *places[ATTACKS_MAX];
};

static void read_claim(char **rest, struct hyp_plugin_claim *claim, struct hyp_saboteur *saboteurs,
                       const char **ladders) {
    claim->id = next_text(rest);
    claim->title = next_text(rest);
    claim->unit = next_text(rest);
    claim->source = next_text(rest);
    claim->threshold = plugin_next_number(rest);
    claim->tolerance = plugin_next_number(rest);
    claim->direction = (enum hyp_direction)next_below(rest, 5);
    claim->words = (struct hyp_words){.claim = next_text(rest),
                                      .prediction = next_text(rest),
                                      .falsified_if = next_text(rest),
                                      .method = next_text(rest),
                                      .control = next_text(rest),
                                      .confounders = next_text(rest)};
    unsigned flags = next_below(rest, 32), count = next_below(rest, SABOTEURS_MAX + 1);
    claim->words.is_timed = (flags & 1) != 0;
    claim->words.is_measured = (flags & 2) != 0;
    claim->shares_device = (flags & 16) != 0;
    for (unsigned i = 0; i < count; i++) {
        saboteurs[i].name = next_text(rest);
        saboteurs[i].forced = (enum hyp_forced)next_below(rest, 5);
    }
    claim->saboteurs = (flags & 4) != 0 ? NULL : saboteurs;
    if ((flags & 8) == 0) return;
    count = next_below(rest, LADDERS_MAX + 1);
    for (unsigned i = 0; i < count; i++) ladders[i] = next_text(rest);
    claim->ladders = ladders;
}

static void read_declaration(char *text, struct declaration *d) {
    char **rest = &text;
    memset(d, 0, sizeof *d);
    d->plugin = (struct hyp_plugin){.abi = HYP_PLUGIN_ABI, .layout = HYP_PLUGIN_LAYOUT};
    d->plugin.name = next_text(rest);
    d->plugin.version = next_text(rest);
    unsigned faults = next_below(rest, FAULTS_MAX + 1), claims = next_below(rest, CLAIMS_MAX + 1);
    unsigned attacks = next_below(rest, ATTACKS_MAX + 1);
    for (unsigned i = 0; i < faults; i++) {
        d->faults[i].name = next_text(rest);
        d->faults[i].sentence = next_text(rest);
        d->faults[i].has_amount = next_below(rest, 2) != 0;
    }
    for (unsigned i = 0; i < claims; i++) {
        read_claim(rest, &d->claims[i], d->saboteurs[i], d->ladders[i]);
    }
    for (unsigned i = 0; i < attacks; i++) {
        d->attacks[i].suite = next_text(rest);
        d->attacks[i].name = next_text(rest);
        d->places[i] = &d->attacks[i];
    }
    d->plugin.faults = faults > 0 ? d->faults : NULL;
    d->plugin.claims = claims > 0 ? d->claims : NULL;
    d->plugin.attacks = d->places;
    d->plugin.attacks_end = d->places + attacks;
}

/* What the program relies on when it prints, lists and judges a claim. */
static void check_claim(const struct declaration *d, const struct hyp_plugin_claim *claim) {
    const char *const texts[] = {claim->title,
                                 claim->unit,
                                 claim->source,
                                 claim->words.claim,
                                 claim->words.prediction,
                                 claim->words.falsified_if,
                                 claim->words.method,
                                 claim->words.control,
                                 claim->words.confounders};
    size_t attacks = 0;
    FUZZ_HOLDS(strlen(claim->id) < sizeof((struct hyp_claim *)NULL)->id);
    FUZZ_HOLDS(hyp_claim_find(claim->id) == NULL);
    FUZZ_HOLDS(claim->threshold >= 0 && claim->tolerance >= 0);
    FUZZ_HOLDS(hyp_direction_name(claim->direction)[0] != '\0');
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        FUZZ_HOLDS(texts[i] != NULL && texts[i][0] != '\0');
    }
    for (const struct hyp_saboteur *s = claim->saboteurs; s->name != NULL; s++) {
        FUZZ_HOLDS(hyp_sabotage_find(s->name, NULL));
        FUZZ_HOLDS(hyp_forced_words(s->forced)[0] != '\0');
    }
    for (size_t i = 0; claim->ladders != NULL && claim->ladders[i] != NULL; i++) {
        struct hyp_ladder ladder;
        FUZZ_HOLDS(hyp_ladder_read(claim->ladders[i], &ladder) && ladder.count > 0);
        for (size_t k = 0; k < ladder.count; k++) {
            FUZZ_HOLDS(hyp_sabotage_find(ladder.steps[k], NULL));
        }
    }
    for (const struct hyp_plugin_attack *const *at = d->plugin.attacks; at != d->plugin.attacks_end;
         at++) {
        FUZZ_HOLDS((*at)->name != NULL && (*at)->suite != NULL);
        attacks += strcasecmp((*at)->suite, claim->id) == 0;
    }
    FUZZ_HOLDS(attacks > 0);
}

static void check_declaration(char *text) {
    static struct declaration d;
    read_declaration(text, &d);
    if (!hyp_plugin_is_whole(&d.plugin)) {
        FUZZ_HOLDS(hyp_error()[0] != '\0');
        return;
    }
    for (const struct hyp_plugin_claim *c = d.plugin.claims; c->id != NULL; c++) {
        if (hyp_plugin_claim_is_whole(&d.plugin, c)) check_claim(&d, c);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size >= SELFMAG && memcmp(data, ELFMAG, SELFMAG) == 0) {
        check_file(data, size);
        return 0;
    }
    char *text = fuzz_text(data, size);
    check_declaration(text);
    free(text);
    return 0;
}
