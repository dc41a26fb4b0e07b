/*
 * Attack: one attempt to falsify a claim, as a Criterion test in a process of its own.
 *
 *     HYP_ATTACK(h03, every_size_comes_back) {
 *         ...
 *         HYP_CHECK(attack, memcmp(sent, back, bytes) == 0, "%zu bytes came back changed", bytes);
 *     }
 *
 * The body checks as often as it likes and goes on after a violation: how many there are, out of
 * how many, is the effect. The record is written before the test passes or fails, so a crash leaves
 * none, and no record is never taken for a pass.
 */
#ifndef HYP_ATTACK_H
#define HYP_ATTACK_H

#include "effect.h"
#include "tollens.h"
#include "session.h"

#ifndef HYP_PLUGIN_H /* a plugin needs no Criterion, and says itself what an attack is */
#include <criterion/criterion.h>
#endif

struct hyp_attack {
    struct hyp_session session;
    struct tol_driver *driver;
    const struct tol_driver_table *raw; /* the driver's own functions, whatever lies before them */
    struct tol_context *context;
    enum hyp_device_kind kind; /* the one it became */
    uint64_t random;           /* the state of hyp_random; begins at the seed */
    struct hyp_record *record;
};

/* What an attack wants of the device it gets. */
struct hyp_attack_wants {
    bool counted;            /* tol_interpose_count says how often the driver was called */
    bool ledger;             /* and ledger.h what memory it has given */
    bool many_queues;        /* to the GPU: more than eight streams must not share one */
    const char *soft_memory; /* TOLLENS_SOFT_MEMORY, "256M", where it is not set; NULL: as it is */
};

/* Runs a body with a device, and writes what it found. */
TOL_API void hyp_attack_run(const char *suite, const char *name,
                            const struct hyp_attack_wants *wants,
                            void (*body)(struct hyp_attack *attack));

#ifndef HYP_PLUGIN_H
#define HYP_ATTACK_WITH(suite, name, ...)                                                          \
    static void attack_##name(struct hyp_attack *attack);                                          \
    Test(suite, name) {                                                                            \
        hyp_attack_run(#suite, #name, &(struct hyp_attack_wants){__VA_ARGS__}, attack_##name);     \
    }                                                                                              \
    static void attack_##name(struct hyp_attack *attack)
#endif

/* The usual attack: nothing lies between the runtime and the driver, but for a saboteur. */
#define HYP_ATTACK(suite, name) HYP_ATTACK_WITH(suite, name, .counted = false)

/* One that may ask tol_interpose_count how often the driver was called. */
#define HYP_COUNTED_ATTACK(suite, name) HYP_ATTACK_WITH(suite, name, .counted = true)

/* Counts a sample, and a violation unless it holds. Returns whether it holds. */
TOL_API bool hyp_attack_check(struct hyp_attack *attack, bool holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define HYP_CHECK(attack, condition, ...) hyp_attack_check(attack, condition, __VA_ARGS__)

/* The call must succeed; a failure is a violation with the runtime's message.
 * Gives whether it did. */
TOL_API bool hyp_attack_ok(struct hyp_attack *attack, tol_status status, const char *call);
#define HYP_OK(attack, call) hyp_attack_ok(attack, call, #call)

/* Without this the body cannot go on. */
#define HYP_NEED(attack, call)                                                                     \
    do {                                                                                           \
        if (!hyp_attack_ok(attack, call, #call)) return;                                           \
    } while (0)

/* The call must be refused with this status, and the message must say text ("" for anything). */
TOL_API bool hyp_attack_refused(struct hyp_attack *attack, tol_status status, tol_status expected,
                                const char *text, const char *call);
#define HYP_REFUSED(attack, call, expected, text)                                                  \
    hyp_attack_refused(attack, call, expected, text, #call)

/* Ends the attack as not tested, with a code ("no_device") and the reason; the body must return. */
TOL_API void hyp_attack_not_tested(struct hyp_attack *attack, const char *code, const char *format,
                                   ...) __attribute__((format(printf, 3, 4)));

/* Notes a number that a measured claim falls by, and counts a sample: a violation where the claim
 * does not hold with it. Returns whether it holds. */
TOL_API bool hyp_attack_measure(struct hyp_attack *attack, double value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Notes a number that the claim does not fall by. */
TOL_API void hyp_attack_record(struct hyp_attack *attack, double value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Says in a word how the attack differs from what the claim says: "scaled". */
TOL_API void hyp_attack_label(struct hyp_attack *attack, const char *label);

/* A sentence for people, kept in the evidence; nothing is judged by it. */
TOL_API void hyp_attack_note(struct hyp_attack *attack, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The rule by which the attack's claim falls, as one of so many effects. */
TOL_API struct hyp_rule hyp_attack_rule(const struct hyp_attack *attack, unsigned family);

/*
 * Compares the two sides of a pair, keeps the blocks, and notes the effect with the conditions it
 * was measured under. All comparisons of a claim share its family. A call that fails is a
 * violation. Gives the effect as it was noted, which lives as long as the attack.
 */
TOL_API const struct hyp_effect *hyp_attack_compare(struct hyp_attack *attack,
                                                    const struct hyp_pair *pair);

/* A series of times that the evidence keeps as a histogram, by name: "copy_to_device_4096B". It
 * belongs to the attack. */
TOL_API struct tol_hdr *hyp_attack_series(struct hyp_attack *attack, const char *name);

/* How far the body is, for people that watch. */
TOL_API void hyp_attack_progress(struct hyp_attack *attack, double share);
/* The same, with the interval so far in words. */
TOL_API void hyp_attack_progress_finding(struct hyp_attack *attack, double share,
                                         const char *finding);

/* A number that depends on the seed and on what was drawn before, alone. */
TOL_API uint64_t hyp_random(struct hyp_attack *attack);
TOL_API uint64_t hyp_random_below(struct hyp_attack *attack, uint64_t limit);

/* Resolves a kernel of fixtures/ptx/kernels/NAME.ptx; the module lives as long as the attack. NULL:
 * a violation was noted. */
TOL_API struct tol_kernel *hyp_attack_kernel(struct hyp_attack *attack, const char *name);

/* The text of a file below the root; NULL: a violation was noted. Free it. */
TOL_API char *hyp_attack_file(struct hyp_attack *attack, const char *path, size_t *bytes);

#endif
