/*
 * Sabotage: named faults that are injected to show that an attack notices them.
 *
 * Most faults are a pair of hooks in the interposer: the runtime and the driver are unchanged, and
 * the fault occurs between them, where a fault of either would show. A few kill or stop the process
 * instead, to show that the harness does not mistake that for a pass.
 */
#ifndef HYP_SABOTAGE_H
#define HYP_SABOTAGE_H

#include "fault_hooks.h"

/* A name can include an amount: "launch_delay_us=3". */

/* Installs a fault for contexts created from now on. false: no fault has that name, or the
 * interposer failed; hyp_error() says why. */
bool hyp_sabotage_install(const char *name, struct tol_driver *driver);

/* Sets the hooks of a fault in options without installing them; NULL if the fault has no such hook.
 * false: no fault has that name; hyp_error(). */
TOL_API bool hyp_sabotage_hooks(const char *name, struct tol_interpose_options *options);

/* Applies a fault of the pool to the options that an attack creates pools with. Returns false if
 * name is NULL or another fault. */
TOL_API bool hyp_sabotage_pool(const char *name, struct tol_pool_options *options);

/* Adds the fault of a plugin, which must remain valid. false: the name is in use, or there are too
 * many; hyp_error(). */
bool hyp_sabotage_add(const struct hyp_fault *fault);

/* The MISTAKE of a saboteur named OPERATION_MISTAKE, which selects a kernel with that defect.
 * NULL if name is NULL or another saboteur, such as one with an amount. */
const char *hyp_sabotage_mistake(const char *name, const char *operation);

/* Whether a saboteur is a defect of the kernels, or a fault in the results, of another operation
 * than this one: what an attack on this operation does is the same with and without it. false if
 * name is NULL. */
bool hyp_sabotage_spares(const char *name, const char *operation);

/* The name and the description of a fault; NULL after the last one. */
const char *hyp_sabotage_name(size_t index);
const char *hyp_sabotage_sentence(size_t index);

/* Whether a saboteur has that name, with an amount if it requires one; hyp_error() says what is
 * wrong. *index (if not NULL) is its place in the list. */
bool hyp_sabotage_find(const char *name, size_t *index);

/* Sets the seed and the attack that choose the calls of rare faults, whose names end in "_one_in"
 * (or "_one_in_mib"); before hyp_sabotage_hooks. attack must remain valid. */
void hyp_sabotage_place(uint64_t seed, const char *attack);

/* Counts a call of the kind that the rare fault base occurs in, if name is that fault. Returns
 * whether the fault occurs in this call. name may be NULL. Any thread. */
TOL_API bool hyp_sabotage_turn(const char *name, const char *base);

/* The same for the installed fault, in its hooks. */
TOL_API bool hyp_sabotage_now(void);

/* What a saboteur does, with its amount: "one launch in 100,000 is skipped". Returns text. */
const char *hyp_sabotage_words(const char *name, char *text, size_t bytes);

/* The amount in name if it is the saboteur base; otherwise 0. name may be NULL. */
TOL_API double hyp_sabotage_amount(const char *name, const char *base);

#endif
