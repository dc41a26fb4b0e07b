/*
 * Collective: all-reduce, reduce-scatter, all-gather and broadcast among devices of one process, or
 * of several, over peer memory.
 *
 * A rank is a context. A call queues the part of every rank on that rank's stream and returns
 * without waiting: the part begins when the streams of all ranks have come to it, and what is
 * queued after it on any of them finds the result, and may reuse the inputs.
 *
 * Results do not depend on times: a sum is in the order of the ranks, in fp32, rounded once (of a
 * ring, in the ring's order, and rounded at each rank), and is the same on all ranks to the bit.
 *
 * Ways:
 *   direct  the rank that owns a chunk loads it from all ranks and stores the sum to all
 *   ring    chunks go from rank to rank, so only neighbours use each other's memory
 *   flags   up to KN_COLLECTIVE_FLAGS_SENT that a rank sends to all others: one launch per rank,
 *           which exchange data with flags beside it. What is more goes directly, and among
 *           processes or more than two ranks, up to KN_COLLECTIVE_MET_BYTES of a part, by kernels
 *           that wait for each other as well. Such kernels must run at once, so it is not chosen
 *           on the soft device, whose threads take one kernel after the other
 *   auto    flags where they can be used, otherwise direct
 * Multicast is not used. The order between devices is by events, but for flags.
 *
 * A lost peer: kn_collective_wait returns TOL_TIMEOUT by its deadline with the rank that is late,
 * or TOL_POISONED with the error of its device. Kernels that wait for flags give up after
 * patience_ms. After either the collective refuses further calls: destroy it, which does not hang
 * (tol_context_set_patience), and create another.
 *
 * Threads: one call at a time on one collective. Sizes are in elements where not stated. Ranges are
 * checked; errors of all calls: TOL_INVALID_ARGUMENT, TOL_OUT_OF_RANGE, TOL_WRONG_CONTEXT (a stream
 * is not of its rank's context), TOL_POISONED, TOL_DRIVER_ERROR. A call that fails with the last
 * two may have queued a part. Calls of count 0 succeed.
 * Source: spec 003 phase 5; Thakur, Rabenseifner and Gropp, "Optimization of Collective
 * Communication Operations in MPICH", 2005.
 */
#ifndef KN_COLLECTIVE_H
#define KN_COLLECTIVE_H

#include "choose/kernel_set.h"
#include "number.h"
#include "place.h"

struct kn_collective;

enum {
    KN_COLLECTIVE_RANKS_MAX = 8,
    KN_COLLECTIVE_FLAGS_BYTES = 256 << 10, /* of a rank's columns (gather_columns.h) */
    KN_COLLECTIVE_FLAGS_SENT = 2 << 20,
    KN_COLLECTIVE_MET_BYTES = 64 << 20
};

enum kn_collective_way { KN_WAY_AUTO, KN_WAY_DIRECT, KN_WAY_RING, KN_WAY_FLAGS, KN_WAYS };

TOL_API const char *kn_collective_way_name(enum kn_collective_way way);

/* All zero are the defaults. */
struct kn_collective_options {
    enum kn_collective_way way;
    unsigned patience_ms; /* how long a kernel waits for another rank; 0: TOL_DEADLINE_MS */
    unsigned blocks;      /* of a launch for many bytes; 0: two a multiprocessor */
};

/*
 * Enables access among 2 to 8 contexts of different devices of one driver, and loads the kernels.
 * Keeps the contexts alive. options may be NULL. The caller destroys it.
 * TOL_UNSUPPORTED: a device cannot access another's memory; the message names both.
 * TOL_OUT_OF_DEVICE_MEMORY, TOL_OUT_OF_HOST_MEMORY.
 */
TOL_API tol_status kn_collective_create(struct tol_context *const *contexts, unsigned ranks,
                                        const struct kn_collective_options *options,
                                        struct kn_collective **collective);

