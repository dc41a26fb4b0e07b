/*
 * Accesses in every state space and of every width, one lane at a time.
 */
#include "access.h"

#include "tollens/cuda_abi.h"
#include "base/options.h"
#include "cluster_member.h"
#include "finding.h"
#include "frame.h"
#include "prior.h"
#include "taint.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

uint64_t soft_access_address(const struct soft_warp *warp, const struct soft_instruction *in,
                             uint32_t lane) {
    uint64_t base = in->mode & SOFT_ACCESS_WIDE_ADDRESS ? SLOT(uint64_t, in->a)[lane]
                                                        : SLOT(uint32_t, in->a)[lane];
    uint64_t address = base + (uint64_t)in->u.immediate;
    return in->mode & SOFT_ACCESS_WIDE_ADDRESS ? address : (uint32_t)address;
}

/* The longest vector: .v8.b32 or .v4.b64. */
enum { VECTOR_BYTES_MAX = 32 };

static enum soft_access_kind access_kind_of(const struct soft_instruction *in) {
    return in->mode & SOFT_ACCESS_STORE ? SOFT_ACCESS_WRITE : SOFT_ACCESS_READ;
}

static const char *access_what(enum soft_access_kind kind) {
    return kind == SOFT_ACCESS_WRITE ? "a store" : "a load";
}

/* The windows of generic addressing turn an address into one of another space. */
enum soft_access_space soft_access_resolve(uint64_t *address) {
    const struct soft_windows *windows = soft_space_windows();
    uint64_t offset = *address - windows->shared;
    switch (offset >> SOFT_WINDOW_SHIFT) {
    case 0:
        *address = offset;
        return SOFT_SPACE_SHARED;
    case 1:
        *address -= windows->local;
        return SOFT_SPACE_LOCAL;
    case 2:
        *address -= windows->parameter;
        return SOFT_SPACE_PARAM;
    default:
        return SOFT_SPACE_GLOBAL;
    }
}

static bool access_outside(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                           uint64_t address, unsigned bytes, enum soft_access_kind kind,
                           const char *space, uint64_t size) {
    soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lane, address,
                     "%s of %u bytes at offset 0x%llx is outside the %llu bytes of %s memory",
                     access_what(kind), bytes, (unsigned long long)address,
                     (unsigned long long)size, space);
    return false;
}

/* Whether an instruction for global memory has a generic address of another space, which is a
 * separate error. */
static bool is_of_window(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                         uint64_t address, enum soft_access_kind kind) {
    uint64_t offset = address;
    enum soft_access_space space = soft_access_resolve(&offset);
    if (space == SOFT_SPACE_GLOBAL) return false;
    soft_launch_fail(warp, in, CUDA_ERROR_INVALID_ADDRESS_SPACE, 1u << lane, address,
                     "%s with .global at 0x%llx, which is offset 0x%llx of %s memory",
                     access_what(kind), (unsigned long long)address, (unsigned long long)offset,
                     space == SOFT_SPACE_SHARED  ? "shared"
                     : space == SOFT_SPACE_LOCAL ? "local"
                                                 : "parameter");
    return true;
}

void soft_access_note(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                      uint64_t address, unsigned bytes, enum soft_touch touch,
                      struct soft_place *place) {
    const struct soft_launch *launch = warp->cta->launch;
    const bool is_compared = soft_prior_watches(launch);
    if (launch->touched == NULL && !is_compared) return;
    if (launch->touched != NULL) {
        soft_touched_add(launch->touched, touch, place->view.low, address, bytes);
        if (launch->is_told && in->op == SOFT_OP_atom) { /* for an order its write says enough */
            soft_touched_add(launch->touched, SOFT_TOUCH_STRONG_READ, place->view.low, address,
                             bytes);
        }
    }
    if (is_compared) {
        soft_prior_access(warp, in, lane, place->view.low, address, bytes, touch);
    }
    place->view.low = place->view.high;
}

