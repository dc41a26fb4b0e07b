/*
 * Distributes CTAs: a thread that has finished one takes the next number of a counter. The CTAs of
 * a cluster are taken together; here, "CTA" also means a cluster.
 *
 * Each thread sets up a CTA once per launch and reuses it for one block after the other: constants,
 * parameters and thread indices stay in its frames, only %ctaid changes.
 */
#include "grid.h"

#include "tollens/cuda_abi.h"
#include "async/async.h"
#include "async/wgmma.h"
#include "cluster.h"
#include "cta.h"
#include "base/dice.h"
#include "base/round_up.h"
#include "base/soft_clock.h"
#include "machine/finding.h"
#include "machine/frame.h"
#include "machine/mbarrier_init.h"
#include "machine/race_events.h"
#include "registers.h"
#include "machine/shared_layout.h"
#include "stall.h"
#include "memory/space.h"
#include "machine/warp.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CTAs kept for later launches, and how many of them a thread takes at once: a batch of BATCH
 * instructions, where setting up a CTA counts as SET_UP instructions. Between batches the thread
 * looks at the clock, and at what other threads write. */
enum { SPARE_MAX = 16, BATCH = 4096, BATCH_CTAS = 32, SET_UP = 64, ALIGNMENT = 64 };

static struct {
    pthread_mutex_t lock;
    struct soft_cta *first;
    unsigned count;
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic int64_t executed_ever;

/* Frees what a warp has allocated since it was laid out. */
static void drop_warp(struct soft_warp *warp) {
    soft_warp_drop(warp);
    soft_async_drop(warp);
    soft_wgmma_drop(warp);
}

static void free_cta(struct soft_cta *cta) {
    if (cta == NULL) return;
    for (uint32_t w = 0; w < cta->warp_room && cta->warps != NULL; w++) {
        drop_warp(&cta->warps[w]);
    }
    soft_layout_drop(cta);
    soft_init_drop(cta);
    free(cta->warps);
    free(cta->slots);
    free(cta);
}

static size_t grid_aligned(size_t bytes) {
    return soft_round_up(bytes, ALIGNMENT);
}

/* The offsets of the parts in a CTA's single block of memory. */
struct layout {
    uint32_t warps;
    size_t frame, slots, shared, shared_shadow, local, local_shadow, whole;
};

static struct layout grid_layout_of(const struct soft_launch *launch) {
    struct layout layout = {0};
    bool tracks = soft_space_tracks();
    uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
    layout.warps = (threads + SOFT_LANES - 1) / SOFT_LANES;
    layout.frame = grid_aligned(launch->code->frame_bytes);
    size_t local = (size_t)launch->code->local_bytes * layout.warps * SOFT_LANES;
    layout.shared = layout.slots + layout.frame * layout.warps;
    layout.shared_shadow = layout.shared + grid_aligned((size_t)launch->shared_bytes + ALIGNMENT);
    layout.local =
        layout.shared_shadow + (tracks ? grid_aligned(launch->shared_bytes / 4 + ALIGNMENT) : 0);
    layout.local_shadow = layout.local + grid_aligned(local);
    layout.whole = layout.local_shadow + (tracks ? grid_aligned(local / 4) : 0) + ALIGNMENT;
    return layout;
}

static struct soft_cta *grid_take_spare(const struct layout *layout) {
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

static void give_one(struct soft_cta *cta) {
    /* No other launch can use the frames of its calls or its race state. */
    soft_race_give_back(cta);
    for (uint32_t w = 0; w < cta->warp_count; w++) drop_warp(&cta->warps[w]);
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

/* With the others of its cluster. */
static void give_spare(struct soft_cta *cta) {
    struct soft_cluster *cluster = cta->cluster;
    for (uint32_t r = 0; cluster != NULL && r < cluster->count; r++) {
        if (cluster->members[r] != cta) give_one(cluster->members[r]);
    }
    cta->cluster = NULL;
    free(cluster);
    give_one(cta);
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

static struct soft_cta *grid_new_cta(const struct layout *layout) {
    struct soft_cta *cta = calloc(1, sizeof *cta);
    if (cta == NULL) return NULL;
    cta->memory_bytes = layout->whole;
    cta->warp_room = layout->warps;
    cta->slots = aligned_alloc(ALIGNMENT, layout->whole);
    cta->warps = aligned_alloc(ALIGNMENT, grid_aligned(layout->warps * sizeof *cta->warps));
    if (cta->slots == NULL || cta->warps == NULL) {
        free_cta(cta);
        return NULL;
    }
    memset(cta->slots, 0, layout->whole);
    memset(cta->warps, 0, layout->warps * sizeof *cta->warps);
    return cta;
}

/* Lays a CTA out for a launch and fills its frames. */
static void prepare_cta(struct soft_launch *launch, struct soft_cta *cta,
                        const struct layout *layout) {
    bool tracks = soft_space_tracks();
    uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
    cta->launch = launch;
    cta->cluster = NULL;
    cta->rank = 0;
    cta->warp_count = layout->warps;
    cta->shared = cta->slots + layout->shared;
    cta->shared_bytes = launch->shared_bytes;
    cta->shared_shadow = tracks ? cta->slots + layout->shared_shadow : NULL;
    size_t local = (size_t)launch->code->local_bytes * SOFT_LANES; /* of a warp */
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        struct soft_warp *warp = &cta->warps[w];
        uint32_t left = threads - w * SOFT_LANES;
        drop_warp(warp);
        memset(warp, 0, sizeof *warp);
        warp->cta = cta;
        warp->index = w;
        warp->threads = left >= SOFT_LANES ? UINT32_MAX : (1u << left) - 1;
        warp->bottom.slots = cta->slots + layout->slots + w * layout->frame;
        warp->bottom.code = launch->code;
        warp->bottom.local = cta->slots + layout->local + w * local;
        if (tracks) {
            warp->bottom.local_shadow = cta->slots + layout->local_shadow + w * local / 4;
        }
        soft_frame_fill(warp, &warp->bottom);
    }
    soft_race_prepare(launch, cta);
}

/* A 64-bit division takes several times longer than a 32-bit one, and most grids have one row. */
static void grid_find_place(const uint32_t grid[3], uint64_t number, uint32_t place[3]) {
    place[1] = place[2] = 0;
    if (number < grid[0]) {
        place[0] = (uint32_t)number;
    } else if (number <= UINT32_MAX) {
        uint32_t row = (uint32_t)number / grid[0];
        place[0] = (uint32_t)number % grid[0];
        place[1] = row % grid[1];
        place[2] = row / grid[1];
    } else {
        place[0] = (uint32_t)(number % grid[0]);
        place[1] = (uint32_t)(number / grid[0] % grid[1]);
        place[2] = (uint32_t)(number / grid[0] / grid[1]);
    }
}

static void begin_cta(struct soft_cta *cta, uint64_t number) {
    const struct soft_launch *launch = cta->launch;
    cta->number = number;
    grid_find_place(launch->grid, number, cta->index);
    if (cta->cluster == NULL) {
        memcpy(cta->index + SOFT_CTA_CLUSTERID, cta->index, 3 * sizeof cta->index[0]);
        memset(cta->index + SOFT_CTA_CLUSTER_CTAID, 0, 4 * sizeof cta->index[0]);
    }
    cta->dice = launch->dice != 0 ? soft_dice(launch->dice, number) : 0;
    cta->warps_alive = cta->warp_count;
    cta->blocked = cta->idle = 0;
    cta->stall_round = 0; /* the first turn begins a later round */
    cta->cluster_begun = cta->cluster_met = cta->stalls = false;
    cta->triggered = cta->waited = false;
    if (cta->barriers_used != 0) memset(cta->barriers, 0, sizeof cta->barriers);
    cta->barriers_used = 0;
    cta->multiplies = false;
    soft_registers_begin(cta);
    soft_race_begin(cta);
    soft_layout_begin(cta);
    soft_init_begin(cta);
    if (cta->shared_shadow != NULL) memset(cta->shared_shadow, 0, cta->shared_bytes / 4 + 1);
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        struct soft_warp *warp = &cta->warps[w];
        struct soft_frame *frame = &warp->bottom;
        soft_frame_fill_cta(warp, frame);
        if (frame->local_shadow != NULL) {
            memset(frame->local_shadow, 0, (size_t)frame->code->local_bytes * SOFT_LANES / 4);
        }
        warp->dice = cta->dice != 0 ? soft_dice(cta->dice, w + 1) : 0;
        if (warp->async != NULL) soft_async_begin(warp);
        if (warp->wgmma != NULL) soft_wgmma_begin(warp);
        soft_warp_begin(warp, launch->code->instructions);
    }
}

/* Begins the CTAs of a cluster, or the CTA that is one. */
static void begin_cluster(struct soft_cta *first, uint64_t number) {
    const struct soft_launch *launch = first->launch;
    const struct soft_cluster *cluster = first->cluster;
    if (cluster == NULL) {
        begin_cta(first, number);
        return;
    }
    const uint32_t *extent = launch->cluster;
    uint32_t along[2] = {launch->grid[0] / extent[0], launch->grid[1] / extent[1]};
    uint32_t at[3] = {(uint32_t)(number % along[0]), (uint32_t)(number / along[0] % along[1]),
                      (uint32_t)(number / along[0] / along[1])};
    for (uint32_t r = 0; r < cluster->count; r++) {
        struct soft_cta *cta = cluster->members[r];
        uint32_t inside[3] = {r % extent[0], r / extent[0] % extent[1], r / extent[0] / extent[1]};
        uint64_t x = (uint64_t)at[0] * extent[0] + inside[0];
        uint64_t y = (uint64_t)at[1] * extent[1] + inside[1];
        uint64_t z = (uint64_t)at[2] * extent[2] + inside[2];
        memcpy(cta->index + SOFT_CTA_CLUSTERID, at, sizeof at);
        memcpy(cta->index + SOFT_CTA_CLUSTER_CTAID, inside, sizeof inside);
        cta->index[SOFT_CTA_CLUSTER_CTARANK] = r;
        begin_cta(cta, (z * launch->grid[1] + y) * launch->grid[0] + x);
    }
}

/* Discards the views if they belong to another launch or if the space has changed. */
static bool prepare_worker(struct soft_launch *launch, struct soft_worker *worker) {
    uint32_t sites = 2 * launch->code->sites;
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
        launch->report = (struct soft_report){.result = result, .kind = soft_report_kind(result)};
        snprintf(launch->report.kernel, sizeof launch->report.kernel, "%s", launch->code->name);
        snprintf(launch->report.detail, sizeof launch->report.detail, "%s", detail);
        atomic_store(&launch->failed, true);
    }
    pthread_mutex_unlock(&launch->lock);
}

/* The CTA to continue: a new one if there is one, else one that was parked. */
static struct soft_cta *take_parked(struct soft_launch *launch) {
    pthread_mutex_lock(&launch->lock);
    struct soft_cta **link = &launch->parked, *cta = NULL;
    while (*link != NULL && (*link)->next != NULL) link = &(*link)->next;
    cta = *link; /* the one that waits longest */
    if (cta != NULL) *link = NULL;
    pthread_mutex_unlock(&launch->lock);
    return cta;
}

static void grid_park(struct soft_launch *launch, struct soft_cta *cta) {
    pthread_mutex_lock(&launch->lock);
    cta->next = launch->parked;
    launch->parked = cta;
    pthread_mutex_unlock(&launch->lock);
}

/* CTAs that a thread has taken and starts one after the other, and results that it has not yet
 * added to the launch. */
struct batch {
    uint64_t next, end, size;
    uint64_t ended;
    int64_t executed;
};

static bool has_next(struct soft_launch *launch, const struct batch *batch) {
    return batch->next < batch->end || atomic_load(&launch->next) < launch->clusters;
}

/* Begins the next CTA in this CTA's memory; false when all have begun. */
static bool begin_next(struct soft_launch *launch, struct soft_cta *cta, struct batch *batch) {
    if (batch->next == batch->end) {
        uint64_t number = atomic_fetch_add(&launch->next, batch->size);
        uint64_t left = number < launch->clusters ? launch->clusters - number : 0;
        batch->next = number;
        batch->end = number + (left < batch->size ? left : batch->size);
    }
    if (batch->next == batch->end || atomic_load(&launch->failed)) return false;
    uint64_t number = batch->next++;
    if (launch->dice != 0) number = soft_dice_place(launch->dice, number, launch->clusters);
    begin_cluster(cta, number);
    return true;
}

/* How many CTAs to take next, given the instructions per CTA: not all that are left, because other
 * threads may take some. */
static uint64_t batch_size(struct soft_launch *launch, int64_t executed) {
    uint64_t begun = atomic_load(&launch->next);
    uint64_t share = begun < launch->clusters ? (launch->clusters - begun) / BATCH_CTAS : 0;
    uint64_t size = executed < 0 ? 1 : BATCH / (SET_UP + (uint64_t)executed);
    if (size > share) size = share;
    return size > BATCH_CTAS ? BATCH_CTAS : size > 0 ? size : 1;
}

static int64_t executed_in(struct soft_cta *cta) {
    int64_t sum = 0;
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        sum += cta->warps[w].executed;
        cta->warps[w].executed = 0;
    }
    return sum;
}

