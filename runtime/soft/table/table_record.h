/*
 * Records of a device's results: one line per row, which is kept in the repository, and all
 * results, compressed, to find where two devices differ.
 *
 * A line, its fields between tabs:
 *
 *     ok       tuples  digest of the sources  digest of the results  row  [results, if bounded]
 *     refused  code    the driver's first words                      row
 */
#ifndef SOFT_TABLE_RECORD_H
#define SOFT_TABLE_RECORD_H

#include "table_device.h"

#include <stdio.h>
#include <zlib.h>

struct table_line {
    char *row;
    int code; /* 0: it ran */
    uint32_t tuples;
    uint64_t sources, results; /* digests */
    uint64_t *values;          /* of a row with a bound; NULL otherwise */
};

struct table_record {
    char device[256]; /* the first line's comment */
    struct table_line *lines;
    size_t count;
    char message[256];
};

uint64_t table_sources_digest(const struct table_row *row, const struct table_outcome *outcome);
uint64_t table_results_digest(const struct table_row *row, const struct table_outcome *outcome);

void table_line_write(FILE *file, const struct table_row *row, const struct table_outcome *outcome);

bool table_record_read(struct table_record *record, const char *path);
const struct table_line *table_record_find(const struct table_record *record, const char *row);
void table_record_free(struct table_record *record);

/* The raw file: for each row its text, counts and results. */
bool table_raw_write(gzFile file, const struct table_row *row, const struct table_outcome *outcome);
/* Reads the next row's; text holds TABLE_ROW_BYTES. values is malloc'd. false at the end. */
bool table_raw_read(gzFile file, char *text, uint32_t *tuples, uint32_t *results,
                    uint64_t **values);

#endif
