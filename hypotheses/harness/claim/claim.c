/*
 * The table of claims, from build/generated/claims.def.
 */
#include "harness/claim.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct hyp_claim claims[HYP_CLAIMS_MAX] = {
#define HYP_CLAIM(number_, threshold_, tolerance_, direction_, alone_, title_, unit_, source_)     \
    {.number = number_,                                                                            \
     .threshold = threshold_,                                                                      \
     .tolerance = tolerance_,                                                                      \
     .direction = direction_,                                                                      \
     .is_alone = alone_,                                                                           \
     .title = title_,                                                                              \
     .unit = unit_,                                                                                \
     .source = source_},
#include "claims.def"
};

/* The saboteurs of one claim are adjacent. */
static const struct hyp_saboteur saboteurs[] = {
#define HYP_SABOTEUR(number, name, forced) {number, name, forced},
#include "claims.def"
};

/* The ladders of all claims, and whose each is; those of one claim are adjacent. */
static const char *const ladders[] = {
#define HYP_LADDER(number, text) text,
#include "claims.def"
    NULL};
static const int ladder_numbers[] = {
#define HYP_LADDER(number, text) number,
#include "claims.def"
    0};

/* Globs: which attacks are tried first under which saboteurs. */
static const struct {
    int number;
    const char *saboteurs, *attacks;
} firsts[] = {
#define HYP_FIRST(number, saboteurs, attacks) {number, saboteurs, attacks},
#include "claims.def"
};

enum { SABOTEURS = sizeof saboteurs / sizeof saboteurs[0] };

/* The number of rows in thresholds.toml. */
enum {
    OWN = 0
#define HYP_CLAIM(number, threshold, tolerance, direction, alone, title, unit, source) +1
#include "claims.def"
};
_Static_assert((int)OWN <= (int)HYP_OWN_CLAIMS_MAX, "more claims than HYP_OWN_CLAIMS_MAX");

static size_t plugin_claims; /* after the project's own */

struct hyp_claim *hyp_claims(void) {
    if (claims[0].id[0] != '\0') return claims; /* from the first call on, before any thread */
    for (int i = 0; i < OWN; i++) {
        int number = claims[i].number;
        char *id = claims[i].id, *suite = claims[i].suite;
        *id++ = 'H';
        *suite++ = 'h';
        if (number >= 10) *id++ = (char)('0' + number / 10);
        *id++ = (char)('0' + number % 10);
        *id = '\0';
        *suite++ = (char)('0' + number / 10);
        *suite++ = (char)('0' + number % 10);
        *suite = '\0';
    }
    return claims;
}

bool hyp_claim_runs_alone(const struct hyp_claim *claim) {
    return claim->is_alone || (claim->plugin != NULL && !claim->shares_device) ||
           (claim->words != NULL && claim->words->is_timed);
}

size_t hyp_claim_own_count(void) {
    return OWN;
}

size_t hyp_claim_count(void) {
    return OWN + plugin_claims;
}

struct hyp_claim *hyp_claim_add(const struct hyp_claim *added) {
    if (plugin_claims == HYP_GUESTS_MAX) return NULL;
    struct hyp_claim *claim = &claims[OWN + plugin_claims++];
    *claim = *added;
    claim->number = (int)hyp_claim_count();
    for (size_t i = 0; i < sizeof claim->suite; i++) {
        claim->suite[i] = (char)tolower((unsigned char)claim->id[i]);
    }
    return claim;
}

int hyp_claim_width(void) {
    size_t width = 3;
    for (size_t i = OWN; i < hyp_claim_count(); i++) {
        if (strlen(claims[i].id) > width) width = strlen(claims[i].id);
    }
    return (int)width + 1;
}