/* An access of global memory with a scope. */
static enum soft_touch touch_of(const struct soft_instruction *in, enum soft_access_kind kind) {
    const bool strong = (in->mode & SOFT_ACCESS_SCOPE) != 0;
    if (kind == SOFT_ACCESS_WRITE) return strong ? SOFT_TOUCH_STRONG_WRITE : SOFT_TOUCH_WRITE;
    return strong ? SOFT_TOUCH_STRONG_READ : SOFT_TOUCH_READ;
}

/* Shared memory: the block's own, or that of another block of its cluster. */
static bool find_shared(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                        uint64_t address, unsigned bytes, enum soft_access_space space,
                        enum soft_access_kind kind, struct soft_place *place) {
    struct soft_cta *cta = warp->cta;
    uint32_t offset = (uint32_t)address, size = cta->shared_bytes;
    const struct soft_cta *other = soft_cluster_find(cta, offset, &offset);
    if (other != NULL && other != cta && (bytes > size || offset > size - bytes)) {
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lane, address,
                         "%s of %u bytes at offset 0x%x is outside the %u bytes of shared memory "
                         "of block %u of the cluster",
                         access_what(kind), bytes, offset, size, other->rank);
        return false;
    }
    if (other == NULL || bytes > size || offset > size - bytes) {
        return access_outside(warp, in, lane, offset, bytes, kind, "shared", size);
    }
    if (other != cta && space == SOFT_SPACE_SHARED) {
        soft_launch_fail(
            warp, in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lane, address,
            "%s with .shared::cta at 0x%llx, which is offset 0x%x of the shared memory "
            "of block %u of the cluster; .shared::cluster is for that",
            access_what(kind), (unsigned long long)address, offset, other->rank);
        return false;
    }
    if (other->warps_alive == 0) {
        soft_launch_fail(warp, in, CUDA_ERROR_LAUNCH_FAILED, 1u << lane, address,
                         "%s of %u bytes at offset 0x%x of the shared memory of block (%u,%u,%u), "
                         "block %u of the cluster, which has exited",
                         access_what(kind), bytes, offset, other->index[0], other->index[1],
                         other->index[2], other->rank);
        return false;
    }
    if (!cta->cluster_met && other != cta && soft_options()->check_sync) {
        soft_launch_note(
            warp, in, "block may not have begun", 1u << lane, address,
            "%s of %u bytes at offset 0x%x of the shared memory of block %u of the "
            "cluster, before any thread of this block has passed the cluster's barrier",
            access_what(kind), bytes, offset, other->rank);
    }
    place->offset = offset;
    place->host = other->shared + offset;
    place->shadow = other->shared_shadow;
    return true;
}

/* A GPU carries the store out, and constant loads may or may not see it. */
static void access_tell_constant(struct soft_warp *warp, const struct soft_instruction *in,
                                 uint32_t lane, uint64_t address, unsigned bytes) {
    struct soft_allocation found;
    if (!soft_space_find(address, &found)) return;
    soft_launch_note(warp, in, "store to constant memory", 1u << lane, address,
                     "a store of %u bytes at 0x%llx, %llu bytes into the constant variable %s, "
                     "which kernels may only read",
                     bytes, (unsigned long long)address,
                     (unsigned long long)(address - found.address), found.name);
}

