/*
 * Reads: how copies from the device to pageable memory are cut and shared among threads. Each field
 * is a way that may be faster; the defaults are what GPUs have measured (reports/notes), and
 * bench-transfer --candidates compares the others. Every mixture is right. Internal: not installed.
 */
#ifndef TOLLENS_READS_H
#define TOLLENS_READS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a thread copies from a staging block to the program's memory. A block begins at a page, and
 * large memory of malloc 16 bytes behind one: there a string instruction, which memcpy uses too,
 * has a tenth of its speed on an AMD EPYC (3 GB/s in the cache of 26 to 38 elsewhere; usual loads
 * and stores have 33 to 35). */
enum tol_read_copy {
    TOL_READ_AS_OPTIONS, /* as struct tol_transfer_options says: memcpy, or past the caches */
    TOL_READ_VECTOR,     /* with usual loads and stores, and never a string instruction */
    TOL_READ_STRING,     /* with one string instruction, which fetches no line to overwrite it */
    TOL_READ_AHEAD,      /* with usual stores, and both sides prefetched */
    TOL_READ_STREAMED_AHEAD, /* with stores past the caches, and the source prefetched */
    TOL_READ_COPIES
};

struct tol_read_design {
    size_t part_bytes;   /* what a thread unpacks at once; 0: an eighth of a piece, 64 to 256 KiB */
    size_t piece_bytes;  /* pieces grow to no less, as far as blocks allow it; at least 1 */
    size_t helper_bytes; /* so many bytes are worth a thread that has to be woken; at least 1 */
    enum tol_read_copy copy;
    bool queues_first;  /* the device gets its first pieces before helpers are woken */
    bool leads_only;    /* the caller unpacks only while the device has nothing to do for it */
    bool shares_asking; /* helpers that wait ask the device too, so the caller is not waited for */
};

/* What copies did, summed up; whoever sets them reads them when no copy runs. */
struct tol_read_notes {
    _Atomic(uint64_t) copies;
    _Atomic(uint64_t) threads;      /* that unpacked a part, the caller too */
    _Atomic(uint64_t) parts;        /* that were unpacked; some of the first pieces' are empty */
    _Atomic(uint64_t) caller_parts; /* of them, by the caller */
    _Atomic(uint64_t) arrival_ns;   /* from the begin until the last piece was seen to be there */
};

/* What copies do unless they are told otherwise. */
void tol_read_design_default(struct tol_read_design *design);

/* Copies bytes that do not overlap, in any way but TOL_READ_AS_OPTIONS. What was written is visible
 * to whoever sees a later store of this thread. Ways that the processor has not are memcpy. */
void tol_read_copy_as(enum tol_read_copy copy, void *to, const void *from, size_t bytes);

#endif