struct hyp_claim *hyp_claim_find(const char *id) {
    struct hyp_claim *all = hyp_claims();
    for (size_t i = OWN; i < hyp_claim_count(); i++) {
        if (strcasecmp(all[i].id, id) == 0) return &all[i];
    }
    if (toupper((unsigned char)id[0]) != 'H' || !isdigit((unsigned char)id[1])) return NULL;
    char *end = NULL;
    long number = strtol(id + 1, &end, 10);
    bool known = *end == '\0' && number >= 1 && number <= OWN;
    return known ? &all[number - 1] : NULL;
}

struct hyp_claim *hyp_claim_of_suite(const char *suite) {
    return hyp_claim_find(suite);
}

bool hyp_claim_holds(const struct hyp_claim *claim, double effect) {
    switch (claim->direction) {
    case HYP_AT_MOST:
        return effect <= claim->threshold;
    case HYP_BELOW:
        return effect < claim->threshold;
    case HYP_ABOVE:
        return effect > claim->threshold;
    }
    return false;
}

const char *hyp_direction_name(enum hyp_direction direction) {
    return direction == HYP_AT_MOST ? "at_most" : direction == HYP_BELOW ? "below" : "above";
}

const char *hyp_direction_words(enum hyp_direction direction) {
    return direction == HYP_AT_MOST ? "at most" : hyp_direction_name(direction);
}

const char *hyp_plural(unsigned long long count) {
    return count == 1 ? "" : "s";
}

/* The length of a unit's singular; the whole length if the unit is not a plural. */
static size_t singular_letters(const char *unit) {
    static const char *const longer[] = {"ches", "shes", "xes", "sses"};
    const size_t length = strlen(unit);
    if (length < 4 || unit[length - 1] != 's' || !isalpha((unsigned char)unit[length - 2]) ||
        unit[length - 2] == 's') {
        return length;
    }
    for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) {
        const size_t end = strlen(longer[i]);
        if (length > end && strcmp(unit + length - end, longer[i]) == 0) return length - 2;
    }
    return length - 1;
}

const char *hyp_unit_of(double value, const char *unit, char text[HYP_UNIT_BYTES]) {
    char number[32];
    snprintf(number, sizeof number, "%.4g", value);
    if (strcmp(number, "1") != 0) return unit;
    snprintf(text, HYP_UNIT_BYTES, "%.*s", (int)singular_letters(unit), unit);
    return text;
}

const struct hyp_saboteur *hyp_claim_saboteurs(const struct hyp_claim *claim, size_t *count) {
    const struct hyp_saboteur *first = NULL;
    *count = claim->saboteur_count;
    if (claim->plugin != NULL) return claim->saboteurs;
    for (size_t i = 0; i < SABOTEURS; i++) {
        if (saboteurs[i].number != claim->number) continue;
        if (first == NULL) first = &saboteurs[i];
        ++*count;
    }
    return first;
}

const char *hyp_claim_first_attacks(const struct hyp_claim *claim, const char *saboteur) {
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        if (firsts[i].number == claim->number && claim->plugin == NULL &&
            fnmatch(firsts[i].saboteurs, saboteur, 0) == 0) {
            return firsts[i].attacks;
        }
    }
    return NULL;
}

size_t hyp_claim_ladders(const struct hyp_claim *claim, const char *const **first) {
    size_t begin = 0, count = 0;
    if (claim->plugin != NULL) {
        *first = claim->ladders;
        return claim->ladder_count;
    }
    while (ladders[begin] != NULL && ladder_numbers[begin] != claim->number) begin++;
    while (ladders[begin + count] != NULL && ladder_numbers[begin + count] == claim->number) {
        count++;
    }
    *first = &ladders[begin];
    return count;
}

const char *hyp_forced_words(enum hyp_forced forced) {
    return forced == HYP_MUST_FALSIFY       ? "falsified"
           : forced == HYP_MUST_NOT_FALSIFY ? "not falsified"
                                            : "not survived";
}

void hyp_claim_register(const struct hyp_words *words) {
    if (words->number < 1 || words->number > OWN) {
        fprintf(stderr, "H%d has attacks and no threshold in thresholds.toml\n", words->number);
        exit(2);
    }
    hyp_claims()[words->number - 1].words = words;
}
