/*
 * Pending asynchronous copies. Source: PTX ISA 9.0, section 9.7.9.25 (Data movement and conversion
 * instructions: asynchronous copy).
 */
#include "async.h"

#include "tollens/cuda_abi.h"
#include "machine/cluster_member.h"
#include "machine/finding.h"
#include "mbarrier.h"
#include "machine/race_events.h"

#include <stdlib.h>
#include <string.h>

/* Once a thread that never waits has this many pending copies, the oldest are executed. */
enum { COPIES_MAX = 4096 };

#define EACH_LANE(lane, mask)                                                                      \
    for (uint32_t lane##_left = (mask), lane = 0;                                                  \
         lane##_left != 0 && (lane = (uint32_t)__builtin_ctz(lane##_left), true);                  \
         lane##_left &= lane##_left - 1)

/* NULL: the launch has failed. */
static struct soft_async *async_of(struct soft_warp *warp, const struct soft_instruction *in) {
    if (warp->async != NULL) return warp->async;
    struct soft_async *async = calloc(1, sizeof *async);
    if (async == NULL) {
        soft_launch_fail(warp, in, CUDA_ERROR_OUT_OF_MEMORY, warp->mask, 0,
                         "out of host memory for asynchronous copies");
        return NULL;
    }
    for (int i = 0; i < SOFT_COPIES_LISTS; i++) async->lists[i].end = &async->lists[i].first;
    warp->async = async;
    return async;
}

struct soft_async_op *soft_async_op_new(struct soft_warp *warp, const struct soft_instruction *in) {
    struct soft_async *async = async_of(warp, in);
    if (async == NULL) return NULL;
    struct soft_async_op *copy = async->free;
    if (copy != NULL) {
        async->free = copy->next;
    } else {
        copy = malloc(sizeof *copy);
    }
    if (copy == NULL) {
        soft_launch_fail(warp, in, CUDA_ERROR_OUT_OF_MEMORY, warp->mask, 0,
                         "out of host memory for an asynchronous copy");
        return NULL;
    }
    copy->next = NULL;
    copy->in = in;
    copy->code = warp->split->frame->code;
    copy->mask = 0;
    copy->serial = async->serial++;
    copy->waited = warp->waited;
    copy->looked_for = copy->holds = false;
    return copy;
}

static bool find_source(struct soft_warp *warp, const struct soft_async_op *copy, uint32_t lane,
                        struct soft_place *place) {
    /* If nothing is read, any address is valid. */
    if (copy->bytes[lane] == 0 || copy->holds) return true;
    if (!soft_access_range(warp, copy->in, lane, copy->source[lane], copy->bytes[lane],
                           copy->alignment, copy->from, SOFT_ACCESS_READ, place)) {
        return false;
    }
    if (place->view.high != 0) warp->views[copy->in->site] = place->view;
    return true;
}

static unsigned async_written(const struct soft_async_op *copy, uint32_t lane) {
    return copy->width > 0 ? copy->width : copy->bytes[lane];
}

static bool find_destination(struct soft_warp *warp, const struct soft_async_op *copy,
                             uint32_t lane, struct soft_place *place) {
    unsigned bytes = async_written(copy, lane);
    if (bytes == 0) return true;
    if (!soft_access_range(warp, copy->in, lane, copy->destination[lane], bytes, copy->alignment,
                           copy->to, SOFT_ACCESS_WRITE, place)) {
        return false;
    }
    if (place->view.high != 0) warp->views[copy->in->site] = place->view;
    return true;
}

bool soft_async_op_check(struct soft_warp *warp, struct soft_async_op *copy, uint32_t lane) {
    struct soft_place place;
    if (find_source(warp, copy, lane, &place) && find_destination(warp, copy, lane, &place)) {
        return true;
    }
    free(copy);
    return false;
}

static bool carry_out_lane(struct soft_warp *warp, const struct soft_async_op *copy,
                           uint32_t lane) {
    if (copy->in->op == SOFT_OP_cp_tensor) return soft_tensor_carry_out(warp, copy, lane);
    struct soft_place from = {0}, to = {0};
    unsigned bytes = copy->bytes[lane], whole = async_written(copy, lane);
    uint64_t held[2] = {copy->source[lane], copy->high[lane]};
    if (!find_source(warp, copy, lane, &from) || !find_destination(warp, copy, lane, &to)) {
        return false;
    }
    if (copy->holds) {
        from.host = (uint8_t *)held;
    } else if (bytes > 0) {
        soft_access_check_read(warp, copy->in, lane, copy->source[lane], bytes, &from);
    }
    bool reduces = (copy->in->op == SOFT_OP_cp_bulk || copy->in->op == SOFT_OP_st_async) &&
                   (copy->in->mode & SOFT_BULK_REDUCE) != 0;
    if (reduces) soft_access_check_read(warp, copy->in, lane, copy->destination[lane], bytes, &to);
    soft_shadow_mark(to.shadow, to.offset, whole);
    if (reduces) {
        soft_reduce(warp, copy, copy->destination[lane], from.host, bytes);
    } else if (bytes > 0) {
        memmove(to.host, from.host, bytes);
    }
    if (whole > bytes) memset(to.host + bytes, 0, whole - bytes);
    return true;
}

/* A report about a copy names the instruction that started it, which may be in another function
 * than the wait: until this is undone, the warp's split seems to be there. */
struct pretence {
    struct soft_frame frame;
    struct soft_split split, *current;
    bool waited;
};

static void async_pretend(struct soft_warp *warp, const struct soft_async_op *copy,
                          struct pretence *pretence) {
    pretence->frame = (struct soft_frame){.code = copy->code};
    pretence->split = (struct soft_split){.mask = copy->mask, .frame = &pretence->frame};
    pretence->current = warp->split;
    warp->split = &pretence->split;
    pretence->waited = warp->waited;
    warp->waited = copy->waited;
}

static void end_pretence(struct soft_warp *warp, const struct pretence *pretence) {
    warp->split = pretence->current;
    warp->waited = pretence->waited;
}

/* Executes the copies of some lanes. false: one is invalid, and the launch has failed. */
static bool carry_out(struct soft_warp *warp, struct soft_async_op *copy, uint32_t lanes) {
    struct pretence pretence;
    bool ok = true;
    async_pretend(warp, copy, &pretence);
    soft_race_copy(warp, copy, lanes, false);
    for (uint32_t left = lanes; left != 0 && ok; left &= left - 1) {
        ok = carry_out_lane(warp, copy, (uint32_t)__builtin_ctz(left));
    }
    end_pretence(warp, &pretence);
    copy->mask &= ~lanes;
    return ok;
}

static void async_release(struct soft_async *async, struct soft_copies *list,
                          struct soft_async_op **link) {
    struct soft_async_op *copy = *link;
    *link = copy->next;
    if (list->end == &copy->next) list->end = link;
    list->count--;
    copy->next = async->free;
    async->free = copy;
}

/* Executes what is older than an arrival, for some lanes. */
static bool finish_older(struct soft_warp *warp, struct soft_async_op *arrival, uint32_t lanes) {
    struct soft_async *async = warp->async;
    struct soft_copies *list = &async->lists[SOFT_COPIES_ASYNC];
    for (struct soft_async_op **link = &list->first; *link != NULL;) {
        struct soft_async_op *copy = *link;
        if (copy->serial > arrival->serial) break;
        if (!carry_out(warp, copy, copy->mask & lanes)) return false;
        if (copy->mask == 0) {
            async_release(async, list, link);
        } else {
            link = &copy->next;
        }
    }
    arrival->mask &= ~lanes;
    return true;
}

/* Signals an mbarrier on behalf of some lanes. */
static bool signal_arrival(struct soft_warp *warp, const struct soft_async_op *copy,
                           uint32_t lanes) {
    bool arrives = copy->in->op == SOFT_OP_cp_async_arrive, ok = true;
    struct pretence pretence;
    uint64_t before;
    async_pretend(warp, copy, &pretence);
    for (uint32_t left = lanes; left != 0 && ok; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        struct soft_mbarrier_change change = {.arrivals = arrives,
                                              .bytes = arrives ? 0 : -(int64_t)copy->bytes[lane]};
        soft_race_release(warp, lane, copy->mbarrier[lane], true);
        if (copy->holds) soft_race_hand_on(warp, copy->mbarrier[lane], copy->known[lane]);
        ok = soft_mbarrier_apply(warp, copy->in, lane, copy->mbarrier[lane], &change, &before);
    }
    soft_race_go_on(warp->cta);
    end_pretence(warp, &pretence);
    return ok;
}

/* Executes an entry of a list for some lanes. */
static bool async_perform(struct soft_warp *warp, struct soft_async_op *copy, uint32_t lanes,
                          unsigned which) {
    bool arrives = copy->in->op == SOFT_OP_cp_async_arrive;
    bool ok = arrives ? finish_older(warp, copy, lanes) : carry_out(warp, copy, lanes);
    return ok && (which != SOFT_COPIES_MBARRIER || signal_arrival(warp, copy, lanes));
}

bool soft_async_op_begin(struct soft_warp *warp, struct soft_async_op *copy, unsigned which) {
    struct soft_copies *list = &warp->async->lists[which];
    soft_race_copy(warp, copy, copy->mask, true);
    *list->end = copy;
    list->end = &copy->next;
    if (++list->count <= COPIES_MAX) return true;
    bool ok = async_perform(warp, list->first, list->first->mask, which);
    async_release(warp->async, list, &list->first);
    return ok;
}

/* The number of bytes that a lane's copy reads. false: more than it writes, and the launch has
 * failed. */
static bool async_read_size(struct soft_warp *warp, const struct soft_instruction *in,
                            uint32_t lane, uint32_t *bytes) {
    *bytes = in->mode & SOFT_ASYNC_BYTES;
    if ((in->mode & SOFT_ASYNC_IGNORE) != 0) {
        bool ignored = (*SLOT(uint32_t, in->c) >> lane & 1) != 0;
        if (ignored != ((in->mode & SOFT_ASYNC_NEGATED) != 0)) *bytes = 0;
    }
    if ((in->mode & SOFT_ASYNC_SIZED) == 0) return true;
    uint32_t wanted = SLOT(uint32_t, in->c)[lane];
    if (wanted > *bytes) {
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, 0,
                         "a copy of %u bytes cannot read %u bytes", *bytes, wanted);
        return false;
    }
    *bytes = wanted;
    return true;
}

