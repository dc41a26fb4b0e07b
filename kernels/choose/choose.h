/*
 * Choose: which row of a table of variants computes a problem on a device. Thread-safe.
 */
#ifndef KN_CHOOSE_H
#define KN_CHOOSE_H

#include "choose/variant.h"

/*
 * Picks the first row that the device runs, that does not refuse the problem and does not decline
 * it. If name is not NULL, only rows of that name are considered, and none declines.
 * TOL_NOT_FOUND: no row has that name; the message lists the names. TOL_UNSUPPORTED: no row is
 * left; the message says why for each.
 */
tol_status kn_variant_pick(const struct kn_variants *variants, const struct tol_device *device,
                           const char *name, const void *problem,
                           const struct kn_variant **variant);

/* The first row of this name; NULL: there is none, or name is NULL. */
const struct kn_variant *kn_variants_find(const struct kn_variants *variants, const char *name);

#endif
