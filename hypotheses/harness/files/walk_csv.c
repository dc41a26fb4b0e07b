/*
 * Five numbers a line.
 */
#include "walk_csv.h"

bool hyp_walk_csv_begin(struct hyp_file *file, const char *path) {
    if (!hyp_file_begin(file, path)) return false;
    fprintf(file->stream, "step,requested,used,held,largest_hole\n");
    return true;
}

void hyp_walk_csv_add(struct hyp_file *file, const struct hyp_walk_row *row) {
    fprintf(file->stream, "%llu,%llu,%llu,%llu,%llu\n", (unsigned long long)row->step,
            (unsigned long long)row->requested, (unsigned long long)row->used,
            (unsigned long long)row->held, (unsigned long long)row->largest_hole);
}
