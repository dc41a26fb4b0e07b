/*
 * What the parts of bench-transfer share: the memory, and a row of measurements.
 */
#ifndef TOLLENS_TRANSFER_BENCH_H
#define TOLLENS_TRANSFER_BENCH_H

#include "tollens/context.h"
#include "tollens/transfer.h"

#include <stdbool.h>
#include <stddef.h>

#define KIB ((size_t)1 << 10)

enum way { PINNED, DRIVER, RUNTIME, REGISTERED, WAYS };

/* Of the driver, and not in the runtime's table: nothing but staging blocks is pinned (D-23). */
typedef CUresult register_pages(void *pages, size_t bytes, unsigned flags);
typedef CUresult unregister_pages(void *pages);

struct bench {
    struct tol_context *context;
    const struct tol_driver_table *cu;
    struct tol_transfer *transfer;
    struct tol_place place;
    char *pinned, *pageable;
    size_t max_bytes;
    const char *json;
    bool has_candidates;
    register_pages *pin; /* NULL: not there */
    unregister_pages *unpin;
    struct tol_transfer_options options;
};

struct row {
    size_t bytes;
    bool is_write;
    double gb_per_s[WAYS]; /* 10^9 bytes; the median of the turns */
};

/* Ways first up to but not last, in turn, into the row. */
tol_status measure_ways(struct bench *b, struct row *row, enum way first, enum way last);

#endif
