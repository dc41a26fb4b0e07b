/*
 * Error table: the differences between results and their reference, per path that an attack took.
 *
 * NAME.errors.csv has one line per trial. NAME.octaves.csv counts the elements of each path by the
 * share of the allowed error that they use. A trial with an element beyond it is a violation.
 */
#ifndef HYP_ERROR_TABLE_H
#define HYP_ERROR_TABLE_H

#include "harness/attack.h"
#include "deviation.h"
#include "files/atomic_file.h"

enum { HYP_PATHS_MAX = 24 };

struct hyp_error_table {
    struct hyp_attack *attack;
    struct {
        char name[32];
        struct kn_deviation all;
    } paths[HYP_PATHS_MAX];
    size_t count;
    bool has_file;
    struct hyp_file file;
};

/* Begins the table of an attack. columns describe a trial: "m,n,k,seed". */
void hyp_error_table_begin(struct hyp_error_table *table, struct hyp_attack *attack,
                           const char *columns);

/* Adds a trial of a path ("f16 async_128"), with its values in the order of the columns. */
void hyp_error_table_add(struct hyp_error_table *table, const char *path,
                         const struct kn_deviation *deviation, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Writes the files, and records each path's largest share of the allowed error. */
void hyp_error_table_end(struct hyp_error_table *table);

#endif
