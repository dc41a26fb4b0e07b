/*
 * Claim: a statement, and the number at which it is falsified.
 *
 * The project's own claims are those of thresholds.toml: the specification's thirteen, and any
 * added after them. The text of a claim comes from HYP_WORDS at the top of the file that attacks
 * it, hypotheses/hNN_*.c. A claim without text is listed as not implemented. After the project's
 * own claims come the claims of plugins (plugin.h), which bring their own numbers and text.
 */
#ifndef HYP_CLAIM_H
#define HYP_CLAIM_H

#include <stdbool.h>
#include <stddef.h>

enum {
    HYP_OWN_CLAIMS_MAX = 48,
    HYP_GUESTS_MAX = 16,
    HYP_CLAIMS_MAX = HYP_OWN_CLAIMS_MAX + HYP_GUESTS_MAX,
    HYP_CLAIM_LADDERS_MAX = 4
};

enum hyp_direction {
    HYP_AT_MOST, /* survives at or below the threshold */
    HYP_BELOW,   /* survives below it */
    HYP_ABOVE    /* survives above it */
};

struct hyp_words {
    int number;
    bool is_timed;            /* judged by the effects of hyp_attack_compare */
    bool is_measured;         /* judged by the worst of hyp_attack_measure and by any violation */
    const char *claim;        /* one or two sentences */
    const char *prediction;   /* with a number */
    const char *falsified_if; /* the observation that would falsify it */
    const char *method;
    const char *control; /* what shows that the right thing is measured */
    const char *confounders;
};

struct hyp_saboteur;

struct hyp_claim {
    int number;
    char id[16];    /* "H3" */
    char suite[16]; /* "h03": its Criterion suite */
    double threshold;
    double tolerance; /* how much worse than a baseline counts as the same, in the unit */
    enum hyp_direction direction;
    bool is_alone; /* its attacks judge how much memory is free on the device */
    const char *title, *unit, *source;
    const struct hyp_words *words; /* NULL: not implemented yet */
    const char *plugin;            /* the claim's plugin, "sums 1.0"; NULL: the project's own */
    bool shares_device;            /* of a plugin's claim; see struct hyp_plugin_claim */
    const struct hyp_saboteur *saboteurs; /* of a plugin's claim; see hyp_claim_saboteurs */
    size_t saboteur_count;
    const char *const *ladders; /* of a plugin's claim; see hyp_claim_ladders */
    size_t ladder_count;
};

/* All hyp_claim_count claims in the order of their numbers. The first hyp_claim_own_count are the
 * project's own. */
struct hyp_claim *hyp_claims(void);
size_t hyp_claim_own_count(void);
size_t hyp_claim_count(void);

/* Whether nothing else may use the device beside the claim's attacks: they judge times or free
 * memory, or they are a plugin's that does not say that they do neither (shares_device). */
bool hyp_claim_runs_alone(const struct hyp_claim *claim);

/* Adds a plugin's claim with its id, numbers and words, which must remain valid; sets its number
 * and suite. NULL: there are HYP_GUESTS_MAX already. */
struct hyp_claim *hyp_claim_add(const struct hyp_claim *added);

/* The width of an id column in a table, including the blank after it. */
int hyp_claim_width(void);

/* The claim with an id such as "H3" or "h3", or a plugin's; NULL if there is none. */
struct hyp_claim *hyp_claim_find(const char *id);
struct hyp_claim *hyp_claim_of_suite(const char *suite);

/* Whether an effect is on the surviving side of the threshold; false for NaN. */
bool hyp_claim_holds(const struct hyp_claim *claim, double effect);

/* The unit for a number printed to four digits: "violation" for 1, otherwise unit itself,
 * "violations". Returns unit or text. */
enum { HYP_UNIT_BYTES = 64 };
const char *hyp_unit_of(double value, const char *unit, char text[HYP_UNIT_BYTES]);

/* "" for 1, otherwise "s". */
const char *hyp_plural(unsigned long long count);

const char *hyp_direction_name(enum hyp_direction direction);  /* "at_most" */
const char *hyp_direction_words(enum hyp_direction direction); /* "at most" */

/* The verdict that a saboteur must force. A timed claim has a borderline pair of saboteurs, one
 * on each side of its threshold. A noisy machine may not reach their right verdict, but must not
 * reach the wrong one. */
enum hyp_forced { HYP_MUST_FALSIFY, HYP_MUST_NOT_FALSIFY, HYP_MUST_NOT_SURVIVE };

struct hyp_saboteur {
    int number;       /* of the claim */
    const char *name; /* "launch_drop", "launch_delay_us=3" */
    enum hyp_forced forced;
};

/* The *count saboteurs of a claim, in the order of sabotage.toml or of its plugin. */
const struct hyp_saboteur *hyp_claim_saboteurs(const struct hyp_claim *claim, size_t *count);
/* Which attacks are tried first under a saboteur, as a glob; NULL: none, or a plugin's claim. */
const char *hyp_claim_first_attacks(const struct hyp_claim *claim, const char *saboteur);
/* The number of a claim's ladders, in the order of sabotage.toml or of its plugin, and *ladders is
 * set to their texts (attack/ladder.h). */
size_t hyp_claim_ladders(const struct hyp_claim *claim, const char *const **ladders);
const char *hyp_forced_words(enum hyp_forced forced); /* "falsified", "not falsified" */

/* Registers the text of a claim when the program starts: HYP_WORDS(3, .claim = "...", ...). If
 * thresholds.toml does not have the number, the program exits with an error message. */
void hyp_claim_register(const struct hyp_words *words);
#define HYP_WORDS(claim_number, ...)                                                               \
    __attribute__((constructor)) static void register_words(void) {                                \
        static const struct hyp_words words = {.number = claim_number, __VA_ARGS__};               \
        hyp_claim_register(&words);                                                                \
    }

#endif
