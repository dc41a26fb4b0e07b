/*
 * Grid: one launch of a kernel, and the distribution of its CTAs to host threads.
 */
#ifndef SOFT_GRID_H
#define SOFT_GRID_H

#include "cta.h"
#include "base/report.h"

#include <pthread.h>
#include <stdatomic.h>

struct soft_module;
struct soft_race;
struct soft_reach;
struct soft_touched;

enum { SOFT_NOTES_MAX = 32 };

struct soft_launch {
    const struct soft_code *code;
    struct soft_module *module; /* held until the launch is over */
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;   /* static and dynamic */
    uint32_t dynamic_shared; /* dynamic alone */
    uint64_t id;
    const struct soft_reach *reach; /* of the context it runs in */
    uint64_t dice;                  /* of the order that its CTAs run in; 0: one by one */
    uint64_t workspace; /* of a cooperative launch: what its blocks count each other with; or 0 */
    uint64_t budget;    /* warp instructions; 0 is no end */
    _Atomic int64_t executed; /* so far; of CTAs that jumped ahead it may be less than none */
    uint64_t ctas;
    _Atomic uint64_t next;  /* the next CTA nobody has begun */
    _Atomic uint64_t ended; /* CTAs that are done */
    atomic_bool failed;     /* all others stop where they are */
    pthread_mutex_t lock;   /* guards all below */
    struct soft_cta *parked;
    struct soft_noted {
        const struct soft_instruction *instruction, *beside;
        const char *kind;
    } noted[SOFT_NOTES_MAX]; /* what was told of */
    unsigned noted_count;
    struct soft_race *race;       /* NULL where races are not looked for */
    struct soft_report report;    /* of the first failure */
    struct soft_touched *touched; /* where the order of streams is checked; else NULL */
    struct soft_launch *older;    /* in a list of free ones */
    uint8_t *parameters;
};

/* A thread that runs CTAs keeps one of these. */
struct soft_worker {
    struct soft_view *views; /* where each memory access of the kernel found its last range */
    uint32_t views_room;
    uint64_t launch;     /* the launch they are of */
    uint64_t generation; /* of the space they are of */
};

/* Runs CTAs of the launch until none is left to begin or go on with, or slice_ns is over (0: no
 * limit). true: the launch is over. Several threads may work on one launch. */
bool soft_launch_work(struct soft_launch *launch, struct soft_worker *worker, uint64_t slice_ns);

/* Ends the launch with a failure; the first one counts. Always returns NULL, for handlers. */
const struct soft_instruction *
soft_launch_fail(struct soft_warp *warp, const struct soft_instruction *instruction, int result,
                 uint32_t lanes, uint64_t address, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Fills in who a report is about, and where. */
void soft_launch_describe(struct soft_warp *warp, const struct soft_instruction *instruction,
                          uint32_t lanes, struct soft_report *report);

/* What a check has found: finding.c. */
struct soft_finding {
    const char *kind; /* "data race"; of static life: it is compared by address */
    uint32_t lanes;
    uint64_t address;
    bool minor;                            /* it never ends the launch */
    const struct soft_report_place *other; /* the other access of two, or NULL */
    const struct soft_instruction *beside; /* its instruction */
};

/* Tells of a finding, once for each kind and instruction of a launch, or pair of instructions; or,
 * where findings are fatal, ends the launch with it. */
void soft_launch_find(struct soft_warp *warp, const struct soft_instruction *instruction,
                      const struct soft_finding *finding, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same for a finding that is about one place. */
void soft_launch_note(struct soft_warp *warp, const struct soft_instruction *instruction,
                      const char *kind, uint32_t lanes, uint64_t address, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* How many PTX instructions warps have executed in all launches that have ended. */
uint64_t soft_launch_executed(void);

/* Frees the CTAs kept for the next launch. */
void soft_launch_trim(void);

/* Ends what a launch holds, not the launch itself. */
void soft_launch_end(struct soft_launch *launch);

void soft_worker_end(struct soft_worker *worker);

#endif