static bool find_global(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                        uint64_t address, unsigned bytes, enum soft_access_kind kind,
                        struct soft_place *place) {
    const struct soft_launch *launch = warp->cta->launch;
    const struct soft_reach *reach = launch->reach;
    struct soft_view *last = &warp->views[in->site];
    const bool is_noted = launch->touched != NULL || soft_prior_watches(launch);
    if (is_noted) last += launch->code->sites;
    uint64_t span = last->high - last->low;
    if (bytes <= span && address - last->low <= span - bytes) {
        place->view = *last;
    } else if (is_of_window(warp, in, lane, address, kind)) {
        return false;
    } else if (!soft_space_view(address, bytes, reach, kind, &place->view)) {
        char nearest[240];
        soft_space_describe(address, reach, kind, nearest, sizeof nearest);
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lane, address,
                         "%s of %u bytes at 0x%llx: %s", access_what(kind), bytes,
                         (unsigned long long)address, nearest);
        return false;
    }
    if (kind == SOFT_ACCESS_WRITE && place->view.constant) {
        access_tell_constant(warp, in, lane, address, bytes);
    }
    place->offset = address - place->view.low;
    place->host = place->view.host + place->offset;
    place->shadow = place->view.shadow;
    if (!is_noted) return true;
    *last = place->view;
    soft_access_note(warp, in, lane, address, bytes, touch_of(in, kind), place);
    return true;
}

/* A thread's local memory is that of all its active calls, with their alloca. */
static bool find_local(const struct soft_frame *frame, uint32_t lane, uint64_t address,
                       unsigned bytes, struct soft_place *place) {
    for (; frame != NULL; frame = frame->caller) {
        uint64_t size = frame->code->local_bytes, offset = address - frame->local_base;
        if (bytes <= size && offset <= size - bytes) {
            place->offset = lane * size + offset;
            place->host = frame->local + place->offset;
            place->shadow = frame->local_shadow;
            return true;
        }
        if (frame->allocas == NULL) continue;
        size = frame->allocas->top[lane];
        offset = address - soft_alloca_base(frame);
        if (bytes <= size && offset <= size - bytes) {
            place->offset = offset;
            place->host = frame->allocas->bytes[lane] + offset;
            return true;
        }
    }
    return false;
}

bool soft_access_range(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                       uint64_t address, unsigned bytes, unsigned alignment,
                       enum soft_access_space space, enum soft_access_kind kind,
                       struct soft_place *place) {
    struct soft_cta *cta = warp->cta;
    *place = (struct soft_place){0};
    if ((address & (alignment - 1)) != 0) {
        soft_launch_fail(warp, in, CUDA_ERROR_MISALIGNED_ADDRESS, 1u << lane, address,
                         "%s of %u bytes at 0x%llx, which is not a multiple of %u",
                         access_what(kind), bytes, (unsigned long long)address, alignment);
        return false;
    }
    if (space == SOFT_SPACE_GENERIC) {
        space = soft_access_resolve(&address);
        if (space == SOFT_SPACE_SHARED) space = SOFT_SPACE_CLUSTER;
    }
    uint64_t size = 0;
    switch (space) {
    case SOFT_SPACE_SHARED:
    case SOFT_SPACE_CLUSTER:
        size = cta->shared_bytes;
        if (bytes > size || address > size - bytes || cta->warps_alive == 0) {
            return find_shared(warp, in, lane, address, bytes, space, kind, place);
        }
        place->offset = address;
        place->host = cta->shared + address;
        place->shadow = cta->shared_shadow;
        return true;
    case SOFT_SPACE_LOCAL:
        if (find_local(warp->split->frame, lane, address, bytes, place)) return true;
        return access_outside(warp, in, lane, address, bytes, kind, "local",
                              warp->split->frame->code->local_bytes);
    case SOFT_SPACE_PARAM:
        size = cta->launch->code->parameter_bytes;
        if (bytes > size || address > size - bytes) {
            return access_outside(warp, in, lane, address, bytes, kind, "parameter", size);
        }
        place->offset = address;
        place->host = cta->launch->parameters + address;
        return true;
    default:
        return find_global(warp, in, lane, address, bytes, kind, place);
    }
}

bool soft_access_find(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                      uint64_t address, unsigned bytes, enum soft_access_space space,
                      struct soft_place *place) {
    return soft_access_range(warp, in, lane, address, bytes, bytes, space, access_kind_of(in),
                             place);
}

