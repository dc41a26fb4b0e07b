/*
 * Attack: one attempt to falsify a claim, as a Criterion test in a process of its own.
 *
 *     HYP_ATTACK(h03, every_size_comes_back) {
 *         ...
 *         HYP_CHECK(attack, memcmp(sent, back, bytes) == 0, "a copy of %zu bytes changed", bytes);
 *     }
 *
 * The body can make any number of checks and continues after a violation, but under a saboteur,
 * where the first that falsifies the claim ends the process. The effect is the number
 * of violations out of the number of samples. The record is written before the test passes or
 * fails, so a crash leaves no record, and a missing record is never a pass.
 */
#ifndef HYP_ATTACK_H
#define HYP_ATTACK_H

#include "effect.h"
#include "tollens.h"
#include "session.h"

#ifndef HYP_PLUGIN_H /* plugin.h defines attacks without Criterion */
#include <criterion/criterion.h>
#endif

struct hyp_attack {
    struct hyp_session session;
    struct tol_driver *driver;
    const struct tol_driver_table *raw; /* the driver's own functions, without the interposer */
    struct tol_context *context;
    enum hyp_device_kind kind; /* the device in use: cuda or soft */
    uint64_t random;           /* the state of hyp_random, initially the seed */
    struct hyp_record *record;
    /* Ends the attack's threads, which must not run while the process ends; NULL: it has none.
     * Called where a violation is enough and the attack is left at once; must return soon. */
    void (*stop)(void *user);
    void *stop_user;
};

/* What an attack requires of its device. */
struct hyp_attack_wants {
    bool counted;     /* tol_interpose_count counts the calls of the driver */
    bool ledger;      /* ledger.h records the memory that the driver allocates; implies counted */
    bool many_queues; /* more than 8 hardware queues, so that up to 32 streams do not share one */
    const char *soft_memory; /* the default of TOLLENS_SOFT_MEMORY, such as "256M"; NULL: none */
    const char *soft_granularity; /* the same of TOLLENS_SOFT_GRANULARITY */
    const char *soft_devices;     /* the same of TOLLENS_SOFT_DEVICES */
    const char *soft_order;       /* the same of TOLLENS_SOFT_ORDER; drawn by the attack's seed */
};

/* Opens a device, runs the body and writes the record. */
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

/* An attack with nothing between the runtime and the driver except a saboteur. */
#define HYP_ATTACK(suite, name) HYP_ATTACK_WITH(suite, name, .counted = false)

/* An attack that can use tol_interpose_count. */
#define HYP_COUNTED_ATTACK(suite, name) HYP_ATTACK_WITH(suite, name, .counted = true)

/* Counts a sample, and a violation with this message if holds is false. Returns holds. Call it
 * from the attack's own thread only. */
TOL_API bool hyp_attack_check(struct hyp_attack *attack, bool holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define HYP_CHECK(attack, condition, ...) hyp_attack_check(attack, condition, __VA_ARGS__)

/* Checks that a call succeeded; a failure is a violation with the runtime's message. Returns
 * whether it succeeded. */
TOL_API bool hyp_attack_ok(struct hyp_attack *attack, tol_status status, const char *call);
#define HYP_OK(attack, call) hyp_attack_ok(attack, call, #call)

/* As HYP_OK, and returns from the body if the call failed. */
#define HYP_NEED(attack, call)                                                                     \
    do {                                                                                           \
        if (!hyp_attack_ok(attack, call, #call)) return;                                           \
    } while (0)

/* Checks that a call failed with this status and that the message contains text ("" for any
 * message). Returns whether both hold. */
TOL_API bool hyp_attack_refused(struct hyp_attack *attack, tol_status status, tol_status expected,
                                const char *text, const char *call);
#define HYP_REFUSED(attack, call, expected, text)                                                  \
    hyp_attack_refused(attack, call, expected, text, #call)

/* Marks the attack as not tested, with a code ("no_device") and the reason. The body must
 * return. */
TOL_API void hyp_attack_not_tested(struct hyp_attack *attack, const char *code, const char *format,
                                   ...) __attribute__((format(printf, 3, 4)));

/* Records a number of a measured claim under a name and counts a sample, and a violation if the
 * number is beyond the threshold. Returns whether the claim holds. */
TOL_API bool hyp_attack_measure(struct hyp_attack *attack, double value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Records a number under a name; the claim is not judged by it. */
TOL_API void hyp_attack_record(struct hyp_attack *attack, double value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Labels the verdict with a word for how the attack differs from the claim: "scaled". */
TOL_API void hyp_attack_label(struct hyp_attack *attack, const char *label);

/* Adds a sentence for people to the evidence; the claim is not judged by it. */
TOL_API void hyp_attack_note(struct hyp_attack *attack, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The rule of the attack's claim, for one of family effects. */
TOL_API struct hyp_rule hyp_attack_rule(const struct hyp_attack *attack, unsigned family);

/*
 * Compares the two sides of a pair, writes the blocks, and records the effect with the conditions
 * of the measurement. All comparisons of a claim belong to one family. A failed call is a
 * violation. Returns the recorded effect, which is valid until the attack ends.
 */
TOL_API const struct hyp_effect *hyp_attack_compare(struct hyp_attack *attack,
                                                    const struct hyp_pair *pair);

/* Returns the histogram of a named series of times, "copy_to_device_4096B", which goes into the
 * evidence. The attack owns it. */
TOL_API struct tol_hdr *hyp_attack_series(struct hyp_attack *attack, const char *name);

/* Reports the progress of the body to the terminal, from 0 to 1. */
TOL_API void hyp_attack_progress(struct hyp_attack *attack, double share);
/* The same, with the interval so far as text. */
TOL_API void hyp_attack_progress_finding(struct hyp_attack *attack, double share,
                                         const char *finding);

/* Random numbers that depend on the seed only; the second is below limit, or 0 if limit is 0. */
TOL_API uint64_t hyp_random(struct hyp_attack *attack);
TOL_API uint64_t hyp_random_below(struct hyp_attack *attack, uint64_t limit);

/* Loads fixtures/ptx/kernels/NAME.ptx and resolves its kernel NAME, valid until the attack ends.
 * NULL: a violation was recorded. */
TOL_API struct tol_kernel *hyp_attack_kernel(struct hyp_attack *attack, const char *name);

/* Reads a file below the root; the caller frees the text. NULL: a violation was recorded. */
TOL_API char *hyp_attack_file(struct hyp_attack *attack, const char *path, size_t *bytes);

#endif
