/*
 * Creates, fills and caches frames.
 */
#include "frame.h"

#include "taint_list.h"

#include "base/round_up.h"
#include "memory/space.h"

#include <stdlib.h>
#include <string.h>

/* The maximum depth of calls, and the maximum bytes of a warp's frames: more is an endless
 * recursion. A GPU's default stack of 1 KiB per thread ends far earlier. */
enum { DEPTH_MAX = 1 << 14, ALIGNMENT = 64 };
#define STACK_BYTES_MAX ((size_t)256 << 20)

uint32_t soft_special_at(const struct soft_warp *warp, enum ptx_special special, uint32_t lane) {
    const struct soft_launch *launch = warp->cta->launch;
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
    case PTX_SPECIAL_nclusterid_x:
        return launch->grid[0] / launch->cluster[0];
    case PTX_SPECIAL_nclusterid_y:
        return launch->grid[1] / launch->cluster[1];
    case PTX_SPECIAL_nclusterid_z:
        return launch->grid[2] / launch->cluster[2];
    case PTX_SPECIAL_cluster_nctaid_x:
        return launch->cluster[0];
    case PTX_SPECIAL_cluster_nctaid_y:
        return launch->cluster[1];
    case PTX_SPECIAL_cluster_nctaid_z:
        return launch->cluster[2];
    case PTX_SPECIAL_cluster_nctarank:
        return launch->cluster_ctas;
    case PTX_SPECIAL_is_explicit_cluster:
        return launch->explicit_clusters;
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
    case PTX_SPECIAL_aggr_smem_size:
        return launch->shared_bytes;
    case PTX_SPECIAL_dynamic_smem_size:
        return launch->dynamic_shared;
    case PTX_SPECIAL_envreg1:
        return (uint32_t)(launch->workspace >> 32);
    case PTX_SPECIAL_envreg2:
        return (uint32_t)launch->workspace;
    case PTX_SPECIAL_warp_sz:
        return SOFT_LANES;
    default:
        return 0;
    }
}

static void fill_slot(uint8_t *slot, const struct soft_fill *fill, uint64_t value) {
    if (fill->predicate) {
        uint32_t word = value != 0 ? UINT32_MAX : 0;
        memcpy(slot, &word, sizeof word);
    } else if (fill->wide) {
        for (int i = 0; i < SOFT_LANES; i++) memcpy(slot + 8 * i, &value, 8);
    } else {
        uint32_t narrow = (uint32_t)value;
        for (int i = 0; i < SOFT_LANES; i++) memcpy(slot + 4 * i, &narrow, 4);
    }
}

static uint64_t parameter_at(const struct soft_launch *launch, const struct soft_fill *fill) {
    uint64_t value = 0;
    memcpy(&value, launch->parameters + fill->value, fill->bytes);
    unsigned shift = 64 - 8 * fill->bytes;
    return fill->is_signed ? (uint64_t)((int64_t)(value << shift) >> shift) : value;
}

static uint64_t dynamic_shared_at(const struct soft_launch *launch) {
    return (launch->code->shared_bytes + 15u) / 16 * 16;
}

void soft_frame_fill(struct soft_warp *warp, struct soft_frame *frame) {
    const struct soft_launch *launch = warp->cta->launch;
    for (uint32_t f = 0; f < frame->code->fill_count; f++) {
        const struct soft_fill *fill = &frame->code->fills[f];
        uint8_t *slot = frame->slots + fill->slot;
        switch (fill->kind) {
        case SOFT_FILL_CONSTANT:
            fill_slot(slot, fill, fill->value);
            break;
        case SOFT_FILL_PARAMETER:
            fill_slot(slot, fill, parameter_at(launch, fill));
            break;
        case SOFT_FILL_DYNAMIC_SHARED:
            fill_slot(slot, fill, dynamic_shared_at(launch) + fill->value);
            break;
        case SOFT_FILL_SPECIAL:
            if (fill->predicate) {
                fill_slot(slot, fill, soft_special_at(warp, (enum ptx_special)fill->value, 0));
                break;
            }
            for (uint32_t lane = 0; lane < SOFT_LANES; lane++) {
                uint32_t value = soft_special_at(warp, (enum ptx_special)fill->value, lane);
                memcpy(slot + 4 * lane, &value, 4);
            }
            break;
        default:
            break; /* the CTA's, and the call's */
        }
    }
}

void soft_frame_fill_cta(struct soft_warp *warp, struct soft_frame *frame) {
    const struct soft_cta *cta = warp->cta;
    frame->cta = cta->number;
    for (uint32_t f = 0; f < frame->code->cta_fill_count; f++) {
        const struct soft_fill *fill = &frame->code->fills[f];
        fill_slot(frame->slots + fill->slot, fill, cta->index[fill->value]);
    }
}

static void fill_local(struct soft_frame *frame) {
    for (uint32_t f = 0; f < frame->code->fill_count; f++) {
        const struct soft_fill *fill = &frame->code->fills[f];
        if (fill->kind != SOFT_FILL_LOCAL) continue;
        fill_slot(frame->slots + fill->slot, fill, frame->local_base + fill->value);
    }
}

