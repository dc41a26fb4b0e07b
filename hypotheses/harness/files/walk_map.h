/*
 * Walk map: the memory map of a pool, one line per range, which the reports draw.
 *
 *     address,bytes,state      state: live, cached, pending, free (memory without a block)
 *
 * Addresses without memory are left out.
 */
#ifndef HYP_WALK_MAP_H
#define HYP_WALK_MAP_H

#include "tollens.h"

#include <stdbool.h>

/* Writes the current map of a pool to FOLDER/ATTACK.NAME.csv. false: hyp_error(). */
bool hyp_walk_map_write(struct tol_pool *pool, const char *folder, const char *attack,
                        const char *name);

#endif
