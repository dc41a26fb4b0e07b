/*
 * NCCL: the vendor's collectives, as a peer to compare with, where the library is installed. It is
 * opened by name, declared by hand and never linked; TOLLENS_LIBNCCL names another library.
 *
 * Multicast is turned off (NCCL_NVLS_ENABLE=0), as ours does not use it. Source: NCCL User Guide,
 * "NCCL API". Internal: not installed.
 */
#ifndef KN_NCCL_H
#define KN_NCCL_H

#include "collective/collective.h"

struct kn_nccl;

enum kn_nccl_call {
    KN_NCCL_ALL_REDUCE,
    KN_NCCL_REDUCE_SCATTER,
    KN_NCCL_ALL_GATHER,
    KN_NCCL_BROADCAST
};

/* A communicator for each of the devices 0 to ranks - 1, whose primary contexts must exist. NULL:
 * there is none; reason (cut to reason_bytes) says why. */
struct kn_nccl *kn_nccl_open(unsigned ranks, char *reason, size_t reason_bytes);

/* The same of one rank of several processes, in the context that is current: one of them makes an
 * id, and all join with it. It waits for the others without a deadline. */
struct kn_nccl_id {
    char bytes[128];
};
bool kn_nccl_make_id(struct kn_nccl_id *id, char *reason, size_t reason_bytes);
struct kn_nccl *kn_nccl_join(const struct kn_nccl_id *id, unsigned rank, unsigned ranks,
                             char *reason, size_t reason_bytes);
void kn_nccl_close(struct kn_nccl *nccl);

/* NCCL's version, such as 22703 for 2.27.3; 0: unknown. */
int kn_nccl_version(const struct kn_nccl *nccl);

/* The call of collective.h of that name; parts are those of the ranks of this process, count as
 * there, the root of a broadcast is 0. false: NCCL refused it. */
bool kn_nccl_run(struct kn_nccl *nccl, enum kn_nccl_call call,
                 const struct kn_collective_part *parts, size_t count, enum kn_type type);

#endif
