/*
 * Options: the environment variables of the soft device. Read once, at the first call.
 */
#ifndef SOFT_OPTIONS_H
#define SOFT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* The range of TOLLENS_SOFT_DRIVER_VERSION, as reported by cuDriverGetVersion. Those above the
 * default have no more functions: they take newer PTX. */
enum {
    SOFT_DRIVER_VERSION_MIN = 11000,
    SOFT_DRIVER_VERSION_DEFAULT = 13000,
    SOFT_DRIVER_VERSION_MAX = 13020
};

/* A UUID as text has 36 characters, "GPU-" before it, and a NUL. */
enum { SOFT_OPTIONS_DEVICES_MAX = 8, SOFT_UUID_BYTES = 16, SOFT_UUID_TEXT = 41 };

#define SOFT_DEVICE_NAME "Tollens soft device"

/* Which of the work that may run next does: TOLLENS_SOFT_ORDER. */
enum soft_order { SOFT_ORDER_TURNS, SOFT_ORDER_OLDEST, SOFT_ORDER_NEWEST, SOFT_ORDER_DRAWN };

struct soft_options {
    /* TOLLENS_SOFT_DEVICES, 1 to 8, of which CUDA_VISIBLE_DEVICES selects: 0 to 8. */
    int devices;
    int all_devices;                        /* TOLLENS_SOFT_DEVICES alone */
    int hardware[SOFT_OPTIONS_DEVICES_MAX]; /* of each, its number without CUDA_VISIBLE_DEVICES */
    uint64_t memory_bytes;                  /* TOLLENS_SOFT_MEMORY: of each device; 512M, 8G */
    uint64_t granularity;   /* TOLLENS_SOFT_GRANULARITY: of cuMemCreate's memory; 4K to 2M */
    int workers;            /* TOLLENS_SOFT_WORKERS: host threads that run blocks, 1 to 256 */
    int compute_capability; /* TOLLENS_SOFT_COMPUTE: 70 to 121 */
    int driver_version;     /* TOLLENS_SOFT_DRIVER_VERSION: 11000 to 13020 */
    bool check_init;        /* TOLLENS_SOFT_CHECK has init: reads of unwritten memory */
    bool check_sync;        /* it has sync: barriers and member masks used in undefined ways */
    bool check_race;        /* it has race: accesses that nothing orders */
    bool check_race_strict; /* it has race=strict, which implies race: a strong read orders nothing
                             * without a fence, and weak reads race with atomics */
    bool check_stream;      /* it has stream: unordered operations of streams */
    bool check_leak;        /* it has leak: objects that were not released */
    bool check_fatal;       /* it has fatal: a finding in a kernel ends the launch */
    bool check_continue;    /* it has continue: an error ends its launch, and not the context */
    uint64_t budget; /* TOLLENS_SOFT_BUDGET: the warp instructions of a launch; 0: unlimited */
    uint64_t seed;   /* TOLLENS_SOFT_SEED: the order in which blocks and warps run; 0: the usual */
    enum soft_order order; /* TOLLENS_SOFT_ORDER: turns, oldest, newest or drawn */
    const char *report;    /* TOLLENS_SOFT_REPORT: a file to append reports to, one JSON object per
                         * line */
    const char *summary;   /* TOLLENS_SOFT_SUMMARY: a file to which a process appends a line at its
                          * end */
    const char *trace;  /* TOLLENS_SOFT_TRACE: a file that gets one line per operation and call */
    const char *faults; /* TOLLENS_SOFT_FAULTS: a file of fault rules */
    int core;           /* TOLLENS_SOFT_CORE: 1, 3 or 4, the x86-64 level; 0: the highest
                         * supported */
};

const struct soft_options *soft_options(void);

/* The UUID of a device, by its number without CUDA_VISIBLE_DEVICES; and as text, without "GPU-". */
void soft_options_uuid(int hardware, char uuid[SOFT_UUID_BYTES]);
void soft_options_uuid_text(int hardware, char text[SOFT_UUID_TEXT - 4]);

/* When the piece of work with this number, counted from 1, has its turn in an order other than
 * turns: the least number runs first. Neither 0 nor UINT64_MAX. */
uint64_t soft_options_turn(uint64_t number);

/* Reads the current environment. Its strings are not copied. */
void soft_options_read(struct soft_options *options);

#endif
