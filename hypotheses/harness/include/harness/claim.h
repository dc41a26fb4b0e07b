/*
 * Claim: what is asserted, and at what number it falls.
 *
 * The project's own are those of thresholds.toml: the specification's thirteen, and what was added
 * behind them. Words come from the file that attacks the claim, hypotheses/hNN_*.c, which opens
 * with HYP_WORDS; one without is not implemented yet, and is listed so. Behind the project's
 * own stand the guests: claims of plugins (plugin.h), which bring numbers and words of their own.
 */
#ifndef HYP_CLAIM_H
#define HYP_CLAIM_H

#include <stdbool.h>
#include <stddef.h>

enum {
    HYP_OWN_CLAIMS_MAX = 48,
    HYP_GUESTS_MAX = 16,
    HYP_CLAIMS_MAX = HYP_OWN_CLAIMS_MAX + HYP_GUESTS_MAX
};

enum hyp_direction {
    HYP_AT_MOST, /* survives up to the threshold and at it */
    HYP_BELOW,   /* survives below it */
    HYP_ABOVE    /* survives above it */
};

struct hyp_words {
    int number;
    bool is_timed;            /* it falls by effects, hyp_attack_compare, and not by a count */
    bool is_measured;         /* it falls by the worst of hyp_attack_measure, or by any violation */
    const char *claim;        /* in a sentence or two */
    const char *prediction;   /* with a number */
    const char *falsified_if; /* what would be seen if it were false */
    const char *method;
    const char *control; /* what would show that something else is measured */
    const char *confounders;
};

struct hyp_saboteur;

struct hyp_claim {
    int number;
    char id[16];    /* "H3" */
    char suite[16]; /* "h03": its Criterion suite */
    double threshold;
    double tolerance; /* how much worse than a baseline still counts as the same; in the unit */
    enum hyp_direction direction;
    const char *title, *unit, *source;
    const struct hyp_words *words; /* NULL while nothing attacks it */
    const char *plugin;            /* "sums 1.0": whose guest it is; NULL: the project's own */
    const struct hyp_saboteur *saboteurs; /* a guest's own; else they are the table's */
    size_t saboteur_count;
};

/* All claims, in order of their numbers; hyp_claim_count of them, of which the first
 * hyp_claim_own_count are the project's own. */
struct hyp_claim *hyp_claims(void);
size_t hyp_claim_own_count(void);
size_t hyp_claim_count(void);

/* Adds a guest, whose id, numbers and words are filled in and live as long as the program: its
 * number and its suite follow. NULL: there are HYP_GUESTS_MAX already. */
struct hyp_claim *hyp_claim_add(const struct hyp_claim *guest);

/* How many columns an id takes in a table, with the blank behind it. */
int hyp_claim_width(void);

/* The claim of an id such as "H3" or "h3", or of a guest; NULL if there is none. */
struct hyp_claim *hyp_claim_find(const char *id);
struct hyp_claim *hyp_claim_of_suite(const char *suite);

/* Whether an effect is on the surviving side of the threshold. NaN never is. */
bool hyp_claim_holds(const struct hyp_claim *claim, double effect);

/* A unit as it stands behind a number that is printed to four digits: "violation" behind 1, else as
 * it is, "violations". Writes to text where it differs. */
enum { HYP_UNIT_BYTES = 64 };
const char *hyp_unit_of(double value, const char *unit, char text[HYP_UNIT_BYTES]);

/* "s", or nothing behind 1. */
const char *hyp_plural(unsigned long long count);

const char *hyp_direction_name(enum hyp_direction direction);  /* "at_most" */
const char *hyp_direction_words(enum hyp_direction direction); /* "at most" */

/* The verdict that a saboteur must force. A claim with a number has a pair of them close to its
 * threshold, one on either side, whose wrong verdicts are known though their right ones are not. */
enum hyp_forced { HYP_MUST_FALSIFY, HYP_MUST_NOT_FALSIFY, HYP_MUST_NOT_SURVIVE };

struct hyp_saboteur {
    int number;       /* of the claim */
    const char *name; /* "launch_drop", "launch_delay_us=3" */
    enum hyp_forced forced;
};

/* The saboteurs of a claim, in the order of sabotage.toml or of its plugin; *count of them. */
const struct hyp_saboteur *hyp_claim_saboteurs(const struct hyp_claim *claim, size_t *count);
const char *hyp_forced_words(enum hyp_forced forced); /* "falsified", "not falsified" */

/* Registers the words of a claim when the program starts: HYP_WORDS(3, .claim = "...", ...). A
 * number that thresholds.toml does not have ends the program with a sentence. */
void hyp_claim_register(const struct hyp_words *words);
#define HYP_WORDS(claim_number, ...)                                                               \
    __attribute__((constructor)) static void register_words(void) {                                \
        static const struct hyp_words words = {.number = claim_number, __VA_ARGS__};               \
        hyp_claim_register(&words);                                                                \
    }

#endif
