/*
 * Walk CSV: a table of the memory that a pool holds and uses over time. Walks and replays write it,
 * and the reports draw it (reports/walks.py).
 */
#ifndef HYP_WALK_CSV_H
#define HYP_WALK_CSV_H

#include "atomic_file.h"

#include <stdint.h>

struct hyp_walk_row {
    uint64_t step;         /* of the walk, or the event of the trace */
    uint64_t requested;    /* bytes of live blocks, as requested */
    uint64_t used;         /* rounded up, and with the blocks that threads cache */
    uint64_t held;         /* allocated from the driver */
    uint64_t largest_hole; /* of addresses */
};

/* Begins a file with the header line; end it with hyp_file_keep or hyp_file_drop. */
bool hyp_walk_csv_begin(struct hyp_file *file, const char *path);

void hyp_walk_csv_add(struct hyp_file *file, const struct hyp_walk_row *row);

#endif
