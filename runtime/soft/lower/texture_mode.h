/*
 * The mode of an instruction on a texture or a surface, packed by the lowering and read by the
 * texture unit; and the positions of its operands.
 *
 * The further operands, in order: the object, the results (of a store the data, of a reduction the
 * value), the coordinates, the offsets, the level or the gradients. There are SOFT_TEXTURE_DATA
 * results or data.
 */
#ifndef SOFT_TEXTURE_MODE_H
#define SOFT_TEXTURE_MODE_H

#include <stdint.h>

enum soft_geometry {
    SOFT_GEOMETRY_1D,
    SOFT_GEOMETRY_2D,
    SOFT_GEOMETRY_3D,
    SOFT_GEOMETRY_A1D, /* layers of one dimension */
    SOFT_GEOMETRY_A2D,
    SOFT_GEOMETRY_CUBE,
    SOFT_GEOMETRY_ACUBE
};

enum {
    SOFT_TEXTURE_GEOMETRY = 7,
    SOFT_TEXTURE_FLOAT = 1 << 3,      /* the coordinates are .f32, not .s32 */
    SOFT_TEXTURE_F16 = 1 << 4,        /* four registers of 16 bits */
    SOFT_TEXTURE_F16X2 = 1 << 5,      /* two registers of two halves */
    SOFT_TEXTURE_OFFSETS = 1 << 6,    /* in texels, one for each dimension */
    SOFT_TEXTURE_COMPONENT_SHIFT = 7, /* of tld4: which channel */
    SOFT_TEXTURE_COMPONENT = 3 << 7,
    SOFT_TEXTURE_DATA_SHIFT = 9, /* how many results or data */
    SOFT_TEXTURE_DATA = 7 << 9,
    SOFT_TEXTURE_CLAMP = 1 << 12, /* what is outside is the nearest inside */
    /* 1 << 13 is SOFT_ACCESS_STORE, and not used */
    SOFT_TEXTURE_ZERO = 1 << 14,   /* outside reads zero and is not written; neither bit: a trap */
    SOFT_TEXTURE_BYTES_SHIFT = 15, /* of a surface's component: 1, 2, 4, 8 */
    SOFT_TEXTURE_BYTES = 15 << 15,
    SOFT_TEXTURE_OPERATION_SHIFT = 19, /* enum soft_atomic, of a reduction */
    SOFT_TEXTURE_OPERATION = 15 << 19,
    SOFT_TEXTURE_SIGNED = 1 << 23,
    SOFT_TEXTURE_SURFACE = 1 << 24, /* the object is to be a surface */
    SOFT_TEXTURE_QUERY_SHIFT = 25,  /* enum soft_texture_query */
    SOFT_TEXTURE_QUERY = 15 << 25,
    SOFT_TEXTURE_FORMATTED = 1 << 29, /* texels of a surface, by number; not bytes */
    SOFT_TEXTURE_LEVEL = 1 << 29,     /* of a texture: a level of detail follows */
    SOFT_TEXTURE_GRADIENTS = 1 << 30  /* or what follows from two gradients */
};

enum soft_texture_query {
    SOFT_QUERY_WIDTH,
    SOFT_QUERY_HEIGHT,
    SOFT_QUERY_DEPTH,
    SOFT_QUERY_CHANNEL_DATA_TYPE,
    SOFT_QUERY_CHANNEL_ORDER,
    SOFT_QUERY_NORMALIZED_COORDS,
    SOFT_QUERY_ARRAY_SIZE,
    SOFT_QUERY_MIPMAP_LEVELS,
    SOFT_QUERY_SAMPLES
};

static inline enum soft_geometry soft_texture_geometry(uint32_t mode) {
    return (enum soft_geometry)(mode & SOFT_TEXTURE_GEOMETRY);
}
static inline unsigned soft_texture_data(uint32_t mode) {
    return (mode & SOFT_TEXTURE_DATA) >> SOFT_TEXTURE_DATA_SHIFT;
}
static inline unsigned soft_texture_bytes(uint32_t mode) {
    return (mode & SOFT_TEXTURE_BYTES) >> SOFT_TEXTURE_BYTES_SHIFT;
}

/* The number of coordinates; a cubemap's direction has three. */
static inline unsigned soft_geometry_dimensions(enum soft_geometry geometry) {
    static const uint8_t dimensions[] = {1, 2, 3, 1, 2, 3, 3};
    return dimensions[geometry];
}
/* Whether a layer index precedes them. */
static inline int soft_geometry_is_layered(enum soft_geometry geometry) {
    return geometry == SOFT_GEOMETRY_A1D || geometry == SOFT_GEOMETRY_A2D ||
           geometry == SOFT_GEOMETRY_ACUBE;
}

#endif
