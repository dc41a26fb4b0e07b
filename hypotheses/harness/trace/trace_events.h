/*
 * Trace events: a trace, and what the readers of all formats share. A reader finds events in the
 * words of its file; the maker gives blocks, threads and streams small numbers and keeps the rules.
 *
 * Impossible events of our own text are refused with their line: a block allocated twice, or freed
 * without an allocation, unless earlier events were lost. In the files of others, such events are
 * left out, counted and named by a note.
 */
#ifndef HYP_TRACE_EVENTS_H
#define HYP_TRACE_EVENTS_H

#include "tollens.h"

#include <stdbool.h>
#include <stdio.h>

enum { HYP_TRACE_THREADS_MAX = 256, HYP_TRACE_STREAMS_MAX = 1024, HYP_TRACE_TAGS_MAX = 256 };

/* Only the events of the program: the pool grows and shrinks by itself. */
struct hyp_trace_event {
    uint64_t number; /* of the event or the line of the file; 0: live before the trace began */
    uint64_t time_ns;
    uint64_t bytes;
    uint64_t stream_name; /* of the stream in the file */
    uint32_t block;       /* of allocate and free */
    uint16_t thread;      /* from 0, in the order of their first events */
    uint16_t stream;      /* from 1; 0 is the host */
    uint16_t tag;         /* into tags; 0 is none */
    uint8_t kind;         /* enum tol_pool_event_kind */
};

/* What a reader left out, added or renumbered. */
enum hyp_trace_note {
    HYP_TRACE_LOST,           /* events before the first */
    HYP_TRACE_THREADS_JOINED, /* more threads at once than HYP_TRACE_THREADS_MAX */
    HYP_TRACE_STREAMS_JOINED,
    HYP_TRACE_NO_BYTES,       /* allocations of zero bytes, left out */
    HYP_TRACE_UNKNOWN_FREES,  /* frees of blocks that are not live, left out */
    HYP_TRACE_STILL_LIVE,     /* allocations at the address of a live block, which is freed first */
    HYP_TRACE_LIVE_BEFORE,    /* blocks that were live before the trace, allocated first */
    HYP_TRACE_PENDING,        /* blocks that were freed, but in use at the end of the trace */
    HYP_TRACE_OTHER_EVENTS,   /* events of the other allocator itself, left out */
    HYP_TRACE_UNKNOWN_EVENTS, /* events of an unknown kind, left out */
    HYP_TRACE_OTHER_DEVICES,  /* events of other devices, left out */
    HYP_TRACE_CUT_SHORT,      /* the last line is not complete, and left out */
    HYP_TRACE_NOTES
};

struct hyp_trace {
    struct hyp_trace_event *events;
    size_t count, room;
    size_t allocations, frees, refusals, trims;
    uint32_t blocks;
    unsigned threads, streams; /* streams without the host */
    char tags[HYP_TRACE_TAGS_MAX][32];
    const char *format;     /* "an RMM log" */
    const char *unit;       /* what the numbers of events count: "event" or "line" */
    const char *places;     /* what the first numbers of notes count: "event" or "line" */
    uint64_t peak;          /* the most live bytes */
    uint64_t recorded_peak; /* the most bytes that the traced allocator held; 0: unknown */
    struct {
        uint64_t count, first; /* first: the event or line of the first */
    } notes[HYP_TRACE_NOTES];
};

void hyp_trace_free(struct hyp_trace *trace);

/* The sentence of a note, in a static text. NULL: there is nothing to note. */
const char *hyp_trace_note(const struct hyp_trace *trace, enum hyp_trace_note note);

/* ---- the maker ---- */

enum { HYP_TRACE_LINE_BYTES = 400 };

struct hyp_trace_maker;

/* An event in the words of a file. */
struct hyp_trace_found {
    uint64_t time_ns, thread, stream, block, bytes;
    uint16_t tag;
    uint8_t kind;
    bool is_host; /* the stream is the host */
};

/* What the maker does about an impossible event. */
enum hyp_trace_rule {
    HYP_TRACE_REFUSES, /* it fails, unless an earlier event was lost */
    HYP_TRACE_LEAVES_OUT,
    HYP_TRACE_COMPLETES, /* a block that is freed without an allocation was live before the trace */
};

struct hyp_trace_maker *hyp_trace_maker_begin(const char *path, struct hyp_trace *trace);
void hyp_trace_maker_rule(struct hyp_trace_maker *maker, enum hyp_trace_rule rule);

/* What is read now: the number of a line or an event, for errors and notes. */
void hyp_trace_at(struct hyp_trace_maker *maker, uint64_t place);

/* Adds an event. number is what a user finds it by, and does not fall. false: hyp_error() names the
 * place. */
bool hyp_trace_add(struct hyp_trace_maker *maker, uint64_t number,
                   const struct hyp_trace_found *found);

/* A block that was live when the trace ended. If no event mentions it, it was live before. */
bool hyp_trace_add_live(struct hyp_trace_maker *maker, const struct hyp_trace_found *found);

/* Counts something that a reader left out. */
void hyp_trace_notice(struct hyp_trace_maker *maker, enum hyp_trace_note note);

/* Completes the trace, or fails if it has no event. Frees the maker in any case. */
bool hyp_trace_maker_end(struct hyp_trace_maker *maker, bool ok);

/* "PATH line 17: WHAT 'WORD'"; word may be NULL. Always false. */
bool hyp_trace_refuse(const struct hyp_trace_maker *maker, const char *what, const char *word);

/* ---- lines and their fields ---- */

enum hyp_trace_line { HYP_TRACE_LINE, HYP_TRACE_LINE_CUT, HYP_TRACE_LINE_NONE, HYP_TRACE_LINE_BAD };

/* Reads a line without its end; it is the next place. CUT: the file ends in it. BAD: it is
 * refused; hyp_error() says why. */
enum hyp_trace_line hyp_trace_next_line(struct hyp_trace_maker *maker, FILE *file,
                                        char line[HYP_TRACE_LINE_BYTES]);

/* Splits a line at its commas into exactly count fields. */
bool hyp_trace_split(const struct hyp_trace_maker *maker, char *line, char **fields, size_t count);

/* A number of base 10, or of base 16 with or without 0x. */
bool hyp_trace_number(const struct hyp_trace_maker *maker, const char *word, int base,
                      uint64_t most, uint64_t *value);

#endif