const struct soft_instruction *soft_async_copy(struct soft_warp *warp,
                                               const struct soft_instruction *in) {
    int32_t offset = (int32_t)warp->split->frame->code->operands[in->more];
    for (uint32_t left = warp->mask; left != 0;) {
        struct soft_async_op *copy = soft_async_op_new(warp, in);
        if (copy == NULL) return NULL;
        const uint64_t *committed = warp->async->lists[SOFT_COPIES_ASYNC].committed;
        copy->group = committed[__builtin_ctz(left)];
        copy->from = SOFT_SPACE_GLOBAL;
        copy->to = SOFT_SPACE_SHARED;
        copy->alignment = copy->width = in->mode & SOFT_ASYNC_BYTES;
        EACH_LANE(lane, left) {
            if (committed[lane] != copy->group) continue;
            copy->mask |= 1u << lane;
            copy->destination[lane] =
                (uint32_t)(SLOT(uint32_t, in->a)[lane] + (uint64_t)in->u.immediate);
            copy->source[lane] = SLOT(uint64_t, in->b)[lane] + (uint64_t)(int64_t)offset;
            if (!async_read_size(warp, in, lane, &copy->bytes[lane])) {
                free(copy);
                return NULL;
            }
            if (!soft_async_op_check(warp, copy, lane)) return NULL;
        }
        left &= ~copy->mask;
        if (!soft_async_op_begin(warp, copy, SOFT_COPIES_ASYNC)) return NULL;
    }
    return in + 1;
}

