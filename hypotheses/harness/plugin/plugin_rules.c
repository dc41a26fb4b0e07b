/*
 * One function per rule, one message per rule.
 */
#include "plugin_rules.h"

#include "attack/ladder.h"
#include "files/atomic_file.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

enum { ID_MIN = 2, ID_MAX = 8, NAME_MAX_BYTES = 64, ATTACK_NAME_MAX = 90 };

static bool plugin_rules_is_text(const char *text) {
    return text != NULL && text[strspn(text, " ")] != '\0';
}

/* Capital letters and digits, a letter first, and not "H7": those are the runtime's own. */
static bool is_id(const char *id) {
    size_t length = strlen(id);
    if (length < ID_MIN || length > ID_MAX || !isupper((unsigned char)id[0])) return false;
    for (size_t i = 0; i < length; i++) {
        if (!isupper((unsigned char)id[i]) && !isdigit((unsigned char)id[i])) return false;
    }
    return id[0] != 'H' || !isdigit((unsigned char)id[1]);
}

static size_t count_attacks(const struct hyp_plugin *plugin, const char *suite, const char *name) {
    size_t count = 0;
    for (const struct hyp_plugin_attack *const *at = plugin->attacks; at != plugin->attacks_end;
         at++) {
        count += strcasecmp((*at)->suite, suite) == 0 &&
                 (name == NULL || strcmp((*at)->name, name) == 0);
    }
    return count;
}

bool hyp_plugin_is_whole(const struct hyp_plugin *plugin) {
    if (!plugin_rules_is_text(plugin->name) || !plugin_rules_is_text(plugin->version) ||
        strlen(plugin->name) > NAME_MAX_BYTES || strlen(plugin->version) > NAME_MAX_BYTES) {
        return hyp_fail("it must have a name and a version, of at most %d bytes each",
                        NAME_MAX_BYTES);
    }
    if (plugin->claims == NULL || plugin->claims[0].id == NULL) {
        return hyp_fail("it declares no claim");
    }
    for (const struct hyp_fault *f = plugin->faults; f != NULL && f->name != NULL; f++) {
        if (!plugin_rules_is_text(f->sentence))
            return hyp_fail("the fault %s has no sentence", f->name);
        if (f->name[0] == '\0' || strpbrk(f->name, "=/ ") != NULL) {
            return hyp_fail(
                "'%s' is not a valid name of a fault: it is empty or contains a blank, '=' or '/'",
                f->name);
        }
    }
    /* HYP_ATTACK names them; an attack that is written out may not. */
    for (const struct hyp_plugin_attack *const *at = plugin->attacks; at != plugin->attacks_end;
         at++) {
        if (!plugin_rules_is_text((*at)->suite) || !plugin_rules_is_text((*at)->name)) {
            return hyp_fail("its attack number %zu has no suite or no name",
                            (size_t)(at - plugin->attacks) + 1);
        }
    }
    for (const struct hyp_plugin_attack *const *at = plugin->attacks; at != plugin->attacks_end;
         at++) {
        const struct hyp_plugin_claim *claim = plugin->claims;
        while (claim->id != NULL && strcasecmp(claim->id, (*at)->suite) != 0) claim++;
        if (claim->id == NULL) {
            return hyp_fail("the attack %s is on %s, which is not a claim of the plugin",
                            (*at)->name, (*at)->suite);
        }
        if (strlen((*at)->name) > ATTACK_NAME_MAX ||
            count_attacks(plugin, (*at)->suite, (*at)->name) > 1) {
            return hyp_fail("two attacks on %s are called %s, or the name is too long", claim->id,
                            (*at)->name);
        }
    }
    return true;
}

static bool words_are_whole(const struct hyp_plugin_claim *claim) {
    const struct hyp_words *words = &claim->words;
    const struct {
        const char *name, *text;
    } parts[] = {{"title", claim->title},
                 {"unit", claim->unit},
                 {"source", claim->source},
                 {"words.claim", words->claim},
                 {"words.prediction", words->prediction},
                 {"words.falsified_if", words->falsified_if},
                 {"words.method", words->method},
                 {"words.control", words->control},
                 {"words.confounders", words->confounders}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!plugin_rules_is_text(parts[i].text))
            return hyp_fail("%s has no %s", claim->id, parts[i].name);
    }
    if (words->is_timed && words->is_measured) {
        return hyp_fail("%s is both timed and measured: it can only be one of them", claim->id);
    }
    if (!words->is_timed && !words->is_measured &&
        (claim->threshold != 0 || claim->direction != HYP_AT_MOST)) {
        return hyp_fail("%s counts violations, so its threshold must be at most 0; if "
                        "hyp_attack_measure gives the number that is judged, set "
                        ".words.is_measured",
                        claim->id);
    }
    if (words->is_timed && claim->shares_device) {
        return hyp_fail("%s is timed, and shares_device lets other attacks run beside its own",
                        claim->id);
    }
    return true;
}

static bool saboteurs_are_whole(const struct hyp_plugin_claim *claim) {
    size_t counts[HYP_MUST_NOT_SURVIVE + 1] = {0};
    for (const struct hyp_saboteur *s = claim->saboteurs; s != NULL && s->name != NULL; s++) {
        if (!hyp_sabotage_find(s->name, NULL)) return false;
        if (s->forced > HYP_MUST_NOT_SURVIVE)
            return hyp_fail("the saboteur %s must force one of the three verdicts", s->name);
        counts[s->forced]++;
    }
    if (counts[HYP_MUST_FALSIFY] == 0) {
        return hyp_fail(
            "%s has no saboteur under which it must be falsified, so nothing shows that it can be",
            claim->id);
    }
    if ((counts[HYP_MUST_NOT_FALSIFY] > 0) != (counts[HYP_MUST_NOT_SURVIVE] > 0)) {
        return hyp_fail("%s must have both ends of a borderline pair", claim->id);
    }
    return true;
}

static bool ladders_are_whole(const struct hyp_plugin_claim *claim) {
    struct hyp_ladder ladder;
    size_t count = 0;
    while (claim->ladders != NULL && claim->ladders[count] != NULL) {
        if (!hyp_ladder_read(claim->ladders[count++], &ladder)) return false;
    }
    return count <= HYP_CLAIM_LADDERS_MAX ||
           hyp_fail("%s has %zu ladders; at most %d are supported", claim->id, count,
                    HYP_CLAIM_LADDERS_MAX);
}

bool hyp_plugin_claim_is_whole(const struct hyp_plugin *plugin,
                               const struct hyp_plugin_claim *claim) {
    if (!is_id(claim->id)) {
        return hyp_fail("'%s' is not a valid id of a claim: an id has %d to %d capital letters and "
                        "digits, begins with a letter, and is not H1, H2 and so on",
                        claim->id, ID_MIN, ID_MAX);
    }
    if (hyp_claim_find(claim->id) != NULL) {
        return hyp_fail("the claim %s exists already", claim->id);
    }
    if (!isfinite(claim->threshold) || claim->threshold < 0 || !isfinite(claim->tolerance) ||
        claim->tolerance < 0 || claim->direction > HYP_ABOVE) {
        return hyp_fail(
            "the threshold and the tolerance of %s must be finite and not negative, and "
            "its direction one of the three",
            claim->id);
    }
    if (count_attacks(plugin, claim->id, NULL) == 0) {
        return hyp_fail("%s has no attack", claim->id);
    }
    return words_are_whole(claim) && saboteurs_are_whole(claim) && ladders_are_whole(claim);
}
