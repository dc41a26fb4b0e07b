/*
 * Loads, stores and reductions of surfaces: of unconverted bytes, where the first coordinate counts
 * bytes; or (.p) of texels in the surface's format, where it counts texels.
 *
 * Where the manual is silent, this does what an H200 does (fixtures/ptx/cases): an integer that
 * does not fit into a channel becomes the nearest one that fits; a half is truncated; channels that
 * a store does not give become 0, although the manual leaves them undefined.
 *
 * Source: PTX ISA 9.0, section 9.7.11.
 */
#include "surface.h"

#include "machine/finding.h"
#include "reach.h"
#include "texel.h"
#include "tollens/cuda_abi.h"

#include <string.h>

static const uint32_t *surface_operands_of(const struct soft_warp *warp,
                                           const struct soft_instruction *in) {
    return warp->split->frame->code->operands + in->more;
}

static bool surface_trap(struct soft_lookup *lookup, const char *name, int64_t at, uint64_t size) {
    soft_launch_fail(lookup->warp, lookup->in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lookup->lane,
                     lookup->handle, "%s %lld is outside surface 0x%llx, which has %llu", name,
                     (long long)at, (unsigned long long)lookup->handle, (unsigned long long)size);
    return false;
}

/* Clamps a coordinate. false: it is outside; *fails says whether that ends the launch. */
static bool surface_place_in(struct soft_lookup *lookup, const char *name, int64_t *at,
                             uint64_t size, uint64_t bytes, bool *fails) {
    uint32_t mode = lookup->in->mode;
    if (*at >= 0 && (uint64_t)*at < size && bytes <= size - (uint64_t)*at) return true;
    if (mode & SOFT_TEXTURE_CLAMP) { /* to a multiple of the access */
        *at = *at < 0 || bytes > size ? 0 : (int64_t)((size - bytes) / bytes * bytes);
        return bytes <= size;
    }
    if ((mode & SOFT_TEXTURE_ZERO) == 0) *fails = !surface_trap(lookup, name, *at, size);
    return false;
}

/* Finds the bytes of a lane's access. false: they are outside, or the launch has failed
 * (*fails). */
static bool surface_find(struct soft_lookup *lookup, unsigned bytes, enum soft_access_kind kind,
                         struct soft_place *place, bool *fails) {
    struct soft_warp *warp = lookup->warp;
    const struct soft_instruction *in = lookup->in;
    enum soft_geometry geometry = soft_texture_geometry(in->mode);
    const uint32_t *next = surface_operands_of(warp, in) + 1 + soft_texture_data(in->mode);
    unsigned dimensions = soft_geometry_dimensions(geometry);
    int64_t layer = 0, at[3] = {0, 0, 0};
    *fails = true;
    if (!soft_lookup_object(lookup, surface_operands_of(warp, in)[0])) return false;
    const struct soft_texels *texels = &lookup->texture->texels;
    if (soft_geometry_is_layered(geometry)) layer = SLOT(int32_t, *next++)[lookup->lane];
    for (unsigned i = 0; i < dimensions; i++) at[i] = SLOT(int32_t, *next++)[lookup->lane];
    const bool formatted = (in->mode & SOFT_TEXTURE_FORMATTED) != 0;
    const bool traps = (in->mode & (SOFT_TEXTURE_CLAMP | SOFT_TEXTURE_ZERO)) == 0;
    const int64_t end = (int64_t)texels->width * soft_texel_bytes(texels);
    const bool outside = at[0] < 0 || at[0] + bytes > end;
    if (!formatted && ((uint64_t)at[0] & (bytes - 1)) != 0 && !(traps && outside)) {
        soft_launch_fail(warp, in, CUDA_ERROR_MISALIGNED_ADDRESS, 1u << lookup->lane,
                         lookup->handle,
                         "byte %lld of a row of surface 0x%llx, for an access of %u bytes, which "
                         "is not a multiple of them",
                         (long long)at[0], (unsigned long long)lookup->handle, bytes);
        return false;
    }
    *fails = false;
    unsigned unit = formatted ? soft_texel_bytes(texels) : 1;
    uint64_t row_units = (uint64_t)texels->width * soft_texel_bytes(texels) / unit;
    if (formatted) bytes = unit;
    if (geometry == SOFT_GEOMETRY_3D) {
        layer = at[2];
    } else if (layer < 0 && (in->mode & SOFT_TEXTURE_CLAMP) != 0) {
        layer = (int64_t)texels->layers - 1; /* it has no sign there */
    }
    return surface_place_in(lookup, formatted ? "texel" : "byte", &at[0], row_units, bytes / unit,
                            fails) &&
           surface_place_in(lookup, "row", &at[1], texels->height, 1, fails) &&
           surface_place_in(lookup, "layer", &layer, texels->layers, 1, fails) &&
           !(*fails = !soft_lookup_place(lookup, (uint64_t)layer, (uint64_t)at[1],
                                         (uint64_t)at[0] * unit, bytes, kind, place));
}