const struct soft_instruction *
soft_async_commit(struct soft_warp *warp, const struct soft_instruction *in, unsigned which) {
    struct soft_async *async = async_of(warp, in);
    if (async == NULL) return NULL;
    EACH_LANE(lane, warp->mask) async->lists[which].committed[lane]++;
    return in + 1;
}

const struct soft_instruction *soft_async_wait(struct soft_warp *warp,
                                               const struct soft_instruction *in, unsigned which) {
    struct soft_async *async = warp->async;
    if (async == NULL) return in + 1;
    struct soft_copies *list = &async->lists[which];
    for (struct soft_async_op **link = &list->first; *link != NULL;) {
        struct soft_async_op *copy = *link;
        uint32_t due = 0;
        EACH_LANE(lane, copy->mask & warp->mask) {
            due |= (uint32_t)(copy->group + in->mode < list->committed[lane]) << lane;
        }
        if (!carry_out(warp, copy, due)) return NULL;
        if (copy->mask == 0) {
            async_release(async, list, link);
        } else {
            link = &copy->next;
        }
    }
    return in + 1;
}

const struct soft_instruction *soft_async_arrival(struct soft_warp *warp,
                                                  const struct soft_instruction *in) {
    struct soft_async_op *arrival = soft_async_op_new(warp, in);
    struct soft_mbarrier_change change = {.more = (in->mode & SOFT_ASYNC_NOINC) == 0};
    uint64_t before;
    if (arrival == NULL) return NULL;
    EACH_LANE(lane, warp->mask) {
        uint32_t *offset = &arrival->mbarrier[lane];
        uint64_t address = soft_access_address(warp, in, lane);
        if (!soft_mbarrier_find(warp, in, lane, address, soft_access_space(in->mode), offset) ||
            (change.more > 0 && !soft_mbarrier_apply(warp, in, lane, *offset, &change, &before))) {
            free(arrival);
            return NULL;
        }
    }
    arrival->mask = warp->mask;
    return soft_async_op_begin(warp, arrival, SOFT_COPIES_MBARRIER) ? in + 1 : NULL;
}

