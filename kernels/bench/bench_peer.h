/*
 * A peer in another process: a program that times the same problems, such as PyTorch's, so that
 * what no library offers to C can stand beside our kernels.
 *
 * The peer is a command line. Its input and output are lines:
 *
 *     prepare attention bf16 4 32 32 4096 4096 128 1    ->  ready cudnn | cannot WHY
 *     batch 20                                          ->  MICROSECONDS of one launch of these
 *     check                                             ->  right | wrong WHY
 *     quit
 *
 * A problem is one of these, with sizes in decimal and causal 0 or 1:
 *
 *     attention TYPE batch heads kv_heads q_length kv_length head_size causal
 *     attention_backward TYPE batch heads kv_heads q_length kv_length head_size causal
 *     row NAME TYPE rows columns          NAME: softmax layernorm rmsnorm swiglu add argmax top_64
 *
 * The peer has work on the device only between a line and its answer, so each side is alone. It
 * rotates buffers of normally distributed elements beyond the L2 cache, and checks results itself.
 * A peer that ends, gives no answer in time or answers anything else is ended, and the bench goes
 * on without it. ci/torch_peer.py is one. One thread. Internal: not installed.
 */
#ifndef KN_BENCH_PEER_H
#define KN_BENCH_PEER_H

#include "tollens.h"

#include <stdbool.h>
#include <stddef.h>

struct kn_peer;

/* Starts the command line by /bin/sh. limit_ms: how long each answer may take. A command that does
 * not exist is known by the first answer. TOL_OUT_OF_HOST_MEMORY, TOL_UNSUPPORTED: no process could
 * be made. */
tol_status kn_peer_open(const char *command, unsigned limit_ms, struct kn_peer **peer);

/* Asks it to end, and ends it if it does not within a second. */
void kn_peer_close(struct kn_peer *peer);

/* Whether the peer can time this problem, which it then keeps ready; a problem that is ready is not
 * prepared again. If not, kn_peer_reason says why. */
bool kn_peer_prepare(struct kn_peer *peer, const char *problem);

/* The microseconds of one of `launches` launches. Only after kn_peer_prepare. False: the peer has
 * ended, and kn_peer_reason says how. */
bool kn_peer_batch(struct kn_peer *peer, size_t launches, double *us);

/* Whether the peer finds its own results right. After kn_peer_batch. */
bool kn_peer_check(struct kn_peer *peer);

/* What times the problem that is ready, "cudnn", and why the last call returned false. Both are the
 * peer's, until the next call. */
const char *kn_peer_name(const struct kn_peer *peer);
const char *kn_peer_reason(const struct kn_peer *peer);

#endif
