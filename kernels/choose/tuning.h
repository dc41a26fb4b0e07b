/*
 * Tuning: which variants were fastest on a device, measured, kept in a file and read by the choice
 * of variants.
 *
 * A set of kernels that uses a tuning takes the variant that the tuning names for a problem; if it
 * has none, or that variant does not serve, what the operation's table says. tune/tune.h measures.
 *
 * The file is text: a line each for its format, the device, the driver, the kernels (a checksum of
 * their code) and the commit, a line a problem, and a checksum of it all. What another device,
 * driver or library measured is refused.
 */
#ifndef KN_TUNING_H
#define KN_TUNING_H

#include "tollens.h"

enum { KN_TUNING_NUMBERS = 12, KN_TUNING_TEXT = 128 };

/* What was measured with what. */
struct kn_tuning_identity {
    char device[KN_TUNING_TEXT]; /* its name */
    int multiprocessors, driver; /* the driver's version, as CUDA counts */
    uint64_t kernels;            /* a checksum of the code of all variants */
    char commit[KN_TUNING_TEXT]; /* of the library's source, for people; does not decide */
};

/* A problem: an operation and the numbers that its choice depends on. */
struct kn_tuning_key {
    const char *operation; /* "gemm"; at most 31 letters, digits and _ */
    int64_t numbers[KN_TUNING_NUMBERS];
};

/* A result. */
struct kn_tuned {
    char variant[32];
    double us;          /* the median time of a launch */
    double table_us;    /* of the variant that the operation's table picks */
    int32_t candidates; /* how many variants were timed */
};

struct kn_tuning;

/* Creates an empty one. TOL_INVALID_ARGUMENT, TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status kn_tuning_create(const struct kn_tuning_identity *identity,
                                    struct kn_tuning **tuning);
/* NULL is a no-op. */
TOL_API void kn_tuning_destroy(struct kn_tuning *tuning);

/* Keeps a result, in place of an earlier one of the same problem. Not while calls choose by it.
 * TOL_INVALID_ARGUMENT: a name or a time cannot be written to a file. TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status kn_tuning_add(struct kn_tuning *tuning, const struct kn_tuning_key *key,
                                 const struct kn_tuned *tuned);

/* The result of a problem, or NULL. Valid until the next kn_tuning_add. Any number of threads. */
TOL_API const struct kn_tuned *kn_tuning_find(const struct kn_tuning *tuning,
                                              const struct kn_tuning_key *key);

/* How often a result was added or replaced: what followed from the tuning before may not hold. */
size_t kn_tuning_added(const struct kn_tuning *tuning);

TOL_API size_t kn_tuning_count(const struct kn_tuning *tuning);
TOL_API const struct kn_tuning_identity *kn_tuning_identity(const struct kn_tuning *tuning);

/* Writes the file: a new one beside it first, which then takes its name. TOL_UNWRITABLE. */
TOL_API tol_status kn_tuning_save(const struct kn_tuning *tuning, const char *path);

/* Reads a file. TOL_UNREADABLE. TOL_INVALID_FILE: it is damaged, or is no such file; the message
 * says where and how. TOL_MISMATCH: it is of another device, driver or of other kernels; the
 * message says what it has and what is here. The caller may go on without. */
TOL_API tol_status kn_tuning_load(const char *path, const struct kn_tuning_identity *here,
                                  struct kn_tuning **tuning);

#endif
