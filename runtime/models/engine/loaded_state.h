/*
 * Loaded state: what a loaded model consists of, for the files that load it, compute passes and
 * keep sessions.
 */
#ifndef TOLLENS_LOADED_STATE_H
#define TOLLENS_LOADED_STATE_H

#include "loaded.h"

#include "collective/collective.h"
#include "decode/paged.h"
#include "choose/kernel_set.h"
#include "quantised/linear/linear.h"

#include <pthread.h>

/* A matrix on the device, and the biases of its rows. */
struct loaded_matrix {
    enum kn_weight_format format;
    size_t rows, k;
    struct kn_place weights, bias; /* bias: address 0 if there is none */
};

enum { QKV = 3 };

struct loaded_layer {
    size_t attention_norm, feed_norm; /* in the weights' buffer, in floats */
    struct kn_place q_norm, k_norm;   /* address 0: none */
    /* q, k and v: neighbours of one format are one matrix. */
    struct loaded_matrix qkv[QKV];
    size_t qkv_count;
    struct loaded_matrix output, gate, up, down;
};

/* A part of a file that one copy brings to the device. */
struct loaded_piece {
    const struct tol_gguf_tensor *tensor;
    uint64_t from;
    size_t bytes, to; /* in the weights' buffer */
    uint32_t sum;     /* CRC-32C of what was read, if it is to be verified */
};

struct loaded_pieces {
    struct loaded_piece *list;
    size_t count, room;
    uint64_t bytes;
    uint64_t before, all; /* of all devices: copied before these, and in all */
};

/* The part of a model that one device computes (share.h); a single device computes all of it. */
struct loaded_share {
    unsigned rank, ranks;
    size_t heads, kv_heads, first_kv_head;
    size_t feed_forward;            /* columns between gate and down */
    size_t width;                   /* columns of x that its output matrices make */
    size_t first_token, vocabulary; /* rows of the model's output matrix; the last devices can have
                                      * fewer, or none */
    size_t vocabulary_most;         /* of any device */
};

/* The devices that compute a model together; the first has it, and keeps the sessions. */
struct loaded_team {
    struct tol_loaded *part[KN_COLLECTIVE_RANKS_MAX]; /* one per rank */
    struct kn_collective *collective;                 /* NULL: one device */
    enum kn_collective_way way;
    bool is_lost;     /* they no longer answer each other */
    size_t number_at; /* in the input buffer, the word of this pass's first number */
    int *best;        /* of all parts' logits, on the host */
    float *logits;
};

/* Where each array of a pass begins in the scratch buffer, in bytes. */
struct loaded_scratch {
    struct tol_buffer *buffer;
    size_t x, normed, qkv, attended, activated, logits, keys, parts, split, fed, tickets;
    size_t notices, best; /* of slots (kn_heads), and after them of the wanted rows */
    size_t draws;         /* what kernels of a draw hand on */
    size_t gates;         /* of layers whose gate and up have different formats */
    size_t parts_bytes, split_bytes, fed_bytes, tickets_bytes;
};

/* The powers of two by which a layer's weights become halves, and the halves of its norms: an
 * element is multiplied by 2 to it. */
struct prompt_powers {
    int qkv, output, gated, down, attention_norm, feed_norm;
};

/* What passes of prompts need (prompt.h). */
struct loaded_prompt {
    size_t rows; /* of such a pass, at most; 0: there are none */
    size_t from; /* tokens of a prompt that is computed so; of fewer it is computed as steps are */
    struct tol_buffer *buffer;
    size_t x, halves, q, sums, scales, keys, values, weights; /* where arrays begin, in bytes */
    const char *narrow, *wide;    /* the kernels of products, by the columns of their tiles */
    const char *attention;        /* the kernel of attention; NULL: over pages */
    struct prompt_powers *powers; /* a layer each */
};

