/*
 * Walk CSV: how much of what a pool holds is in use, over time. The one table of that kind: walks
 * and replays write it, and the reports draw it (reports/walks.py).
 */
#ifndef HYP_WALK_CSV_H
#define HYP_WALK_CSV_H

#include "atomic_file.h"

#include <stdint.h>

struct hyp_walk_row {
    uint64_t step;         /* of the walk, or the event of the trace */
    uint64_t requested;    /* bytes of live blocks, as they were asked for */
    uint64_t used;         /* rounded, and with those that threads keep */
    uint64_t held;         /* taken from the driver */
    uint64_t largest_hole; /* of addresses */
};

/* Begins a file with the line of names; hyp_file_keep or hyp_file_drop ends it. */
bool hyp_walk_csv_begin(struct hyp_file *file, const char *path);

void hyp_walk_csv_add(struct hyp_file *file, const struct hyp_walk_row *row);

#endif
