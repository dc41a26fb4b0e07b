/*
 * Handing out CTAs: a counter says which is next, and a thread that has finished one takes another.
 *
 * A CTA is set up once a launch and thread, and then used for one block after the other: constants,
 * parameters and thread indices stay in its frames, only %ctaid changes.
 */
#include "grid.h"

#include "../cuda_abi.h"
#include "image.h"
#include "space.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* CTAs kept for later launches, and blocks run between two looks at the clock. */
enum { SPARE_MAX = 16, CLOCK_EVERY = 16, ALIGNMENT = 64 };

static struct {
    pthread_mutex_t lock;
    struct soft_cta *first;
    unsigned count;
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void free_cta(struct soft_cta *cta) {
    if (cta == NULL) return;
    free(cta->warps);
    free(cta->slots);
    free(cta);
}

static size_t round_up(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Where the parts of a CTA's one block of memory lie. */
struct layout {
    uint32_t warps;
    size_t frame, slots, shared, shared_shadow, local, local_shadow, whole;
};

static struct layout layout_of(const struct soft_launch *launch) {
    struct layout layout = {0};
    bool tracks = soft_space_tracks();
    uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
    layout.warps = (threads + SOFT_LANES - 1) / SOFT_LANES;
    layout.frame = round_up(launch->code->frame_bytes);
    size_t local = (size_t)launch->code->local_bytes * layout.warps * SOFT_LANES;
    layout.shared = layout.slots + layout.frame * layout.warps;
    layout.shared_shadow = layout.shared + round_up((size_t)launch->shared_bytes + ALIGNMENT);
    layout.local =
        layout.shared_shadow + (tracks ? round_up(launch->shared_bytes / 4 + ALIGNMENT) : 0);
    layout.local_shadow = layout.local + round_up(local);
    layout.whole = layout.local_shadow + (tracks ? round_up(local / 4) : 0) + ALIGNMENT;
    return layout;
}

static struct soft_cta *take_spare(const struct layout *layout) {
    struct soft_cta *found = NULL;
    pthread_mutex_lock(&spare.lock);
    for (struct soft_cta **link = &spare.first; *link != NULL; link = &(*link)->next) {
        if ((*link)->memory_bytes >= layout->whole && (*link)->warp_room >= layout->warps) {
            found = *link;
            *link = found->next;
            spare.count--;
            break;
        }
    }
    pthread_mutex_unlock(&spare.lock);
    return found;
}

static void give_spare(struct soft_cta *cta) {
    pthread_mutex_lock(&spare.lock);
    bool keep = spare.count < SPARE_MAX;
    if (keep) {
        cta->next = spare.first;
        spare.first = cta;
        spare.count++;
    }
    pthread_mutex_unlock(&spare.lock);
    if (!keep) free_cta(cta);
}

void soft_launch_trim(void) {
    pthread_mutex_lock(&spare.lock);
    struct soft_cta *cta = spare.first;
    spare.first = NULL;
    spare.count = 0;
    pthread_mutex_unlock(&spare.lock);
    while (cta != NULL) {
        struct soft_cta *next = cta->next;
        free_cta(cta);
        cta = next;
    }
}

static struct soft_cta *new_cta(const struct layout *layout) {
    struct soft_cta *cta = calloc(1, sizeof *cta);
    if (cta == NULL) return NULL;
    cta->memory_bytes = layout->whole;
    cta->warp_room = layout->warps;
    cta->slots = aligned_alloc(ALIGNMENT, layout->whole);
    cta->warps = aligned_alloc(ALIGNMENT, round_up(layout->warps * sizeof *cta->warps));
    if (cta->slots == NULL || cta->warps == NULL) {
        free_cta(cta);
        return NULL;
    }
    memset(cta->slots, 0, layout->whole);
    memset(cta->warps, 0, layout->warps * sizeof *cta->warps);
    return cta;
}

static void fill_32(uint8_t *slot, uint32_t value) {
    for (int i = 0; i < SOFT_LANES; i++) memcpy(slot + 4 * i, &value, 4);
}

static void fill_64(uint8_t *slot, uint64_t value) {
    for (int i = 0; i < SOFT_LANES; i++) memcpy(slot + 8 * i, &value, 8);
}

static uint64_t parameter_at(const struct soft_launch *launch, const struct soft_fill *fill) {
    uint64_t value = 0;
    memcpy(&value, launch->parameters + fill->value, fill->bytes);
    unsigned shift = 64 - 8 * fill->bytes;
    return fill->is_signed ? (uint64_t)((int64_t)(value << shift) >> shift) : value;
}

/* The special registers that are the same in every block of a launch; those of a thread are given
 * lane by lane. */
static uint32_t special_at(const struct soft_launch *launch, const struct soft_warp *warp,
                           enum ptx_special special, uint32_t lane) {
    uint32_t thread = warp->index * SOFT_LANES + lane;
    switch (special) {
    case PTX_SPECIAL_tid_x:
        return thread % launch->block[0];
    case PTX_SPECIAL_tid_y:
        return thread / launch->block[0] % launch->block[1];
    case PTX_SPECIAL_tid_z:
        return thread / launch->block[0] / launch->block[1];
    case PTX_SPECIAL_ntid_x:
        return launch->block[0];
    case PTX_SPECIAL_ntid_y:
        return launch->block[1];
    case PTX_SPECIAL_ntid_z:
        return launch->block[2];
    case PTX_SPECIAL_nctaid_x:
        return launch->grid[0];
    case PTX_SPECIAL_nctaid_y:
        return launch->grid[1];
    case PTX_SPECIAL_nctaid_z:
        return launch->grid[2];
    case PTX_SPECIAL_laneid:
        return lane;
    case PTX_SPECIAL_warpid:
        return warp->index;
    case PTX_SPECIAL_nwarpid:
        return warp->cta->warp_count;
    case PTX_SPECIAL_lanemask_eq:
        return 1u << lane;
    case PTX_SPECIAL_lanemask_le:
        return UINT32_MAX >> (31 - lane);
    case PTX_SPECIAL_lanemask_lt:
        return (1u << lane) - 1;
    case PTX_SPECIAL_lanemask_ge:
        return UINT32_MAX << lane;
    case PTX_SPECIAL_lanemask_gt:
        return ~(UINT32_MAX >> (31 - lane));
    case PTX_SPECIAL_total_smem_size:
        return launch->shared_bytes;
    case PTX_SPECIAL_dynamic_smem_size:
        return launch->dynamic_shared;
    case PTX_SPECIAL_warp_sz:
        return SOFT_LANES;
    default:
        return 0;
    }
}

static void fill_warp(const struct soft_launch *launch, struct soft_warp *warp) {
    const struct soft_code *code = launch->code;
    for (uint32_t f = 0; f < code->fill_count; f++) {
        const struct soft_fill *fill = &code->fills[f];
        uint8_t *slot = warp->bottom.slots + fill->slot;
        if (fill->kind == SOFT_FILL_SPECIAL) {
            for (uint32_t lane = 0; lane < SOFT_LANES; lane++) {
                uint32_t value = special_at(launch, warp, (enum ptx_special)fill->value, lane);
                memcpy(slot + 4 * lane, &value, 4);
            }
        } else if (fill->kind != SOFT_FILL_CTA) {
            uint64_t value =
                fill->kind == SOFT_FILL_CONSTANT ? fill->value : parameter_at(launch, fill);
            uint32_t word = value != 0 ? UINT32_MAX : 0;
            if (fill->predicate) {
                memcpy(slot, &word, sizeof word);
            } else if (fill->wide) {
                fill_64(slot, value);
            } else {
                fill_32(slot, (uint32_t)value);
            }
        }
    }
}

/* Lays a CTA out for a launch and fills its frames. */
static void prepare_cta(struct soft_launch *launch, struct soft_cta *cta,
                        const struct layout *layout) {
    bool tracks = soft_space_tracks();
    uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
    cta->launch = launch;
    cta->warp_count = layout->warps;
    cta->shared = cta->slots + layout->shared;
    cta->shared_bytes = launch->shared_bytes;
    cta->shared_shadow = tracks ? cta->slots + layout->shared_shadow : NULL;
    cta->local = cta->slots + layout->local;
    cta->local_shadow = tracks ? cta->slots + layout->local_shadow : NULL;
    cta->local_bytes = launch->code->local_bytes;
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        struct soft_warp *warp = &cta->warps[w];
        uint32_t left = threads - w * SOFT_LANES;
        memset(warp, 0, sizeof *warp);
        warp->cta = cta;
        warp->index = w;
        warp->threads = left >= SOFT_LANES ? UINT32_MAX : (1u << left) - 1;
        warp->bottom.slots = cta->slots + layout->slots + w * layout->frame;
        warp->bottom.code = launch->code;
        fill_warp(launch, warp);
    }
}

static void begin_cta(struct soft_cta *cta, uint64_t number) {
    const struct soft_launch *launch = cta->launch;
    cta->number = number;
    cta->index[0] = (uint32_t)(number % launch->grid[0]);
    cta->index[1] = (uint32_t)(number / launch->grid[0] % launch->grid[1]);
    cta->index[2] = (uint32_t)(number / launch->grid[0] / launch->grid[1]);
    cta->warps_alive = cta->warp_count;
    cta->blocked = 0;
    memset(cta->barriers, 0, sizeof cta->barriers);
    if (cta->shared_shadow != NULL) memset(cta->shared_shadow, 0, cta->shared_bytes / 4 + 1);
    if (cta->local_shadow != NULL) {
        memset(cta->local_shadow, 0, (size_t)cta->local_bytes * cta->warp_count * SOFT_LANES / 4);
    }
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        struct soft_warp *warp = &cta->warps[w];
        for (uint32_t f = 0; f < launch->code->fill_count; f++) {
            const struct soft_fill *fill = &launch->code->fills[f];
            if (fill->kind == SOFT_FILL_CTA) {
                fill_32(warp->bottom.slots + fill->slot, cta->index[fill->value]);
            }
        }
        soft_warp_begin(warp, launch->code->instructions);
    }
}