/*
 * The same among processes of one machine and one user, each a rank with a device of its
 * own. Linux only.
 *
 * Rank 0 makes a socket at `path`, a file name that no other collective uses and that all ranks are
 * given, and the others connect to it; the order in which they start does not matter. All ranks
 * have the same ranks, bytes and way. Each has `bytes` bytes of device memory that all others use
 * (kn_collective_memory). Inputs and outputs must be in it, at the same offset on all ranks; only
 * in of an all-gather and out of a reduce-scatter may be elsewhere, since no other rank uses them.
 * Every rank names in of a broadcast.
 *
 * The calls are those below, with one part, this rank's; all ranks make the same calls in the same
 * order, and results are those of the form above, to the bit. Calls return without waiting for
 * other processes. kn_collective_wait notices a process that ends within 50 ms (TOL_POISONED; by
 * flags 600 ms), one that misses the deadline (TOL_TIMEOUT), that another rank
 * gave up (TOL_POISONED), and that ranks made different calls (TOL_MISMATCH); the message names the
 * rank. After any of them the collective is broken on all ranks, and streams go on, with results
 * that are undefined. Without a wait, a stream waits for ever for a rank that does not come.
 * Memory of a rank whose process has ended stays until the others have destroyed the collective.
 *
 * TOL_MISMATCH: rank 0 refused this rank; the message is its sentence: another version or number of
 * ranks, bytes or ways, a rank that is there already, a device that is another rank's. TOL_TIMEOUT:
 * not all ranks came within deadline_ms; the message of rank 0 names those who did not.
 * TOL_POISONED: another rank ended or failed meanwhile. TOL_UNSUPPORTED: the driver cannot share
 * memory. TOL_INVALID_ARGUMENT, TOL_UNWRITABLE: the path cannot be used, or is in use.
 * TOL_OUT_OF_DEVICE_MEMORY, TOL_OUT_OF_HOST_MEMORY. The caller destroys the collective; that does
 * not wait for other ranks.
 */
struct kn_collective_seat {
    const char *path;
    unsigned rank, ranks;
    size_t bytes;
    unsigned deadline_ms; /* 0: TOL_DEADLINE_MS */
};

TOL_API tol_status kn_collective_join(struct tol_context *context,
                                      const struct kn_collective_seat *seat,
                                      const struct kn_collective_options *options,
                                      struct kn_collective **collective);

/* This rank's memory that others use, as long as the collective lives; empty where all ranks are of
 * this process. Its alignment is at least 256. */
TOL_API struct kn_place kn_collective_memory(const struct kn_collective *collective);

/* Waits for work in flight, for at most TOL_DEADLINE_MS per rank, and 100 ms if the collective has
 * failed. What a kernel that has not ended may still write is not freed. NULL is a no-op. */
TOL_API void kn_collective_destroy(struct kn_collective *collective);

TOL_API unsigned kn_collective_ranks(const struct kn_collective *collective);

/* What a call does for one rank: memory of its device, aligned to an element, and its stream. */
struct kn_collective_part {
    struct kn_place in, out;
    struct tol_stream *stream;
};

/* parts has an entry for each rank. Every out has the sum of all in, count elements. out may be in,
 * but not overlap it otherwise. */
TOL_API tol_status kn_all_reduce(struct kn_collective *collective,
                                 const struct kn_collective_part *parts, size_t count,
                                 enum kn_type type);

/* Every in has ranks * count elements; out of rank r is the sum of all in from r * count on. out
 * must not overlap in. Direct or by flags, whatever the way. */
TOL_API tol_status kn_reduce_scatter(struct kn_collective *collective,
                                     const struct kn_collective_part *parts, size_t count,
                                     enum kn_type type);

/* Every out has ranks * count elements: from r * count on, in of rank r, to the bit. in may be its
 * place in out, but not overlap it otherwise. */
TOL_API tol_status kn_all_gather(struct kn_collective *collective,
                                 const struct kn_collective_part *parts, size_t count,
                                 enum kn_type type);

/* Every out is in of rank root, to the bit; other in are not used. out of root may be its in.
 * Directly a rank takes a chunk from root and stores it to all others; among two ranks root has one
 * too, among more it has none. By flags root sends all. */
TOL_API tol_status kn_broadcast(struct kn_collective *collective,
                                const struct kn_collective_part *parts, unsigned root, size_t count,
                                enum kn_type type);

/*
 * Waits until the streams of the latest call, which must still live, are done, at most deadline_ms
 * in all. TOL_TIMEOUT: a rank is not, or a kernel gave up on one; the message names it. Otherwise
 * the error that ended a rank's work. Each of these but success is final, see above.
 */
TOL_API tol_status kn_collective_wait(struct kn_collective *collective, unsigned deadline_ms);

#endif
