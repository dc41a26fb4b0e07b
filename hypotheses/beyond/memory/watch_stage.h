/*
 * Watch stage: a watched block of weights, in a context whose calls go through a watch and the
 * hooks of the saboteur, and the alarms that came. Its rules:
 *
 *     written once, not read back, not copied, not shared      blocks weights*
 *     only known modules                                       all launches
 *     only known kernels                                       blocks weights*
 *     a limit of copies out                                    block state
 */
#ifndef HYP_WATCH_STAGE_H
#define HYP_WATCH_STAGE_H

#include "memory_faults.h"

#include <pthread.h>

enum { WATCH_LOG = 1024, WATCH_STATE_BYTES = 65536 };

/* An alarm that came, or that is expected. */
struct watch_alarm_seen {
    enum tol_watch_kind kind;
    char label[TOL_WATCH_LABEL_BYTES], call[64], kernel[64];
    double value;
    uint64_t address, bytes, thread;
    bool refused, is_matched;
};

struct watch_stage {
    struct hyp_attack *attack;
    struct tol_watch *watch;
    const struct tol_driver_table *cu; /* through the watch */
    struct tol_stream *stream, *second;
    struct tol_buffer *weights; /* "weights.0" */
    struct tol_buffer *state;   /* "state": may be read at a limited rate */
    struct tol_buffer *target;  /* not watched, as large as the weights */
    size_t bytes;               /* of the weights, a multiple of 64 */
    unsigned char *content;     /* of the weights */
    struct tol_pinned *pinned;  /* as large as the weights */
    unsigned char *host;        /* its bytes */
    struct tol_module *module;  /* known; "weigh" is known to use the weights */
    char *ptx;
    bool refuses;         /* the rules do */
    bool sees_bytes;      /* of kernels */
    double mb_per_s;      /* of the rule about the state */
    uint64_t written;     /* bytes written to the weights that were counted */
    pthread_mutex_t lock; /* of the log */
    unsigned count;
    struct watch_alarm_seen log[WATCH_LOG];
};

/* Rules that refuse, or not. false: a violation was recorded. End it in either case. */
bool watch_stage_begin(struct hyp_attack *attack, struct watch_stage *stage, bool refuses);
void watch_stage_end(struct watch_stage *stage);

/* Moves the watch's clock. */
void watch_stage_wait_ns(uint64_t ns);

/* A kernel of a module; NULL: a violation was recorded. */
struct tol_kernel *watch_stage_kernel(struct watch_stage *stage, struct tol_module *module,
                                      const char *name);

/* Multiplies the weights with the state: ordinary work, of known kernels. */
bool watch_stage_weigh(struct watch_stage *stage, CUdeviceptr y);

/* Waits for all work. */
bool watch_stage_settle(struct watch_stage *stage);

/* Fills the target and the host's memory, unseen by the watch, and waits. */
void watch_stage_clear(struct watch_stage *stage);

/* An expected alarm about the weights, a launch (label ""), or another block. */
struct watch_alarm_wanted {
    enum tol_watch_kind kind;
    const char *label, *call; /* call NULL: any */
    double value;
};
#define WANTED(...)                                                                                \
    (const struct watch_alarm_wanted[]) {                                                          \
        __VA_ARGS__                                                                                \
    }

/* The alarms since the last call must be these, in any order, and no others. */
bool watch_stage_expect(struct watch_stage *stage, const char *what,
                        const struct watch_alarm_wanted *wanted, unsigned count);

/* The weights must have their first content, and get it back if not. */
bool watch_stage_unchanged(struct watch_stage *stage, bool expected, const char *what);

#endif
