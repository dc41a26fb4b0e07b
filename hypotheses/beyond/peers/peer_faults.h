/*
 * Peer faults: what is done to copies between devices from outside, by hooks in the interposer, to
 * show that the attacks on P1 notice it.
 */
#ifndef HYP_PEER_FAULTS_H
#define HYP_PEER_FAULTS_H

#include "harness/plugin.h"

/* Bytes with 10^9 bits. */
enum { PEER_BILLION_BITS = 125000000 };

extern const struct hyp_fault peer_faults[];

/* Whether the attack runs under this fault. */
bool peer_fault_is(const struct hyp_attack *attack, const char *name);

#endif