const struct soft_instruction *soft_surface_load(struct soft_warp *warp,
                                                 const struct soft_instruction *in) {
    unsigned bytes = soft_texture_bytes(in->mode), count = soft_texture_data(in->mode);
    const uint32_t *results = surface_operands_of(warp, in) + 1;
    struct soft_lookup lookup = {.warp = warp, .in = in};
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        struct soft_place place;
        bool fails = false;
        lookup.lane = (uint32_t)__builtin_ctz(left);
        bool inside = surface_find(&lookup, bytes * count, SOFT_ACCESS_READ, &place, &fails);
        if (fails) return NULL;
        for (unsigned i = 0; i < count; i++) {
            uint64_t value = 0;
            if (inside) memcpy(&value, place.host + i * bytes, bytes);
            if (bytes == 8) {
                SLOT(uint64_t, results[i])[lookup.lane] = value;
            } else {
                SLOT(uint32_t, results[i])[lookup.lane] = (uint32_t)value;
            }
        }
    }
    return in + 1;
}

/* Truncated: a number beyond the largest becomes the largest. */
static uint32_t cut_half(float number) {
    uint32_t half = soft_texel_half(number);
    float held = soft_texel_from_half(half & 0x7fff), size = number < 0 ? -number : number;
    return held > size ? half - 1 : half;
}

/* The value of a channel after a store. */
static uint32_t surface_channel_of(const struct soft_texels *texels, uint32_t value) {
    unsigned bits = 8u * texels->channel_bytes;
    if (texels->channel == SOFT_CHANNEL_FLOAT) {
        return bits == 32 ? value : cut_half(soft_texel_float(value));
    }
    if (bits == 32) return value;
    if (texels->channel == SOFT_CHANNEL_UNSIGNED) {
        uint32_t most = (1u << bits) - 1;
        return value < most ? value : most;
    }
    int32_t whole = (int32_t)value, most = (1 << (bits - 1)) - 1;
    return (uint32_t)(whole < -most - 1 ? -most - 1 : whole < most ? whole : most);
}

/* Writes a texel from some values. */
static void put_texel(struct soft_lookup *lookup, const struct soft_place *place,
                      const uint32_t *values, unsigned count) {
    const struct soft_texels *texels = &lookup->texture->texels;
    for (unsigned i = 0; i < texels->channels; i++) {
        uint32_t held = i < count ? surface_channel_of(texels, values[i]) : 0;
        memcpy(place->host + i * texels->channel_bytes, &held, texels->channel_bytes);
    }
    unsigned given = count < texels->channels ? count : texels->channels;
    if (place->shadow == NULL) return;
    soft_shadow_mark(place->shadow, place->offset, given * (unsigned)texels->channel_bytes);
}

const struct soft_instruction *soft_surface_store(struct soft_warp *warp,
                                                  const struct soft_instruction *in) {
    unsigned bytes = soft_texture_bytes(in->mode), count = soft_texture_data(in->mode);
    const uint32_t *data = surface_operands_of(warp, in) + 1;
    struct soft_lookup lookup = {.warp = warp, .in = in};
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        struct soft_place place;
        bool fails = false;
        lookup.lane = (uint32_t)__builtin_ctz(left);
        bool inside = surface_find(&lookup, bytes * count, SOFT_ACCESS_WRITE, &place, &fails);
        if (fails) return NULL;
        if (!inside) continue;
        if ((in->mode & SOFT_TEXTURE_FORMATTED) != 0) {
            uint32_t values[4] = {0};
            for (unsigned i = 0; i < count; i++) values[i] = SLOT(uint32_t, data[i])[lookup.lane];
            put_texel(&lookup, &place, values, count);
            continue;
        }
        if (place.shadow != NULL) soft_shadow_mark(place.shadow, place.offset, bytes * count);
        for (unsigned i = 0; i < count; i++) {
            uint64_t value = bytes == 8 ? SLOT(uint64_t, data[i])[lookup.lane]
                                        : SLOT(uint32_t, data[i])[lookup.lane];
            memcpy(place.host + i * bytes, &value, bytes);
        }
    }
    return in + 1;
}