void soft_access_swap_128(uint8_t *host, const uint64_t expected[2], const uint64_t wanted[2],
                          uint64_t old[2]) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    memcpy(old, host, 16);
    if (expected == NULL || memcmp(old, expected, 16) == 0) memcpy(host, wanted, 16);
    pthread_mutex_unlock(&lock);
}

/* The slot of a component. */
static uint32_t access_component(const struct soft_warp *warp, const struct soft_instruction *in,
                                 unsigned index) {
    if (soft_access_count(in->mode) == 1) return in->d;
    return warp->split->frame->code->operands[in->more + index];
}

/* A component of at most 8 bytes, extended. */
static uint64_t value_at(const struct soft_instruction *in, unsigned bytes, const uint8_t *host) {
    uint64_t value = 0;
    memcpy(&value, host, bytes);
    if (in->mode & SOFT_ACCESS_SIGNED) {
        unsigned shift = (64 - 8 * bytes) % 64;
        value = (uint64_t)((int64_t)(value << shift) >> shift);
    }
    return value;
}

static void put_value(struct soft_warp *warp, const struct soft_instruction *in, uint32_t slot,
                      uint32_t lane, uint64_t value) {
    if (in->mode & SOFT_ACCESS_WIDE_DATA) {
        SLOT(uint64_t, slot)[lane] = value;
    } else {
        uint32_t narrow = (uint32_t)value;
        SLOT(uint32_t, slot)[lane] = in->mode & SOFT_ACCESS_SHORT_DATA ? narrow & 0xffff : narrow;
    }
}

/* Whether all active lanes read one component of at most 8 bytes at one address. Most parameter
 * reads do this: code with a struct of parameters has its address in a register. */
static bool is_one_for_all(const struct soft_warp *warp, const struct soft_instruction *in) {
    if (soft_access_count(in->mode) != 1 || soft_access_bytes(in->mode) > 8) return false;
    const uint64_t first = soft_access_address(warp, in, (uint32_t)__builtin_ctz(warp->mask));
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        if (soft_access_address(warp, in, (uint32_t)__builtin_ctz(left)) != first) return false;
    }
    return true;
}

static const struct soft_instruction *load_parameter(struct soft_warp *warp,
                                                     const struct soft_instruction *in) {
    const uint32_t lane = (uint32_t)__builtin_ctz(warp->mask);
    const unsigned bytes = soft_access_bytes(in->mode);
    const uint64_t address = soft_access_address(warp, in, lane);
    struct soft_place place;
    if (!soft_access_find(warp, in, lane, address, bytes, SOFT_SPACE_PARAM, &place)) return NULL;
    const uint64_t value = value_at(in, bytes, place.host);
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        put_value(warp, in, in->d, (uint32_t)__builtin_ctz(left), value);
    }
    return in + 1;
}

/* If a vector load begins inside its allocation and ends after it, the number of its bytes that are
 * inside; else 0. Compilers widen a load of the last elements to an aligned vector. It never
 * crosses a page of a GPU, and compute-sanitizer does not report it. */
static unsigned bytes_before_end(struct soft_warp *warp, const struct soft_instruction *in,
                                 uint64_t address, unsigned bytes) {
    enum soft_access_space space = soft_access_space(in->mode);
    struct soft_view view = warp->views[in->site];
    if (address % bytes != 0) return 0;
    if (space != SOFT_SPACE_GLOBAL && space != SOFT_SPACE_GENERIC) return 0;
    if (space == SOFT_SPACE_GENERIC && soft_access_resolve(&address) != SOFT_SPACE_GLOBAL) return 0;
    if (address >= view.low && address < view.high && view.high - address >= bytes) return 0;
    const struct soft_reach *reach = warp->cta->launch->reach;
    if (!soft_space_view(address, 1, reach, SOFT_ACCESS_READ, &view)) return 0;
    return view.high - address < bytes ? (unsigned)(view.high - address) : 0;
}