/* The lanes of an entry that use the mbarrier at an offset. */
static uint32_t lanes_at(const struct soft_async_op *copy, uint32_t offset) {
    uint32_t lanes = 0;
    EACH_LANE(lane, copy->mask) lanes |= (uint32_t)(copy->mbarrier[lane] == offset) << lane;
    return lanes;
}

/* Executes what one CTA's threads have started and some thread has tested for. */
static bool arrive_from(struct soft_warp *tester, struct soft_cta *cta, uint32_t offset) {
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        struct soft_warp *warp = &cta->warps[w];
        if (warp->async == NULL) continue;
        struct soft_copies *list = &warp->async->lists[SOFT_COPIES_MBARRIER];
        warp->views = tester->views;
        for (struct soft_async_op **link = &list->first; *link != NULL;) {
            struct soft_async_op *copy = *link;
            uint32_t lanes = copy->looked_for ? lanes_at(copy, offset) : 0;
            if (lanes != 0 && !async_perform(warp, copy, lanes, SOFT_COPIES_MBARRIER)) {
                tester->stop = SOFT_STOP_FAULT;
                return false;
            }
            if (copy->mask == 0) {
                async_release(warp->async, list, link);
            } else {
                link = &copy->next;
            }
        }
    }
    return true;
}

bool soft_async_arrive(struct soft_warp *tester, uint32_t offset) {
    for (uint32_t r = 0; r < soft_cluster_count(tester->cta); r++) {
        struct soft_cta *cta = soft_cluster_member(tester->cta, r);
        if (!arrive_from(tester, cta, soft_cluster_name(cta, tester->cta, offset))) return false;
    }
    return true;
}

