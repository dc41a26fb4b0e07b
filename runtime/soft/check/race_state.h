/*
 * Shared by the files of the race check.
 */
#ifndef SOFT_RACE_STATE_H
#define SOFT_RACE_STATE_H

#include "machine/access.h"
#include "thread_clock.h"

/* A cell keeps one unordered reader of its word, and up to this many more; then the oldest are
 * forgotten. */
enum { SOFT_READERS_MAX = 7, SOFT_SEERS_MAX = 4, SOFT_CELLS = 32, SOFT_CELL_BYTES = 4 };

/* An access of a word: lanes of a warp, one instruction, one time of their CTA. Time 0: none. */
struct soft_mark {
    uint32_t cta, time, lanes;
    uint32_t site; /* which access of the module */
    uint8_t warp;
    uint8_t scope; /* enum soft_scope */
    bool atomic;
    bool copies;  /* asynchronously */
    bool pending; /* and has not been waited for: nothing is ordered after it */
    bool proxied; /* through the async proxy */
    bool product; /* by a wgmma: after any thread of the warpgroup is after it */
};

struct soft_readers {
    uint32_t count;
    struct soft_mark marks[SOFT_READERS_MAX];
};

/* What a strong write of a word passes on besides the value. */
struct soft_flag {
    struct soft_clock *released; /* to whoever reads it */
    struct soft_clock *near;     /* to readers of the CTA near_cta, by fences of scope .cta */
    uint32_t near_cta;
    uint32_t seers; /* strong reads that observed the last write; more than MAX: many */
    struct soft_mark seen[SOFT_SEERS_MAX];
};

/* A word, or a byte where some accesses are smaller. */
struct soft_cell {
    struct soft_mark write, read;
    struct soft_readers *more;
    struct soft_flag *flag;
};

/* A weak access of a warp whose lanes are adjacent: lane i has 1 << shift bytes, i times that after
 * start, which counts from the begin of a row and may be before it. Several reads at one time, each
 * an element further on, as of a stencil, are one line: then a lane has span further elements. */
struct soft_row_line {
    struct soft_mark mark;
    int16_t start;
    uint8_t shift, span;
    bool writes;
};

enum { SOFT_ROW_BYTES = SOFT_CELLS * SOFT_CELL_BYTES, SOFT_ROWS = 8 };
enum { SOFT_LINES_HERE = 3, SOFT_LINES_MORE = 9 };

/* The accesses of the bytes that a warp of adjacent words fills. While all accesses are lines, the
 * row has those that are not ordered before a later one of the same bytes. Otherwise it has a cell
 * for each word, or for each byte where some accesses are smaller: race_row.c. */
struct soft_row {
    struct soft_row_line lines[SOFT_LINES_HERE];
    struct soft_row_line *more; /* SOFT_LINES_MORE further ones */
    uint32_t count;
    uint32_t cta; /* of shared memory: the last block that accessed it */
    struct soft_cell *words, *bytes;
};

/* A page of memory. */
struct soft_cells {
    struct soft_row rows[SOFT_ROWS];
};

/* A lane's clock at its last fence. */
struct soft_fenced {
    uint32_t time, synced;
    uint32_t lanes[SOFT_LANES], warps[SOFT_WARPS_MAX];
};

/* The proxy fences of a lane: the times of the last ones, and its clock at the last. */
enum { SOFT_PROXY_FENCES = 8, SOFT_PROXY_SPACES = 3 };
struct soft_proxy_fences {
    uint32_t count, times[SOFT_PROXY_FENCES]; /* of fence i at i % SOFT_PROXY_FENCES */
    struct soft_fenced last;
    struct soft_clock *known;
};

struct soft_released {
    uint32_t time; /* of the CTA, when it was made */
    struct soft_clock *clock;
};

/* What the lanes of a warp know of their CTA: of each other, all up to synced, and more in lanes,
 * one row per lane; of other warps, up to warps by barriers. And each lane's additional clock. */
struct soft_warp_order {
    uint32_t synced;
    bool parted; /* lanes is in use */
    uint32_t lanes[SOFT_LANES][SOFT_LANES];
    uint32_t warps[SOFT_WARPS_MAX];
    struct soft_clock *known[SOFT_LANES];
    struct soft_clock *observed[SOFT_LANES];  /* race=strict: known after the lane's next fence */
    struct soft_fenced fenced[2][SOFT_LANES]; /* by a scope of .cta or more, of .gpu or more */
    struct soft_released released[2][SOFT_LANES];
    struct soft_proxy_fences *proxies[SOFT_PROXY_SPACES]; /* a lane each; NULL: no fences */
};

struct soft_barrier_order {
    uint32_t warps[SOFT_WARPS_MAX];
    struct soft_clock *known;
};

/* What threads have passed on at an mbarrier in this phase (one time per thread of the CTA, and
 * their additional clocks), and in completed phases. */
struct soft_object_order {
    struct soft_object_order *next;
    uint32_t offset;
    uint32_t warps[SOFT_WARPS_MAX], lanes[SOFT_WARPS_MAX][SOFT_LANES];
    struct soft_clock *known, *done;
};