static size_t frame_aligned(size_t bytes) {
    return soft_round_up(bytes, ALIGNMENT);
}

/* One block of memory: the frame, its slots, its local memory and the shadow of the latter. */
static struct soft_frame *new_frame(struct soft_warp *warp, const struct soft_code *code) {
    size_t header = frame_aligned(sizeof(struct soft_frame)),
           slots = frame_aligned(code->frame_bytes);
    size_t local = frame_aligned((size_t)code->local_bytes * SOFT_LANES);
    size_t shadow = soft_space_tracks() ? frame_aligned(local / 4) : 0;
    size_t whole = header + slots + local + shadow + ALIGNMENT;
    if (whole > STACK_BYTES_MAX - warp->frame_bytes) return NULL;
    uint8_t *block = aligned_alloc(ALIGNMENT, whole);
    if (block == NULL) return NULL;
    memset(block, 0, whole);
    struct soft_frame *frame = (struct soft_frame *)(void *)block;
    frame->slots = block + header;
    frame->local = frame->slots + slots;
    frame->local_shadow = shadow > 0 ? frame->local + local : NULL;
    frame->code = code;
    frame->cta = UINT64_MAX;
    frame->older = warp->frames;
    warp->frames = frame;
    warp->frame_bytes += whole;
    soft_frame_fill(warp, frame);
    return frame;
}

static struct soft_frame *find_free(struct soft_warp *warp, const struct soft_code *code) {
    for (struct soft_frame **link = &warp->free_frames; *link != NULL; link = &(*link)->next) {
        struct soft_frame *frame = *link;
        if (frame->code != code) continue;
        *link = frame->next;
        if (frame->local_shadow != NULL) {
            memset(frame->local_shadow, 0, (size_t)code->local_bytes * SOFT_LANES / 4);
        }
        return frame;
    }
    return NULL;
}

struct soft_frame *soft_frame_take(struct soft_warp *warp, struct soft_frame *caller,
                                   const struct soft_code *code, const char **why) {
    if (caller->depth + 1 > DEPTH_MAX) {
        *why = "calls are nested too deeply";
        return NULL;
    }
    struct soft_frame *frame = find_free(warp, code);
    if (frame == NULL) frame = new_frame(warp, code);
    if (frame == NULL) {
        *why = "the registers and local variables of the calls need too much memory";
        return NULL;
    }
    /* The caller's variables and its allocas lie below, with unused gaps. */
    uint64_t base = soft_alloca_base(caller);
    if (caller->code->has_alloca) base += SOFT_ALLOCA_MAX + SOFT_LOCAL_GAP;
    bool moved = frame->local_base != base || frame->cta == UINT64_MAX;
    frame->caller = caller;
    frame->depth = caller->depth + 1;
    frame->users = 1;
    frame->local_base = base;
    if (moved) fill_local(frame);
    if (frame->cta != warp->cta->number) soft_frame_fill_cta(warp, frame);
    caller->users++;
    return frame;
}

static void end_allocas(struct soft_frame *frame) {
    if (frame->allocas == NULL) return;
    for (int lane = 0; lane < SOFT_LANES; lane++) free(frame->allocas->bytes[lane]);
    free(frame->allocas);
    frame->allocas = NULL;
}

void soft_frame_release(struct soft_warp *warp, struct soft_frame *frame) {
    while (--frame->users == 0 && frame->caller != NULL) {
        struct soft_frame *caller = frame->caller;
        end_allocas(frame);
        soft_taint_forget(warp, frame);
        frame->next = warp->free_frames;
        warp->free_frames = frame;
        frame = caller;
    }
    if (frame->users == 0) end_allocas(frame);
}

void soft_warp_drop(struct soft_warp *warp) {
    while (warp->frames != NULL) {
        struct soft_frame *frame = warp->frames;
        warp->frames = frame->older;
        end_allocas(frame);
        free(frame);
    }
    end_allocas(&warp->bottom);
    soft_taint_drop(warp);
    while (warp->more_joins != NULL) {
        struct soft_joins *joins = warp->more_joins;
        warp->more_joins = joins->next;
        free(joins);
    }
    warp->free_frames = NULL;
    warp->frame_bytes = 0;
}

struct soft_alloca *soft_frame_allocas(struct soft_frame *frame) {
    if (frame->allocas == NULL) frame->allocas = calloc(1, sizeof *frame->allocas);
    return frame->allocas;
}

bool soft_alloca_grow(struct soft_alloca *allocas, uint32_t lane, uint64_t top) {
    if (top > SOFT_ALLOCA_MAX) return false;
    if (top > allocas->room[lane]) {
        size_t room = 2 * (size_t)top < SOFT_ALLOCA_MAX ? 2 * (size_t)top : SOFT_ALLOCA_MAX;
        uint8_t *more = realloc(allocas->bytes[lane], room);
        if (more == NULL) return false;
        memset(more + allocas->room[lane], 0, room - allocas->room[lane]);
        allocas->bytes[lane] = more;
        allocas->room[lane] = (uint32_t)room;
    }
    allocas->top[lane] = (uint32_t)top;
    return true;
}
