/*
 * Ways: how bytes get from one device to another.
 */
#ifndef HYP_PEER_WAYS_H
#define HYP_PEER_WAYS_H

#include "peer_stage.h"

enum peer_way {
    PEER_ENGINE, /* the runtime's copy, which the copy engine makes, on the target's stream */
    PEER_PUSH,   /* the driver's copy on the source's stream */
    PEER_LOAD,   /* a kernel of the target loads */
    PEER_STORE,  /* a kernel of the source stores */
    PEER_ATOMIC, /* a kernel of the source changes the target by atomic operations */
    PEER_MAPPED, /* a kernel of the source stores into memory mapped with access for it */
    PEER_HOST,   /* the runtime's copy, staged through the host */
    PEER_WAYS
};

const char *peer_way_name(enum peer_way way);

/* Bytes of `source` to be copied to `target`, which holds `poison` in every byte. */
struct peer_trial {
    struct peer_stage *stage;
    size_t from, to; /* devices */
    const struct peer_area *source, *target;
    size_t source_offset, target_offset, bytes;
    unsigned char poison;
};

/* Whether the pair has this way. */
bool peer_way_is_open(const struct peer_stage *stage, enum peer_way way, size_t from, size_t to);

/* The stream that peer_way_queue uses. */
struct tol_stream *peer_way_stream(const struct peer_trial *trial, enum peer_way way);

/* Queues the copy on a stream of the device that peer_way_stream names; only PEER_ENGINE and
 * PEER_HOST are done when it returns. false: a violation was recorded. */
bool peer_way_queue(const struct peer_trial *trial, enum peer_way way, struct tol_stream *stream);

/* The same, and waits. */
bool peer_way_run(const struct peer_trial *trial, enum peer_way way);

/* A target for PEER_MAPPED: memory of device `to` that `from` may write. false, and *is_skipped if
 * the driver does not do it, with its sentence noted. */
bool peer_area_map(struct peer_stage *stage, size_t to, size_t from, size_t bytes,
                   struct peer_area *area, bool *is_skipped);

#endif
