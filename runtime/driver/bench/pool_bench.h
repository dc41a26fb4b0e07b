/*
 * What the parts of bench-pool share: the allocators, and allocating and freeing with each.
 */
#ifndef TOLLENS_POOL_BENCH_H
#define TOLLENS_POOL_BENCH_H

#include "core/monotonic.h"
#include "tollens/pool.h"
#include "tollens/stream.h"

#define MIB ((size_t)1 << 20)
enum { HOT_PAIRS = 20000, LIVE_MAX = 60000, THREADS_MAX = 4, WALK_STEPS = 10000 };

/* "no caches" is the default profile without per-thread caches of blocks. */
enum kind { DEFAULT, NO_CACHES, TIGHT, LATENCY, DRIVER_ASYNC, DRIVER_SYNC, KINDS };

struct allocator {
    enum kind kind;
    struct tol_pool *pool;
    CUmemoryPool driver_pool;
};

union memory {
    struct tol_block block;
    CUdeviceptr address;
};

struct pool_bench {
    struct tol_driver *driver;
    struct tol_context *context;
    bool is_json, is_priced;
    int steps, pairs;
    int apart;         /* hot threads run on every apart-th processor; 0: the system chooses */
    double grow_share; /* of the default profile; below 0: as it is */
};
extern struct pool_bench bench;

const char *kind_name(enum kind kind);
void must(tol_status status, const char *what);

void open_allocator(struct allocator *a, enum kind kind);
void close_allocator(struct allocator *a);

/* false: out of memory. */
bool take(struct allocator *a, size_t bytes, struct tol_stream *stream, union memory *memory);
void give(struct allocator *a, union memory memory, struct tol_stream *stream);

/* Bytes held from the driver; 0 where the allocator cannot say. */
double held(struct allocator *a);

/* pool_hot_bench.c: pairs of the same size, of all allocators in turn. */
void print_hot(void);

/* pool_costs_bench.c: a clock that driver calls for memory move, and that clock or the host's. */
void price_calls(struct tol_driver *driver);
uint64_t bench_now_ns(void);
/* Handles taken and given back since the last call. */
unsigned take_handle_count(void);

/* pool_walk_bench.c: growth and steady state; of several seeds, priced. */
void print_priced_walks(enum kind kind);
void print_walks(enum kind kind);

/* pool_flight_bench.c: frees of blocks that a stream still uses. */
void print_flights(enum kind kind);

#endif
