/*
 * Every space, every width, one lane at a time.
 */
#include "access.h"

#include "../cuda_abi.h"

#include <stdio.h>
#include <string.h>

#define SLOT(type, offset) ((type *)(void *)(warp->slots + (offset)))

uint64_t soft_access_address(const struct soft_warp *warp, const struct soft_instruction *in,
                             uint32_t lane) {
    uint64_t base = in->mode & SOFT_ACCESS_WIDE_ADDRESS ? SLOT(uint64_t, in->a)[lane]
                                                        : SLOT(uint32_t, in->a)[lane];
    uint64_t address = base + (uint64_t)in->u.immediate;
    return in->mode & SOFT_ACCESS_WIDE_ADDRESS ? address : (uint32_t)address;
}

static const char *what(const struct soft_instruction *in) {
    return in->mode & SOFT_ACCESS_STORE ? "a store" : "a load";
}

/* The windows of generic addressing turn an address into one of another space. */
static enum soft_access_space resolve_window(uint64_t *address) {
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

static bool outside(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                    uint64_t address, unsigned bytes, const char *space, uint64_t size) {
    soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lane, address,
                     "%s of %u bytes at offset 0x%llx lies outside the %llu bytes of %s memory",
                     what(in), bytes, (unsigned long long)address, (unsigned long long)size, space);
    return false;
}

static bool find_global(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                        uint64_t address, unsigned bytes, struct soft_place *place) {
    const struct soft_view *last = &warp->views[in->site];
    uint64_t span = last->high - last->low;
    if (bytes <= span && address - last->low <= span - bytes) {
        place->view = *last;
    } else if (!soft_space_view(address, bytes, &place->view)) {
        char nearest[240];
        soft_space_describe(address, nearest, sizeof nearest);
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lane, address,
                         "%s of %u bytes at 0x%llx: %s", what(in), bytes,
                         (unsigned long long)address, nearest);
        return false;
    }
    place->offset = address - place->view.low;
    place->host = place->view.host + place->offset;
    place->shadow = place->view.shadow;
    return true;
}

bool soft_access_find(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                      uint64_t address, unsigned bytes, enum soft_access_space space,
                      struct soft_place *place) {
    struct soft_cta *cta = warp->cta;
    *place = (struct soft_place){0};
    if (bytes > 1 && address % bytes != 0) {
        soft_launch_fail(warp, in, CUDA_ERROR_MISALIGNED_ADDRESS, 1u << lane, address,
                         "%s of %u bytes at 0x%llx, which is no multiple of %u", what(in), bytes,
                         (unsigned long long)address, bytes);
        return false;
    }
    if (space == SOFT_SPACE_GENERIC) space = resolve_window(&address);
    uint64_t thread = (uint64_t)warp->index * SOFT_LANES + lane;
    uint64_t size = 0;
    switch (space) {
    case SOFT_SPACE_SHARED:
        size = cta->shared_bytes;
        if (bytes > size || address > size - bytes) {
            return outside(warp, in, lane, address, bytes, "shared", size);
        }
        place->offset = address;
        place->host = cta->shared + address;
        place->shadow = cta->shared_shadow;
        return true;
    case SOFT_SPACE_LOCAL:
        size = cta->local_bytes;
        if (bytes > size || address > size - bytes) {
            return outside(warp, in, lane, address, bytes, "local", size);
        }
        place->offset = thread * size + address;
        place->host = cta->local + place->offset;
        place->shadow = cta->local_shadow;
        return true;
    case SOFT_SPACE_PARAM:
        size = cta->launch->code->parameter_bytes;
        if (bytes > size || address > size - bytes) {
            return outside(warp, in, lane, address, bytes, "parameter", size);
        }
        place->offset = address;
        place->host = cta->launch->parameters + address;
        return true;
    default:
        return find_global(warp, in, lane, address, bytes, place);
    }
}

void soft_access_check_read(struct soft_warp *warp, const struct soft_instruction *in,
                            uint32_t lane, uint64_t address, unsigned bytes,
                            const struct soft_place *place) {
    if (place->shadow == NULL) return;
    for (unsigned i = 0; i < bytes; i++) {
        uint64_t at = place->offset + i;
        if ((place->shadow[at / 4] >> (at % 4) & 1) != 0) continue;
        soft_launch_note(warp, in, "uninitialised read", 1u << lane, address,
                         "%s of %u bytes at 0x%llx reads byte %u, which was never written",
                         what(in), bytes, (unsigned long long)address, i);
        return;
    }
}

/* The slot of a component. */
static uint32_t component(const struct soft_warp *warp, const struct soft_instruction *in,
                          unsigned index) {
    if (soft_access_count(in->mode) == 1) return in->d;
    return warp->split->frame->code->operands[in->more + index];
}

const struct soft_instruction *soft_access_load(struct soft_warp *warp,
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
        soft_access_check_read(warp, in, lane, address, bytes * count, &place);
        if (place.view.high != 0) warp->views[in->site] = place.view;
        for (unsigned i = 0; i < count; i++) {
            uint32_t slot = component(warp, in, i);
            uint64_t value = 0;
            memcpy(&value, place.host + i * bytes, bytes);
            if (in->mode & SOFT_ACCESS_SIGNED) {
                unsigned shift = 64 - 8 * bytes;
                value = (uint64_t)((int64_t)(value << shift) >> shift);
            }
            if (in->mode & SOFT_ACCESS_WIDE_DATA) {
                SLOT(uint64_t, slot)[lane] = value;
            } else {
                uint32_t narrow = (uint32_t)value;
                SLOT(uint32_t, slot)
                [lane] = in->mode & SOFT_ACCESS_SHORT_DATA ? narrow & 0xffff : narrow;
            }
        }
    }
    return in + 1;
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
            uint32_t slot = component(warp, in, i);
            uint64_t value = in->mode & SOFT_ACCESS_WIDE_DATA ? SLOT(uint64_t, slot)[lane]
                                                              : SLOT(uint32_t, slot)[lane];
            memcpy(place.host + i * bytes, &value, bytes);
        }
    }
    return in + 1;
}
