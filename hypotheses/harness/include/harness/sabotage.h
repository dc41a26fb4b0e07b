/*
 * Sabotage: faults made on purpose, by name, to show that an attack notices them.
 *
 * Each is a pair of hooks in the interposer, so the runtime and the driver stay as they are and the
 * fault lies between them, where a broken driver's, or a broken runtime's, would. A few break the
 * process instead, to show that the harness takes no death for a pass.
 */
#ifndef HYP_SABOTAGE_H
#define HYP_SABOTAGE_H

#include "tollens.h"

/* A name may carry an amount: "launch_delay_us=3". */

/* Installs a fault for contexts opened from now on. false: there is none of that name, or the
 * interposer refused; hyp_error() says why. */
bool hyp_sabotage_install(const char *name, struct tol_driver *driver);

/* Gives the hooks of a fault instead, NULL where it is not made in the interposer. false: there is
 * none of that name; hyp_error(). */
bool hyp_sabotage_hooks(const char *name, struct tol_interpose_options *options);

/* Plants the fault in the options that an attack makes pools with, where it is one of the pool.
 * name may be NULL. Returns whether it was. */
TOL_API bool hyp_sabotage_pool(const char *name, struct tol_pool_options *options);

/* A fault that can be made on purpose. */
struct hyp_fault {
    const char *name, *sentence;
    tol_interpose_hook before, after;                /* NULL: it is not made there */
    bool has_amount;                                 /* its name carries one */
    void (*plant)(struct tol_pool_options *options); /* NULL: it is none of the pool */
};

/* Adds the fault of a plugin, which lives as long as the program. false: the name is taken, or
 * there are too many; hyp_error(). */
bool hyp_sabotage_add(const struct hyp_fault *fault);

/* The mistake that a saboteur called OPERATION_MISTAKE plants in an operation's kernels; NULL where
 * name is NULL or another's. */
const char *hyp_sabotage_mistake(const char *name, const char *operation);

/* The names there are, and a sentence for each; NULL past the end. */
const char *hyp_sabotage_name(size_t index);
const char *hyp_sabotage_sentence(size_t index);

/* Whether there is a saboteur of that name, with an amount where it takes one; hyp_error() says
 * what is wrong. *index (if not NULL) is its place in the list. */
bool hyp_sabotage_find(const char *name, size_t *index);

/* The amount of the fault that is installed; for its hooks. */
TOL_API double hyp_sabotage_given(void);

/* The amount that name carries if it is the saboteur called base; 0 otherwise. name may be NULL. */
TOL_API double hyp_sabotage_amount(const char *name, const char *base);

#endif