struct soft_race_cta {
    struct soft_race *race;
    struct soft_race_cta *next; /* in the list of all, or of free ones */
    struct soft_race_cta *free;
    uint32_t number, time;
    bool fenced[2], acquired; /* whether any lane has done that */
    uint32_t warp_count;
    struct soft_barrier_order barriers[SOFT_BARRIERS];
    struct soft_object_order *objects;
    struct soft_chunks chunks; /* of shared, and of objects */
    struct soft_pages shared;
    struct soft_warp_order warps[];
};

/* The race state of a launch. The lock guards all of it except the CTAs, each of which one thread
 * runs. The lock is held while an instruction that may access global memory is checked and
 * executed, so that a strong read gets the clock that belongs to the value it sees. */
struct soft_race {
    pthread_mutex_t lock;
    struct soft_clocks clocks;
    struct soft_chunks chunks; /* of global */
    struct soft_pages global;
    struct soft_race_cta *ctas, *free;
    struct {
        uint32_t site, beside;
        bool equal;
    } reported[SOFT_NOTES_MAX]; /* pairs of accesses */
    uint32_t reported_count;
    bool is_strict;       /* race=strict */
    atomic_bool given_up; /* out of memory: nothing is checked any more */
};

/* A lane's access to be checked. */
struct soft_checked_access {
    struct soft_warp *warp;
    const struct soft_instruction *in;
    struct soft_race *race;
    struct soft_race_cta *cta;
    struct soft_chunks *chunks;
    uint32_t lane, before; /* before: the lanes of this execution that have been checked */
    struct soft_mark mark;
    bool reads, writes, acquires, shared;
    bool observes;           /* race=strict: what a strong read acquires waits for a fence */
    bool plain;              /* a load, a store or an atomic */
    bool settles;            /* a copy that has been pending */
    bool maps;               /* a copy that reads its tensor map */
    unsigned bytes;          /* of the lane's access */
    struct soft_cells *page; /* the last one looked up, of page_shared */
    uint64_t page_number;
    bool page_shared;
    struct soft_cta *home;   /* of shared memory: the owning block, usually the lane's own */
    uint64_t address, begin; /* as used by the program; and in its space */
};

/* race_order.c: whether a mark's access comes before a lane's next one. */
bool soft_race_ordered(const struct soft_checked_access *touch, const struct soft_mark *mark);

/* race_proxy.c: whether a proxy fence lies between a generic access and a later one of the async
 * proxy. */
bool soft_race_is_proxied(const struct soft_checked_access *touch, const struct soft_mark *mark);

/* race_proxy.c: a new block has executed no proxy fences. */
void soft_race_proxies_begin(struct soft_race_cta *own);

/* race_order.c: what a strong write of the lane passes on to its readers, near: within the CTA; the
 * flag keeps a reference. */
struct soft_clock *soft_race_released(const struct soft_checked_access *touch, bool near);

/* race_order.c: joins a clock into the lane's. */
void soft_race_learn(const struct soft_checked_access *touch, struct soft_clock *clock);

/* race_access.c: checks an access of bytes bytes at an address in a space. */
void soft_race_touch(struct soft_checked_access *touch, enum soft_access_space space);

/* race_row.c: checks and records a line. false: nothing was done; the row's cells must be used,
 * lane by lane. */
bool soft_row_take(const struct soft_checked_access *touch, struct soft_row *row,
                   const struct soft_row_line *line);

/* race_row.c: makes cells of a row's lines, if it has none. false: out of memory. */
bool soft_row_expand(struct soft_row *row, struct soft_chunks *chunks);

/* race_row.c: makes cells of bytes of a row's words, if it has none. */
bool soft_row_split(struct soft_row *row, struct soft_chunks *chunks);

/* race_row.c: forgets a cell, or all of a row. */
void soft_cell_forget(struct soft_cell *cell, struct soft_clocks *clocks,
                      struct soft_chunks *chunks);
void soft_row_forget(struct soft_row *row, struct soft_clocks *clocks, struct soft_chunks *chunks);

/* race_order.c: whether all lanes of the warp are ordered after an access of their block. false:
 * perhaps some are. */
bool soft_race_all_ordered(const struct soft_checked_access *touch, const struct soft_mark *mark);

/* race_cell.c: checks and records a weak read of a cell by all lanes of the mark. false: nothing
 * was done; they must be checked one by one. */
bool soft_race_check_together(struct soft_checked_access *touch, struct soft_cell *cell);

/* race_access.c: records that the check cannot continue after an instruction. */
void soft_race_note_end(const struct soft_checked_access *touch);

/* race_object.c: a new block has no objects. */
void soft_race_objects_begin(struct soft_race_cta *own);

/* race_cell.c: checks an access of a cell, at an address in its space, and notes it. */
void soft_race_check(struct soft_checked_access *touch, struct soft_cell *cell, uint64_t at,
                     unsigned bytes);

/* race_report.c: reports that another block's access to shared memory at an offset may follow the
 * exit of the owning block. */
void soft_race_tell_exit(const struct soft_cta *gone, struct soft_cta *other,
                         const struct soft_mark *mark, uint64_t at);

/* race_report.c: reports that an access races with a mark, at a cell. */
void soft_race_tell(const struct soft_checked_access *touch, const struct soft_mark *mark,
                    bool wrote, uint64_t at, unsigned bytes);

/* race_report.c: reports that no proxy fence lies between them. */
void soft_race_tell_proxy(const struct soft_checked_access *touch, const struct soft_mark *mark);

#endif