static void look_in(struct soft_cta *cta, uint32_t offset) {
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        const struct soft_async *async = cta->warps[w].async;
        if (async == NULL) continue;
        struct soft_async_op *copy = async->lists[SOFT_COPIES_MBARRIER].first;
        for (; copy != NULL; copy = copy->next) copy->looked_for |= lanes_at(copy, offset) != 0;
    }
}

void soft_async_look_for(struct soft_cta *home, uint32_t offset) {
    for (uint32_t r = 0; r < soft_cluster_count(home); r++) {
        struct soft_cta *cta = soft_cluster_member(home, r);
        look_in(cta, soft_cluster_name(cta, home, offset));
    }
}

/* The lanes of a copy whose destination is the shared memory of a CTA. */
static uint32_t lanes_into(struct soft_cta *from, const struct soft_async_op *copy,
                           const struct soft_cta *into) {
    uint32_t lanes = 0, offset = 0;
    if (copy->in->op == SOFT_OP_cp_async_arrive || copy->to != SOFT_SPACE_CLUSTER) return 0;
    EACH_LANE(lane, copy->mask) {
        bool meant = soft_cluster_find(from, (uint32_t)copy->destination[lane], &offset) == into;
        lanes |= (uint32_t)meant << lane;
    }
    return lanes;
}

static void tell_lost(struct soft_warp *warp, struct soft_cta *into) {
    const struct soft_copies *list = &warp->async->lists[SOFT_COPIES_MBARRIER];
    for (const struct soft_async_op *copy = list->first; copy != NULL; copy = copy->next) {
        uint32_t lanes = lanes_into(warp->cta, copy, into);
        if (lanes == 0) continue;
        struct pretence pretence;
        async_pretend(warp, copy, &pretence);
        soft_launch_note(
            warp, copy->in, "copy not waited for", lanes, 0,
            "block (%u,%u,%u), block %u of the cluster, exits before the copy into its "
            "shared memory is complete",
            into->index[0], into->index[1], into->index[2], into->rank);
        end_pretence(warp, &pretence);
    }
}

void soft_async_lost(struct soft_cta *into) {
    for (uint32_t r = 0; r < soft_cluster_count(into); r++) {
        struct soft_cta *from = soft_cluster_member(into, r);
        for (uint32_t w = 0; w < from->warp_count && from != into; w++) {
            if (from->warps[w].async != NULL) tell_lost(&from->warps[w], into);
        }
    }
}

void soft_async_end(struct soft_warp *warp) {
    struct soft_async *async = warp->async;
    struct soft_async_op *copy = async != NULL ? async->lists[SOFT_COPIES_BULK].first : NULL;
    if (copy == NULL) return;
    struct pretence pretence;
    async_pretend(warp, copy, &pretence);
    soft_launch_note(
        warp, copy->in, "copy not waited for", copy->mask, 0,
        "lanes 0x%08x of warp %u exit before the copy has read shared memory; nothing is copied",
        copy->mask, warp->index);
    end_pretence(warp, &pretence);
}

void soft_async_begin(struct soft_warp *warp) {
    struct soft_async *async = warp->async;
    if (async == NULL) return;
    for (int i = 0; i < SOFT_COPIES_LISTS; i++) {
        struct soft_copies *list = &async->lists[i];
        while (list->first != NULL) async_release(async, list, &list->first);
        memset(list->committed, 0, sizeof list->committed);
    }
}

void soft_async_drop(struct soft_warp *warp) {
    struct soft_async *async = warp->async;
    if (async == NULL) return;
    soft_async_begin(warp);
    while (async->free != NULL) {
        struct soft_async_op *copy = async->free;
        async->free = copy->next;
        free(copy);
    }
    free(async);
    warp->async = NULL;
}
