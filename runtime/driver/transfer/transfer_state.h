/*
 * The inside of a transfer, and how copies in pieces are carried out.
 */
#ifndef TOLLENS_TRANSFER_STATE_H
#define TOLLENS_TRANSFER_STATE_H

#include "tollens/stream.h"
#include "tollens/transfer.h"
#include "staging.h"
#include "team.h"

/* The most staging blocks of one copy; all copies together use at most twice this number. */
enum { TOL_TRANSFER_BLOCKS = 4 };

/* Devices whose access is remembered, by ordinal. */
enum { TOL_TRANSFER_PEERS = 16 };

struct tol_transfer {
    struct tol_context *context;
    struct tol_stream *stream;
    struct tol_transfer_options options;
    struct tol_retry_policy retry;
    struct tol_stages stages;
    struct tol_team team;
    size_t pitch_max;
    /* Identities of contexts whose memory this context was given access to. Querying and enabling
     * again costs two calls per copy. */
    _Atomic(uint64_t) reached[TOL_TRANSFER_PEERS];
    _Atomic(uint64_t) retries, pieces, peer_direct, peer_through_host;
};

/* A copy in pieces, each no larger than a staging block. Its functions may be called from several
 * threads at once. */
struct tol_pieces {
    struct tol_transfer *transfer;
    size_t count;   /* of pieces */
    size_t parts;   /* of a piece, which threads pack or unpack side by side */
    size_t helpers; /* useful threads in addition to the caller */
    bool is_small;  /* too small to wake a thread for; the first copy wakes them for the next */
    const void *copy;
    const char *call; /* the driver function that queue calls */

    /* Host to staging before queue, one part; NULL: it is a read. */
    void (*pack)(const void *copy, size_t piece, size_t part, char *stage);
    /* Queues the device's part on the stream; may be called again if it failed. */
    CUresult (*queue)(const void *copy, size_t piece, char *stage,
                      const struct tol_driver_table *driver, CUstream stream);
    /* Staging to host when the device's copy is done, one part; NULL: it is a write. */
    void (*unpack)(const void *copy, size_t piece, size_t part, const char *stage);
};

/* Carries them all out. The context is entered. */
tol_status tol_pieces_run(struct tol_pieces *pieces);

/* TOL_INVALID_ARGUMENT unless there are transfer and host memory. */
tol_status tol_transfer_check(const struct tol_transfer *transfer, const char *function,
                              const void *host, size_t bytes);

/* TOL_OUT_OF_RANGE unless bytes at offset are inside of place. */
tol_status tol_transfer_check_place(const struct tol_transfer *transfer, struct tol_place place,
                                    size_t offset, size_t bytes);

/* Makes a call that queues a copy, and repeats it if that may help. */
#define TOL_TRANSFER_CU(transfer, call, arguments, ...)                                            \
    do {                                                                                           \
        struct tol_retry tol_retry_now = {.policy = &(transfer)->retry};                           \
        CUresult tol_cu_result;                                                                    \
        do tol_cu_result = (transfer)->context->functions->call arguments;                         \
        while (tol_retry_again(&tol_retry_now, tol_cu_result));                                    \
        if (TOL_UNLIKELY(tol_cu_result != CUDA_SUCCESS)) {                                         \
            status = tol_context_fail((transfer)->context, __FILE__, __LINE__, #call,              \
                                      (int)tol_cu_result, __VA_ARGS__);                            \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

/* Waits until the transfer's own stream is done. The context is entered. */
tol_status tol_transfer_wait(struct tol_transfer *transfer);

#endif