/* Loads the bytes that there are; the others are zeros. */
static bool load_end(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                     uint64_t address, unsigned there) {
    unsigned bytes = soft_access_bytes(in->mode), count = soft_access_count(in->mode);
    uint8_t values[VECTOR_BYTES_MAX] = {0};
    struct soft_place place;
    assert(there > 0 && there < bytes * count && bytes * count <= sizeof values);
    if (!soft_access_range(warp, in, lane, address, there, bytes * count,
                           soft_access_space(in->mode), SOFT_ACCESS_READ, &place)) {
        return false;
    }
    struct soft_finding finding = {
        .kind = "vector over the end", .lanes = 1u << lane, .address = address, .minor = true};
    soft_launch_find(warp, in, &finding,
                     "a load of %u bytes at 0x%llx, of which the allocation has the first %u; the "
                     "others read as zeros here, and as anything on a GPU",
                     bytes * count, (unsigned long long)address, there);
    soft_access_check_read(warp, in, lane, address, there, &place);
    soft_access_taint_end(warp, in, lane, address, there, &place);
    memcpy(values, place.host, there);
    for (unsigned i = 0; i < count; i++) {
        uint32_t slot = access_component(warp, in, i);
        if (bytes == 16) {
            memcpy(SLOT(uint8_t, slot) + 16 * (size_t)lane, values + i * bytes, bytes);
        } else {
            put_value(warp, in, slot, lane, value_at(in, bytes, values + i * bytes));
        }
    }
    return true;
}

const struct soft_instruction *soft_access_load(struct soft_warp *warp,
                                                const struct soft_instruction *in) {
    unsigned bytes = soft_access_bytes(in->mode), count = soft_access_count(in->mode);
    if (soft_access_space(in->mode) == SOFT_SPACE_PARAM && is_one_for_all(warp, in)) {
        return load_parameter(warp, in);
    }
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        uint64_t address = soft_access_address(warp, in, lane);
        struct soft_place place;
        const unsigned there = count > 1 ? bytes_before_end(warp, in, address, bytes * count) : 0;
        if (there > 0) {
            if (!load_end(warp, in, lane, address, there)) return NULL;
            continue;
        }
        if (!soft_access_find(warp, in, lane, address, bytes * count, soft_access_space(in->mode),
                              &place)) {
            return NULL;
        }
        soft_access_taint(warp, in, lane, address, bytes * count, &place);
        if (place.view.high != 0) warp->views[in->site] = place.view;
        for (unsigned i = 0; i < count; i++) {
            uint32_t slot = access_component(warp, in, i);
            if (bytes == 16) {
                memcpy(SLOT(uint8_t, slot) + 16 * (size_t)lane, place.host, 16);
                continue;
            }
            put_value(warp, in, slot, lane, value_at(in, bytes, place.host + i * bytes));
        }
    }
    return soft_taint_next(warp, in);
}

const struct soft_instruction *soft_access_store(struct soft_warp *warp,
                                                 const struct soft_instruction *in) {
    unsigned bytes = soft_access_bytes(in->mode), count = soft_access_count(in->mode);
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        uint64_t address = soft_access_address(warp, in, lane);
        struct soft_place place;
        if (!soft_access_find(warp, in, lane, address, bytes * count, soft_access_space(in->mode),
                              &place)) {
            return NULL;
        }
        if (place.view.high != 0) warp->views[in->site] = place.view;
        soft_shadow_mark(place.shadow, place.offset, bytes * count);
        for (unsigned i = 0; i < count; i++) {
            uint32_t slot = access_component(warp, in, i);
            if (bytes == 16) {
                memcpy(place.host, SLOT(uint8_t, slot) + 16 * (size_t)lane, 16);
                continue;
            }
            uint64_t value = in->mode & SOFT_ACCESS_WIDE_DATA ? SLOT(uint64_t, slot)[lane]
                                                              : SLOT(uint32_t, slot)[lane];
            memcpy(place.host + i * bytes, &value, bytes);
        }
    }
    return in + 1;
}