/* Forgets the views where they are of another launch or of a space that has changed. */
static bool prepare_worker(struct soft_launch *launch, struct soft_worker *worker) {
    uint32_t sites = launch->code->sites;
    if (sites > worker->views_room) {
        free(worker->views);
        worker->views = calloc(sites, sizeof *worker->views);
        worker->views_room = worker->views != NULL ? sites : 0;
        if (worker->views == NULL) return false;
    } else if (worker->launch != launch->id || worker->generation != soft_space_generation()) {
        if (sites > 0) memset(worker->views, 0, sites * sizeof *worker->views);
    }
    worker->launch = launch->id;
    worker->generation = soft_space_generation();
    return true;
}

static void fail_without_place(struct soft_launch *launch, int result, const char *detail) {
    pthread_mutex_lock(&launch->lock);
    if (!atomic_load(&launch->failed)) {
        launch->report = (struct soft_report){.result = result, .kind = "launch failure"};
        snprintf(launch->report.kernel, sizeof launch->report.kernel, "%s", launch->code->name);
        snprintf(launch->report.detail, sizeof launch->report.detail, "%s", detail);
        atomic_store(&launch->failed, true);
    }
    pthread_mutex_unlock(&launch->lock);
}

/* A CTA to go on with: one that was put aside, unless there is one to begin. */
static struct soft_cta *take_parked(struct soft_launch *launch) {
    pthread_mutex_lock(&launch->lock);
    struct soft_cta **link = &launch->parked, *cta = NULL;
    while (*link != NULL && (*link)->next != NULL) link = &(*link)->next;
    cta = *link; /* the one that waits longest */
    if (cta != NULL) *link = NULL;
    pthread_mutex_unlock(&launch->lock);
    return cta;
}