/* What a cell holds after an operation. */
static uint64_t surface_reduced(uint32_t mode, uint64_t old, uint64_t value) {
    bool wide = soft_texture_bytes(mode) == 8, is_signed = (mode & SOFT_TEXTURE_SIGNED) != 0;
    int64_t a = wide ? (int64_t)old : (int32_t)(uint32_t)old;
    int64_t b = wide ? (int64_t)value : (int32_t)(uint32_t)value;
    bool less = is_signed ? b < a : value < old;
    switch ((mode & SOFT_TEXTURE_OPERATION) >> SOFT_TEXTURE_OPERATION_SHIFT) {
    case SOFT_ATOMIC_ADD:
        return old + value;
    case SOFT_ATOMIC_MIN:
        return less ? value : old;
    case SOFT_ATOMIC_MAX:
        return less ? old : value;
    case SOFT_ATOMIC_AND:
        return old & value;
    default:
        return old | value;
    }
}

/* Blocks run in parallel, so the cell is updated by compare-and-swap. */
static void surface_reduce(uint8_t *host, uint32_t mode, uint64_t value) {
    if (soft_texture_bytes(mode) == 8) {
        uint64_t *cell = (uint64_t *)(void *)host, old = __atomic_load_n(cell, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(cell, &old, surface_reduced(mode, old, value), true,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
        return;
    }
    uint32_t *cell = (uint32_t *)(void *)host, old = __atomic_load_n(cell, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(cell, &old, (uint32_t)surface_reduced(mode, old, value),
                                        true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

/* The mode of a reduction; a formatted one uses the surface's integer type. false: the surface has
 * no integers of that size; the launch has failed. */
static bool find_mode(struct soft_lookup *lookup, unsigned bytes, uint32_t *mode) {
    const struct soft_texels *texels = &lookup->texture->texels;
    *mode = lookup->in->mode;
    if ((*mode & SOFT_TEXTURE_FORMATTED) == 0) return true;
    if (texels->channel == SOFT_CHANNEL_FLOAT || soft_texel_bytes(texels) != bytes ||
        texels->channel_bytes != 4) {
        soft_launch_fail(lookup->warp, lookup->in, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                         1u << lookup->lane, lookup->handle,
                         "a reduction of %u bits on surface 0x%llx, whose texels have %u channels "
                         "of %u bits%s",
                         bytes * 8, (unsigned long long)lookup->handle, texels->channels,
                         texels->channel_bytes * 8u,
                         texels->channel == SOFT_CHANNEL_FLOAT ? ", floating-point numbers" : "");
        return false;
    }
    if (texels->channel == SOFT_CHANNEL_SIGNED) *mode |= SOFT_TEXTURE_SIGNED;
    return true;
}

const struct soft_instruction *soft_surface_reduce(struct soft_warp *warp,
                                                   const struct soft_instruction *in) {
    unsigned bytes = soft_texture_bytes(in->mode);
    const uint32_t *data = surface_operands_of(warp, in) + 1;
    struct soft_lookup lookup = {.warp = warp, .in = in};
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        struct soft_place place;
        bool fails = false;
        lookup.lane = (uint32_t)__builtin_ctz(left);
        uint32_t mode = 0;
        if (!soft_lookup_object(&lookup, surface_operands_of(warp, in)[0]) ||
            !find_mode(&lookup, bytes, &mode)) {
            return NULL;
        }
        bool inside = surface_find(&lookup, bytes, SOFT_ACCESS_WRITE, &place, &fails);
        if (fails) return NULL;
        if (!inside) continue;
        soft_access_check_read(warp, in, lookup.lane, lookup.address, bytes, &place);
        if (place.shadow != NULL) soft_shadow_mark(place.shadow, place.offset, bytes);
        surface_reduce(place.host, mode,
                       bytes == 8 ? SLOT(uint64_t, data[0])[lookup.lane]
                                  : SLOT(uint32_t, data[0])[lookup.lane]);
    }
    return in + 1;
}
