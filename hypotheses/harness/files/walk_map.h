/*
 * Walk map: what lies where in a pool, a line a range, for the reports to draw as a map.
 *
 *     address,bytes,state      state: live, cached, pending, free (memory without a block)
 *
 * Addresses without memory are left out.
 */
#ifndef HYP_WALK_MAP_H
#define HYP_WALK_MAP_H

#include "tollens.h"

#include <stdbool.h>

/* Writes FOLDER/ATTACK.NAME.csv of the pool as it is now. false: hyp_error(). */
bool hyp_walk_map_write(struct tol_pool *pool, const char *folder, const char *attack,
                        const char *name);

#endif