static void park(struct soft_launch *launch, struct soft_cta *cta) {
    pthread_mutex_lock(&launch->lock);
    cta->next = launch->parked;
    launch->parked = cta;
    pthread_mutex_unlock(&launch->lock);
}

/* Begins the next CTA in a CTA's place; false when all have been begun. */
static bool begin_next(struct soft_launch *launch, struct soft_cta *cta) {
    uint64_t number = atomic_fetch_add(&launch->next, 1);
    if (number >= launch->ctas || atomic_load(&launch->failed)) return false;
    begin_cta(cta, number);
    return true;
}

static uint64_t executed_by(struct soft_cta *cta) {
    uint64_t sum = 0;
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        sum += cta->warps[w].executed;
        cta->warps[w].executed = 0;
    }
    return sum;
}

static void check_budget(struct soft_launch *launch, struct soft_cta *cta) {
    uint64_t executed = atomic_fetch_add(&launch->executed, executed_by(cta));
    if (launch->budget == 0 || executed <= launch->budget || atomic_load(&launch->failed)) return;
    cta->warps[0].split = cta->warps[0].splits;
    fail_without_place(launch, CUDA_ERROR_LAUNCH_TIMEOUT,
                       "the launch has used up its budget of instructions");
}

/* The CTA to run now: a new one where there is one to begin, else one that was parked. */
static struct soft_cta *next_cta(struct soft_launch *launch, struct soft_cta *idle,
                                 const struct layout *layout, bool *prepared) {
    if (atomic_load(&launch->next) < launch->ctas) {
        struct soft_cta *cta = idle;
        if (cta == NULL) {
            cta = take_spare(layout);
            if (cta == NULL) cta = new_cta(layout);
            if (cta == NULL) {
                fail_without_place(launch, CUDA_ERROR_OUT_OF_MEMORY,
                                   "the host has no memory for a block");
                return NULL;
            }
            prepare_cta(launch, cta, layout);
        }
        if (begin_next(launch, cta)) {
            *prepared = true;
            return cta;
        }
        if (idle == NULL) give_spare(cta);
    }
    return take_parked(launch);
}

