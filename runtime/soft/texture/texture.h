/*
 * Texture: texture and surface objects, and the table of all.
 *
 * A handle is a number, as on a GPU: kernels pass it on as data. Its low bits are a place in the
 * table, the rest counts how often that place was used, so that the handle of a destroyed object is
 * recognised for as long as possible.
 *
 * Lookups need no lock: places are never returned to the host. Changing an object while a kernel
 * uses it is a race, as on a GPU, and harmless to the host.
 */
#ifndef SOFT_TEXTURE_H
#define SOFT_TEXTURE_H

#include "base/abi.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct soft_reach;

/* What a channel holds. */
enum soft_channel { SOFT_CHANNEL_UNSIGNED, SOFT_CHANNEL_SIGNED, SOFT_CHANNEL_FLOAT };

/* Where texels are, and what they look like. */
struct soft_texels {
    uint64_t address, pitch, slice; /* bytes from one row to the next, and from layer to layer */
    uint32_t width, height, layers; /* at least 1 each; layers or slices */
    uint8_t dimensions;             /* 1 to 3, layers and faces not counted */
    bool layered, cube;
    bool in_memory; /* a row of memory, not an array */
    uint8_t channels, channel_bytes;
    enum soft_channel channel;
};

/* The levels of detail of the largest possible array. */
enum { SOFT_LEVELS_MAX = 18 };

struct soft_texture {
    _Atomic uint64_t handle; /* 0: the place is free */
    bool is_surface;
    unsigned slot;     /* of its context */
    bool of_reference; /* it is bound to one, and ends with it */
    struct soft_texels texels;
    /* of textures alone */
    bool promotes; /* integers become numbers from 0 or -1 to 1 */
    bool is_srgb, is_normalised, filters;
    bool is_seamless; /* a cube, whose filter continues across the edge of a face */
    uint8_t modes[3]; /* CU_TR_ADDRESS_MODE_ */
    float border[4];
    /* levels of detail: texels is the first of them */
    uint8_t levels; /* 1: there is no other */
    bool mixes_levels;
    float level_bias, least_level, most_level;
    uint64_t level_addresses[SOFT_LEVELS_MAX];
    /* the program's description, for queries */
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC description;
    CUDA_RESOURCE_VIEW_DESC view;
    bool has_view;
};

/* The bytes of a texel. */
static inline unsigned soft_texel_bytes(const struct soft_texels *texels) {
    return (unsigned)texels->channels * texels->channel_bytes;
}

/* The texels of a level of detail. */
struct soft_texels soft_texture_level(const struct soft_texture *texture, unsigned level);

/* Adds an object; its handle, or 0: the table, or the host's memory, is full. */
uint64_t soft_texture_add(const struct soft_texture *texture);

/* Replaces the object of a handle. false: it has none. */
bool soft_texture_change(uint64_t handle, const struct soft_texture *texture);

/* Copies an object. false: the handle is none of a live one. */
bool soft_texture_copy(uint64_t handle, struct soft_texture *texture);

/* Takes an object out. Launches up to the number last may still use it, as on a GPU, where work
 * that was queued before the destroy keeps it. false: it is none. */
bool soft_texture_remove(uint64_t handle, uint64_t last);

/* Takes out all of a context. */
void soft_texture_remove_all(unsigned slot);

/* The object of a handle for the launch of that number: a live one, or one that was destroyed after
 * that launch was queued, until its place is used again. NULL: there is none. */
const struct soft_texture *soft_texture_find(uint64_t handle, uint64_t launch);

/* Whether a handle was one of an object that has been destroyed since. */
bool soft_texture_was(uint64_t handle);

/* Calls visit for each live object. The table is locked meanwhile. */
void soft_texture_each(void (*visit)(const struct soft_texture *texture, void *data), void *data);

#endif