static int64_t executed_by(struct soft_cta *cta) {
    const struct soft_cluster *cluster = cta->cluster;
    if (cluster == NULL) return executed_in(cta);
    int64_t sum = 0;
    for (uint32_t r = 0; r < cluster->count; r++) sum += executed_in(cluster->members[r]);
    return sum;
}

/* Reports the lanes that would have run next: most likely they are the ones that never end. */
static void check_budget(struct soft_launch *launch, struct soft_cta *cta, struct batch *batch) {
    int64_t executed = atomic_fetch_add(&launch->executed, batch->executed);
    batch->executed = 0;
    if (launch->budget == 0 || executed < 0 || (uint64_t)executed <= launch->budget ||
        atomic_load(&launch->failed)) {
        return;
    }
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        struct soft_warp *warp = &cta->warps[w];
        for (int s = 0; s < warp->split_end; s++) {
            if (warp->splits[s].state != SOFT_SPLIT_READY) continue;
            warp->split = &warp->splits[s];
            soft_launch_fail(warp, warp->split->pc, CUDA_ERROR_LAUNCH_TIMEOUT, warp->split->mask, 0,
                             "the launch has used up its budget of %llu instructions",
                             (unsigned long long)launch->budget);
            return;
        }
    }
    fail_without_place(launch, CUDA_ERROR_LAUNCH_TIMEOUT,
                       "the launch has used up its budget of instructions");
}