/* What a pass leaves on the host, valid until the next one: for each wanted row. */
struct loaded_outcome {
    const int *best; /* the token of the largest logit, the first of equal ones; or what was drawn
                          * (decode/draw.h), where the pass draws */
    const float *logits; /* vocabulary a row; NULL if they are not wanted */
};

struct loaded_graph; /* pass_graphs.c */
struct loaded_row;   /* pass.h */

struct tol_loaded {
    struct tol_context *context;
    struct tol_model_shape shape; /* of the model; what this device computes of it is its share */
    struct loaded_share share;
    struct loaded_team team; /* of the first device alone */
    unsigned deadline_ms;    /* of a pass */
    enum kn_cache cache;
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    struct tol_pool *pool;

    struct tol_buffer *weights;
    struct loaded_upload *upload; /* load_upload.c; NULL: no threads read */
    uint64_t read_ns;             /* that reading and copying the weights took */
    struct loaded_layer *layers;
    struct loaded_matrix embedding, output; /* output: of the share */
    size_t output_norm;                     /* in the weights' buffer, in floats */
    struct kn_place frequencies;

    size_t positions, sessions, rows; /* the limits: of a session, at once, of a pass */
    size_t pages_max, page_bytes;     /* of a session; of a page */
    struct loaded_scratch scratch;
    struct loaded_prompt prompt;
    struct tol_buffer *input; /* of a pass: tokens, positions, slots, a number (device_team.h); rows
                                * of draws (pass_draw.h) */
    struct tol_buffer *tables; /* addresses of pages: slots x pages_max */
    struct tol_pinned *sent, *received;
    size_t cache_bytes; /* the pool's limit */

    pthread_mutex_t moving; /* a move, in which passes go on; taken before the lock */
    pthread_mutex_t lock;   /* passes, and all below */
    struct tol_session **slots;
    struct loaded_row *step_rows; /* of the step in progress; one per session, as the samplers */
    struct tol_sampler **step_samplers;
    size_t pages;    /* of all sessions, shared ones once */
    uint64_t reused; /* positions that sessions had from others, so far */
    bool shares;     /* sessions share pages */
    bool draws;      /* steps draw their tokens on the device */
    struct loaded_graph *graphs;
    size_t graph_count, graph_room;
    uint64_t passes, launched_graphs;
};

/* Allocates the memory for passes of a device, and its pool; and frees everything on a device. */
tol_status loaded_make_room(struct tol_loaded *part);
void loaded_part_end(struct tol_loaded *part);

/* Decides where each tensor goes: fills the matrices with offsets for addresses, and lists the
 * pieces. *bytes: of the buffer. */
tol_status loaded_plan(struct tol_loaded *loaded, const struct tol_model *model, size_t chunk_bytes,
                       struct loaded_pieces *pieces, size_t *bytes);

/* Adds the buffer's address to every place; or any number, modulo 2^64. */
void loaded_place(struct tol_loaded *loaded);
void loaded_rebase(struct tol_loaded *loaded, CUdeviceptr by);

/* Starts threads that pin blocks of block_bytes on the host. They need neither memory on the device
 * nor the pieces yet. */
tol_status loaded_upload_begin(struct tol_loaded *loaded, const struct tol_model *model,
                               size_t block_bytes, const struct tol_load_options *options);

/* Waits until all blocks are pinned. */
tol_status loaded_upload_await(struct tol_loaded *loaded);

/* Lets the threads read all pieces, of block_bytes at most, and copy them to the weights' buffer,
 * and returns when all is there. From then on the pieces and the options may go; after a failure,
 * when loaded_upload_end is done. */
tol_status loaded_upload_run(struct tol_loaded *loaded, struct loaded_pieces *pieces);

/* Waits until the threads have freed their blocks. false: one hangs in the driver, and is
 * abandoned. Does nothing if none were started. */
bool loaded_upload_end(struct tol_loaded *loaded);

/* Compares the checksums of the pieces with those of the device's bytes. */
tol_status loaded_verify(struct tol_loaded *loaded, const struct loaded_pieces *pieces);

#endif
