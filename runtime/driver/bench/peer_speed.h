/*
 * Peer speed: the bandwidth from one device to another through the runtime (tol_transfer_peer) and
 * through the driver's own calls (cuMemcpyPeerAsync, cuStreamSynchronize). The two alternate in one
 * run; numbers are medians.
 */
#ifndef TOLLENS_PEER_SPEED_H
#define TOLLENS_PEER_SPEED_H

#include "tollens/context.h"

enum { PEER_SPEED_DEVICES = 8 };

enum peer_load {
    PEER_ONE_WAY,   /* one ordered pair at a time */
    PEER_BOTH_WAYS, /* a pair and its reverse; each entry is the sum of both */
    PEER_ALL_PAIRS, /* all ordered pairs at once */
    PEER_LOADS
};

const char *peer_load_name(enum peer_load load);

/* [from][to]; what is on the diagonal is 0. Pairs of more than two devices that copy at once share
 * links, and a pair's share of them differs from turn to turn: raw_all and runtime_all are the
 * bytes of all pairs over the time until the last is done, in GB/s. They are 0 where no more than
 * a pair and its reverse ran at once. */
struct peer_matrix {
    double raw[PEER_SPEED_DEVICES][PEER_SPEED_DEVICES];
    double runtime[PEER_SPEED_DEVICES][PEER_SPEED_DEVICES];
    double raw_all, runtime_all;
};

/* Turns for pairs that share links, where `turns` do for others: more, since how more than two
 * devices divide the links differs from turn to turn. */
unsigned peer_speed_turns(enum peer_load load, size_t count, unsigned turns);

/* Gets GB/s (10^9 bytes) between contexts of count devices for copies of `bytes` bytes, `copies` a
 * turn. Allocates two buffers of that size for each ordered pair. Errors: those of the copies. */
tol_status peer_speed_bandwidth(struct tol_context *const *contexts, size_t count,
                                const struct tol_driver_table *raw, enum peer_load load,
                                size_t bytes, unsigned turns, unsigned copies,
                                struct peer_matrix *matrix);

/* Gets the microseconds of one copy of `bytes` bytes and its wait, the median of `calls`. */
tol_status peer_speed_latency(struct tol_context *const *contexts, size_t count,
                              const struct tol_driver_table *raw, size_t bytes, unsigned calls,
                              struct peer_matrix *matrix);

/* The least that the runtime reaches of the driver, over all pairs: runtime over raw, or raw over
 * runtime where less is better. Where pairs shared links: that of all together. */
double peer_speed_least(const struct peer_matrix *matrix, size_t count, bool is_less_better);

#endif