static struct soft_cta *set_up_one(struct soft_launch *launch, const struct layout *layout) {
    struct soft_cta *cta = grid_take_spare(layout);
    if (cta == NULL) cta = grid_new_cta(layout);
    if (cta != NULL) prepare_cta(launch, cta, layout);
    return cta;
}

/* A CTA with the others of its cluster, whose first it is; NULL: out of memory. */
static struct soft_cta *set_up(struct soft_launch *launch, const struct layout *layout) {
    struct soft_cta *first = set_up_one(launch, layout);
    if (first == NULL || launch->cluster_ctas == 1) return first;
    struct soft_cluster *cluster = calloc(1, sizeof *cluster);
    for (uint32_t r = 0; cluster != NULL && r < launch->cluster_ctas; r++) {
        struct soft_cta *cta = r == 0 ? first : set_up_one(launch, layout);
        if (cta == NULL) break;
        cta->cluster = cluster;
        cta->rank = r;
        cluster->members[cluster->count++] = cta;
    }
    if (cluster != NULL && cluster->count == launch->cluster_ctas) return first;
    give_spare(first);
    return NULL;
}

/* The CTA to run now: a new one if there is one, else one that was parked. */
static struct soft_cta *next_cta(struct soft_launch *launch, struct soft_cta *idle,
                                 const struct layout *layout, struct batch *batch, bool *prepared) {
    if (has_next(launch, batch)) {
        struct soft_cta *cta = idle != NULL ? idle : set_up(launch, layout);
        if (cta == NULL) {
            fail_without_place(launch, CUDA_ERROR_OUT_OF_MEMORY, "out of host memory for a block");
            return NULL;
        }
        if (begin_next(launch, cta, batch)) {
            *prepared = true;
            return cta;
        }
        if (idle == NULL) give_spare(cta);
    }
    return take_parked(launch);
}

