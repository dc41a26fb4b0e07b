/*
 * The parameters of the kernels of collectives, one struct per kernel: the same on host and device.
 * Internal to the operation.
 */
#ifndef KN_COLLECTIVE_ARGUMENTS_H
#define KN_COLLECTIVE_ARGUMENTS_H

#ifdef __CUDACC__
#define COLLECTIVE_ADDRESS unsigned long long
#else
#include "tollens.h"
#define COLLECTIVE_ADDRESS CUdeviceptr
#endif

enum { COLLECTIVE_RANKS = 8, COLLECTIVE_THREADS = 512, COLLECTIVE_LINE_BYTES = 8 };

/* Each element of the targets is the sum of those of the sources, in their order. */
struct collective_direct {
    COLLECTIVE_ADDRESS sources[COLLECTIVE_RANKS];
    COLLECTIVE_ADDRESS targets[COLLECTIVE_RANKS];
    unsigned long long count; /* of elements */
    unsigned source_count, target_count;
    unsigned is_wide; /* all addresses are multiples of 16 */
};

/* A line of 8 bytes is sent as two words of 8, each with 4 bytes of data and the epoch above. */
struct collective_flags {
    COLLECTIVE_ADDRESS in, out;
    COLLECTIVE_ADDRESS inbox;                      /* this rank's, a slot for each sender */
    COLLECTIVE_ADDRESS outboxes[COLLECTIVE_RANKS]; /* this rank's slot in the inbox of each rank */
    COLLECTIVE_ADDRESS status;                     /* 0, or 1 + the rank that was waited for */
    unsigned long long bytes;                      /* from a rank to another */
    unsigned long long in_stride;                  /* of a sum: rank r gets what is r strides on */
    unsigned long long out_stride; /* of a copy: what rank r sent goes r strides on */
    unsigned long long slot_bytes;
    unsigned long long patience_ns;
    unsigned rank, ranks, epoch;
    unsigned senders; /* of a copy: a bit for each rank that has data */
};

/* The words by which ranks meet inside kernels, of each rank in its own memory, written by others:
 * the number of the latest call that each sender came to, and was done with. */
struct collective_words {
    unsigned came[COLLECTIVE_RANKS], done[COLLECTIVE_RANKS];
    unsigned unused[16];
    unsigned blocks; /* of the rank's own kernel that are done */
    unsigned unused_too[31];
};

struct collective_met {
    struct collective_direct direct;
    COLLECTIVE_ADDRESS words[COLLECTIVE_RANKS]; /* collective_words of each rank */
    COLLECTIVE_ADDRESS status;                  /* as of collective_flags */
    unsigned long long patience_ns;
    unsigned rank, ranks, epoch;
};

/* Columns of a matrix go to the matrices of all ranks, by lines of 8 bytes or pieces of 16. */
struct collective_columns {
    COLLECTIVE_ADDRESS in;
    COLLECTIVE_ADDRESS out[COLLECTIVE_RANKS]; /* where the rank's own columns begin; by flags only
                                                 the rank's matrix, at out[0] */
    COLLECTIVE_ADDRESS inboxes; /* this rank's: two epochs of a slot for each sender */
    COLLECTIVE_ADDRESS outboxes[COLLECTIVE_RANKS]; /* this rank's slot in the inbox of each rank, of
                                                      an even epoch */
    COLLECTIVE_ADDRESS status;                     /* as of collective_flags */
    COLLECTIVE_ADDRESS epoch_at;                   /* a word that is added to epoch; 0: none */
    unsigned long long first, count;               /* lines or pieces of this launch */
    unsigned long long row;                        /* lines or pieces of a row of `in` */
    unsigned long long in_stride, out_stride, part_bytes;
    unsigned long long slot_bytes;
    unsigned long long patience_ns;
    unsigned rank, ranks, epoch;
    unsigned is_wide;
};

#endif
