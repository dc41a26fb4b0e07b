/*
 * Error table: how far results were from their oracle, of each path that an attack took.
 *
 * NAME.errors.csv gets a line for each trial; NAME.octaves.csv says of each path how many elements
 * deviated by how much of what is allowed. A trial with an element beyond that is a violation.
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

/* Begins the table of an attack. columns are those that describe a trial: "m,n,k,seed". */
void hyp_error_table_begin(struct hyp_error_table *table, struct hyp_attack *attack,
                           const char *columns);

/* Adds a trial of a path ("f16 async_128"), described by values in the order of the columns. */
void hyp_error_table_add(struct hyp_error_table *table, const char *path,
                         const struct kn_deviation *deviation, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Writes the files, and records the largest share of what is allowed, of each path. */
void hyp_error_table_end(struct hyp_error_table *table);

#endif