bool soft_launch_work(struct soft_launch *launch, struct soft_worker *worker, uint64_t slice_ns) {
    struct layout layout = layout_of(launch);
    uint64_t end_ns = slice_ns > 0 ? now_ns() + slice_ns : UINT64_MAX;
    struct soft_cta *idle = NULL;
    unsigned turns = 0;
    if (!prepare_worker(launch, worker)) {
        fail_without_place(launch, CUDA_ERROR_OUT_OF_MEMORY, "the host has no memory left");
    }
    while (!atomic_load(&launch->failed)) {
        bool used_idle = false;
        struct soft_cta *cta = next_cta(launch, idle, &layout, &used_idle);
        if (cta == NULL) break;
        if (used_idle) idle = NULL;
        enum soft_stop stop = soft_cta_run(cta, worker->views);
        check_budget(launch, cta);
        if (stop == SOFT_STOP_YIELD && !atomic_load(&launch->failed)) {
            park(launch, cta);
        } else {
            if (stop == SOFT_STOP_DONE) atomic_fetch_add(&launch->ended, 1);
            if (idle != NULL) give_spare(idle);
            idle = cta;
        }
        if (++turns % CLOCK_EVERY == 0 || stop == SOFT_STOP_YIELD) {
            if (slice_ns > 0 && now_ns() >= end_ns) break;
        }
    }
    if (idle != NULL) give_spare(idle);
    return atomic_load(&launch->failed) || atomic_load(&launch->ended) == launch->ctas;
}

void soft_launch_end(struct soft_launch *launch) {
    while (launch->parked != NULL) {
        struct soft_cta *cta = launch->parked;
        launch->parked = cta->next;
        give_spare(cta);
    }
}

void soft_worker_end(struct soft_worker *worker) {
    free(worker->views);
    *worker = (struct soft_worker){0};
}

/* Who it is about, and where. */
static void describe(struct soft_warp *warp, const struct soft_instruction *instruction,
                     uint32_t lanes, struct soft_report *report) {
    const struct soft_launch *launch = warp->cta->launch;
    uint32_t lane = lanes != 0 ? (uint32_t)__builtin_ctz(lanes) : 0;
    for (int i = 0; i < 3; i++) report->block[i] = warp->cta->index[i];
    report->thread[0] = special_at(launch, warp, PTX_SPECIAL_tid_x, lane);
    report->thread[1] = special_at(launch, warp, PTX_SPECIAL_tid_y, lane);
    report->thread[2] = special_at(launch, warp, PTX_SPECIAL_tid_z, lane);
    report->lanes = (uint32_t)__builtin_popcount(lanes);
    snprintf(report->kernel, sizeof report->kernel, "%s", launch->code->name);
    soft_module_describe(launch->module, warp->split->frame->code, instruction, report);
}

const struct soft_instruction *soft_launch_fail(struct soft_warp *warp,
                                                const struct soft_instruction *instruction,
                                                int result, uint32_t lanes, uint64_t address,
                                                const char *format, ...) {
    struct soft_launch *launch = warp->cta->launch;
    struct soft_report report = {
        .result = result, .kind = soft_report_kind(result), .address = address};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report.detail, sizeof report.detail, format, arguments);
    va_end(arguments);
    describe(warp, instruction, lanes, &report);
    pthread_mutex_lock(&launch->lock);
    if (!atomic_load(&launch->failed)) {
        launch->report = report;
        atomic_store(&launch->failed, true);
    }
    pthread_mutex_unlock(&launch->lock);
    warp->stop = SOFT_STOP_FAULT;
    return NULL;
}

/* An instruction that reads what was never written does so in every thread and every launch; the
 * first time tells all there is to tell. */
static bool is_first_note(struct soft_launch *launch, const struct soft_instruction *instruction) {
    bool first = true;
    pthread_mutex_lock(&launch->lock);
    for (unsigned i = 0; i < launch->noted_count; i++) first &= launch->noted[i] != instruction;
    if (first && launch->noted_count < SOFT_NOTES_MAX) {
        launch->noted[launch->noted_count++] = instruction;
    } else {
        first = false;
    }
    pthread_mutex_unlock(&launch->lock);
    return first;
}

void soft_launch_note(struct soft_warp *warp, const struct soft_instruction *instruction,
                      const char *kind, uint32_t lanes, uint64_t address, const char *format, ...) {
    if (!is_first_note(warp->cta->launch, instruction)) return;
    struct soft_report report = {.kind = kind, .address = address};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report.detail, sizeof report.detail, format, arguments);
    va_end(arguments);
    describe(warp, instruction, lanes, &report);
    soft_report_tell(&report);
}