static bool grid_work(struct soft_launch *launch, struct soft_worker *worker, uint64_t slice_ns) {
    struct layout layout = grid_layout_of(launch);
    uint64_t end_ns = slice_ns > 0 ? soft_now_ns() + slice_ns : UINT64_MAX;
    struct soft_cta *idle = NULL;
    struct batch batch = {.size = 1};
    if (!prepare_worker(launch, worker)) {
        fail_without_place(launch, CUDA_ERROR_OUT_OF_MEMORY, "out of host memory");
    }
    while (!atomic_load(&launch->failed)) {
        bool used_idle = false;
        struct soft_cta *cta = next_cta(launch, idle, &layout, &batch, &used_idle);
        if (cta == NULL) break;
        if (used_idle) idle = NULL;
        const uint64_t round = soft_stall_begin(launch);
        enum soft_stop stop = cta->cluster == NULL ? soft_cta_run(cta, worker->views)
                                                   : soft_cluster_run(cta->cluster, worker->views);
        int64_t executed = executed_by(cta);
        batch.executed += executed;
        if (launch->workspace != 0) soft_stall_end(launch, cta, stop, round);
        bool batch_is_over = batch.next == batch.end;
        if (batch_is_over) check_budget(launch, cta, &batch);
        if (stop == SOFT_STOP_YIELD && !atomic_load(&launch->failed)) {
            grid_park(launch, cta);
        } else {
            batch.ended += stop == SOFT_STOP_DONE;
            if (idle != NULL) give_spare(idle);
            idle = cta;
        }
        if (!batch_is_over) continue;
        atomic_fetch_add(&launch->ended, batch.ended);
        batch.ended = 0;
        batch.size = batch_size(launch, executed);
        if (slice_ns > 0 && soft_now_ns() >= end_ns) break;
    }
    atomic_fetch_add(&launch->ended, batch.ended);
    atomic_fetch_add(&launch->executed, batch.executed);
    if (idle != NULL) give_spare(idle);
    return atomic_load(&launch->failed) || atomic_load(&launch->ended) == launch->clusters;
}

bool soft_launch_work(struct soft_launch *launch, struct soft_worker *worker, uint64_t slice_ns) {
    struct soft_space_reader reader;
    soft_space_enter(&reader);
    bool over = grid_work(launch, worker, slice_ns);
    soft_space_leave(&reader);
    return over;
}

uint64_t soft_launch_executed(void) {
    return (uint64_t)atomic_load(&executed_ever);
}

void soft_launch_end(struct soft_launch *launch) {
    if (launch->executed > 0) atomic_fetch_add(&executed_ever, launch->executed);
    while (launch->parked != NULL) {
        struct soft_cta *cta = launch->parked;
        launch->parked = cta->next;
        give_spare(cta);
    }
    soft_race_end(launch);
}

void soft_worker_end(struct soft_worker *worker) {
    free(worker->views);
    *worker = (struct soft_worker){0};
}
