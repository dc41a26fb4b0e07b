/*
 * The inside of a collective, and how its ranks' streams wait for each other. Internal.
 */
#ifndef KN_COLLECTIVE_STATE_H
#define KN_COLLECTIVE_STATE_H

#include "collective/collective.h"
#include "collective/collective_arguments.h"

struct kn_collective_link;

/* What goes by flags: sums, of each kn_type, and copies. */
enum kn_collective_flags { KN_FLAGS_COPY = KN_TYPES, KN_FLAGS };

struct kn_collective_rank {
    struct tol_context *context;
    struct kn_kernels *kernels;
    const struct tol_kernel *direct[KN_TYPES];
    /* These are early where launches may be programmatic. */
    const struct tol_kernel *flags[KN_FLAGS], *met[KN_TYPES];
    const struct tol_kernel *columns[3]; /* direct; by flags; by flags and early, or NULL */
    struct tol_buffer *inbox;  /* [epoch % 2][sender], slots of lines; NULL: without flags */
    CUdeviceptr inbox_address; /* the same, or a window's */
    unsigned *status;          /* host memory that the rank's kernels write */
    CUevent events[2];         /* of every second step */
    struct tol_stream *stream; /* of the latest call; NULL: none */
    unsigned blocks;           /* of a launch that fills the device */
};

struct kn_collective {
    unsigned ranks;
    enum kn_collective_way way;
    unsigned patience_ms, blocks, epoch;
    size_t flags_bytes; /* from a rank to another, for calls by flags; tests make it less */
    size_t met_bytes;   /* of a part, for kernels that meet: 0 for two ranks of one process, whose
                           events take less; tests make it more */
    bool has_flags;     /* kernels of two devices run at once */
    bool is_broken;     /* a wait failed */
    bool is_captured;   /* gathers of columns are for graphs (gather_columns.h) */
    unsigned captured;  /* numbers that they need so far */
    struct kn_collective_rank rank[KN_COLLECTIVE_RANKS_MAX];
    /* NULL: all ranks are of this process. Otherwise one is, `local`, and the others have an
     * inbox_address alone. */
    struct kn_collective_link *link;
    unsigned local;
};

static inline bool kn_collective_is_here(const struct kn_collective *c, unsigned rank) {
    return c->link == NULL || rank == c->local;
}

/* Prepares a rank of this process; but for link, way, ranks and blocks, *c is empty. */
tol_status kn_collective_create_rank(struct kn_collective *c, unsigned index,
                                     struct tol_context *context);
size_t kn_collective_inbox_bytes(const struct kn_collective *c);
/* What options say, and what they leave out. */
tol_status kn_collective_choose(struct kn_collective *c, unsigned ranks,
                                struct tol_context *context,
                                const struct kn_collective_options *options);

/* What a rank may send to another by flags, of `ranks`, and the slot that it then fills there. */
size_t kn_collective_flags_bytes(unsigned ranks);
static inline size_t kn_collective_slot_bytes(const struct kn_collective *c) {
    return 2 * kn_collective_flags_bytes(c->ranks);
}
/* collective_words, after the slots of an inbox. */
static inline CUdeviceptr kn_collective_words(const struct kn_collective *c, unsigned rank) {
    return c->rank[rank].inbox_address + 2 * c->ranks * kn_collective_slot_bytes(c);
}

/* Records the event of a step on the stream of a rank. */
tol_status kn_collective_record(struct kn_collective *collective, unsigned rank, unsigned step);
/* Lets the stream of a rank wait for the event that another recorded at a step. */
tol_status kn_collective_follow(struct kn_collective *collective, unsigned rank, unsigned other,
                                unsigned step);
/* The streams of all ranks wait for each other. Uses the events of the step. */
tol_status kn_collective_meet(struct kn_collective *collective, unsigned step);

/* Launches the kernel for a sum or a copy of a rank. */
tol_status kn_collective_launch(struct kn_collective *collective, unsigned rank, enum kn_type type,
                                struct collective_direct *arguments);

/* The number of the next call whose kernels wait for each other: c->epoch. */
tol_status kn_collective_next_number(struct kn_collective *collective);
/* The i-th rank to launch such a kernel. Making another context current is a large part of a
 * launch, so every second call has the ranks in the other direction, and begins with the context
 * that the call before ended with. */
static inline unsigned kn_collective_turn(const struct kn_collective *c, unsigned i) {
    return c->epoch % 2 != 0 ? i : c->ranks - 1 - i;
}

/* An all-reduce, all-gather or broadcast by a ring, and the calls by flags, of at most
 * flags_bytes from a rank to another. */
tol_status kn_ring_all_reduce(struct kn_collective *collective,
                              const struct kn_collective_part *parts, size_t count,
                              enum kn_type type);
tol_status kn_ring_all_gather(struct kn_collective *collective,
                              const struct kn_collective_part *parts, size_t count,
                              enum kn_type type);
tol_status kn_ring_broadcast(struct kn_collective *collective,
                             const struct kn_collective_part *parts, unsigned root, size_t count,
                             enum kn_type type);
tol_status kn_flags_all_reduce(struct kn_collective *collective,
                               const struct kn_collective_part *parts, size_t count,
                               enum kn_type type);
tol_status kn_flags_reduce_scatter(struct kn_collective *collective,
                                   const struct kn_collective_part *parts, size_t count,
                                   enum kn_type type);
tol_status kn_flags_all_gather(struct kn_collective *collective,
                               const struct kn_collective_part *parts, size_t count,
                               enum kn_type type);
tol_status kn_flags_broadcast(struct kn_collective *collective,
                              const struct kn_collective_part *parts, unsigned root, size_t count,
                              enum kn_type type);

/* Of a collective with a link, for this rank: recording and following a step, and waiting, but for
 * kernels that gave up. */
tol_status kn_link_record(struct kn_collective *collective, unsigned step);
tol_status kn_link_follow(struct kn_collective *collective, unsigned other, unsigned step);
/* What follows counts steps from 0, and a call that goes on has none so far. */
void kn_link_settle(struct kn_collective *collective);
tol_status kn_link_wait(struct kn_collective *collective, unsigned deadline_ms);
/* Lets the stream of this rank go, whatever the others do. true: it is idle. */
bool kn_link_release(struct kn_collective *collective, unsigned lost);
/* is_done: no work of this process uses the memory any more; otherwise it stays mapped. */
void kn_link_close(struct kn_collective *collective, bool is_done);

/* The chunk of a rank: of count elements, beginning at a multiple of 16 bytes. Chunks are equal but
 * for the last ones, which may be shorter or empty. */
struct kn_chunk {
    size_t first, count;
};
struct kn_chunk kn_collective_chunk(const struct kn_collective *collective, unsigned rank,
                                    size_t count, enum kn_type type);

#endif
