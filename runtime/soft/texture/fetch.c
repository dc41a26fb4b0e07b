/*
 * Reads and queries of textures.
 *
 * Source: PTX ISA 9.0, section 9.7.10.
 */
#include "fetch.h"

#include "sample.h"
#include "texel.h"

static const uint32_t *fetch_operands_of(const struct soft_warp *warp,
                                         const struct soft_instruction *in) {
    return warp->split->frame->code->operands + in->more;
}

static struct soft_coordinates coordinates_of(const struct soft_warp *warp,
                                              const struct soft_instruction *in, uint32_t lane) {
    enum soft_geometry geometry = soft_texture_geometry(in->mode);
    unsigned dimensions = soft_geometry_dimensions(geometry);
    const uint32_t *next = fetch_operands_of(warp, in) + 1 + soft_texture_data(in->mode);
    struct soft_coordinates coordinates;
    coordinates.is_integer = (in->mode & SOFT_TEXTURE_FLOAT) == 0;
    coordinates.layer = 0;
    coordinates.level = 0;
    if (soft_geometry_is_layered(geometry)) {
        coordinates.layer = SLOT(int32_t, *next)[lane];
        next++;
    }
    for (unsigned i = 0; i < dimensions; i++, next++) {
        coordinates.at[i] = coordinates.is_integer ? (double)SLOT(int32_t, *next)[lane]
                                                   : (double)SLOT(float, *next)[lane];
    }
    for (unsigned i = 0; i < 3; i++) coordinates.offset[i] = 0;
    for (unsigned i = 0; i < dimensions && (in->mode & SOFT_TEXTURE_OFFSETS) != 0; i++, next++) {
        coordinates.offset[i] = SLOT(int32_t, *next)[lane];
    }
    if ((in->mode & SOFT_TEXTURE_LEVEL) != 0) {
        coordinates.level = coordinates.is_integer ? (double)SLOT(int32_t, *next)[lane]
                                                   : (double)SLOT(float, *next)[lane];
    }
    coordinates.has_gradients = (in->mode & SOFT_TEXTURE_GRADIENTS) != 0;
    for (unsigned i = 0; i < 2 * dimensions && coordinates.has_gradients; i++, next++) {
        coordinates.gradients[i / dimensions][i % dimensions] = (double)SLOT(float, *next)[lane];
    }
    return coordinates;
}

static void fetch_give(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                       const uint32_t texel[4]) {
    const uint32_t *results = fetch_operands_of(warp, in) + 1;
    uint32_t halves[4] = {0, 0, 0, 0};
    bool half = (in->mode & (SOFT_TEXTURE_F16 | SOFT_TEXTURE_F16X2)) != 0;
    for (unsigned i = 0; i < 4 && half; i++)
        halves[i] = soft_texel_half(soft_texel_float(texel[i]));
    for (unsigned i = 0; i < soft_texture_data(in->mode); i++) {
        SLOT(uint32_t, results[i])
        [lane] = in->mode & SOFT_TEXTURE_F16X2 ? halves[2 * i] | halves[2 * i + 1] << 16
                 : half                        ? halves[i]
                                               : texel[i];
    }
}

static const struct soft_instruction *each_lane(struct soft_warp *warp,
                                                const struct soft_instruction *in, bool gathers) {
    struct soft_lookup lookup = {.warp = warp, .in = in};
    unsigned channel = (in->mode & SOFT_TEXTURE_COMPONENT) >> SOFT_TEXTURE_COMPONENT_SHIFT;
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        uint32_t texel[4];
        lookup.lane = (uint32_t)__builtin_ctz(left);
        if (!soft_lookup_object(&lookup, fetch_operands_of(warp, in)[0])) return NULL;
        struct soft_coordinates coordinates = coordinates_of(warp, in, lookup.lane);
        bool ok = gathers ? soft_gather(&lookup, &coordinates, channel, texel)
                          : soft_sample(&lookup, &coordinates, texel);
        if (!ok) return NULL;
        fetch_give(warp, in, lookup.lane, texel);
    }
    return in + 1;
}

const struct soft_instruction *soft_texture_fetch(struct soft_warp *warp,
                                                  const struct soft_instruction *in) {
    return each_lane(warp, in, false);
}

const struct soft_instruction *soft_texture_gather(struct soft_warp *warp,
                                                   const struct soft_instruction *in) {
    return each_lane(warp, in, true);
}

/* The numbers that the manual gives for the formats, which are those of OpenCL. */
static uint32_t data_type(const struct soft_texture *texture) {
    static const uint32_t whole[2][3] = {{0x10da, 0x10db, 0x10dc}, {0x10d7, 0x10d8, 0x10d9}};
    const struct soft_texels *texels = &texture->texels;
    bool is_signed = texels->channel == SOFT_CHANNEL_SIGNED;
    unsigned size = texels->channel_bytes == 1 ? 0 : texels->channel_bytes == 2 ? 1 : 2;
    if (texels->channel == SOFT_CHANNEL_FLOAT) return size == 1 ? 0x10dd : 0x10de;
    if (texture->promotes) return (is_signed ? 0x10d0u : 0x10d2u) + size;
    return whole[is_signed][size];
}

/* texels: of the queried level. The next size is the number of layers; the height of a row is 1 for
 * a texture and 0 for a surface, as on an H200. */
static uint32_t fetch_answer(const struct soft_texture *texture, const struct soft_texels *texels,
                             enum soft_texture_query query) {
    switch (query) {
    case SOFT_QUERY_WIDTH:
        return texels->width;
    case SOFT_QUERY_HEIGHT:
        if (texels->dimensions > 1) return texels->height;
        return texels->layered ? texels->layers : !texture->is_surface;
    case SOFT_QUERY_DEPTH:
        if (texels->dimensions > 2) return texels->layers;
        return texels->layered && texels->dimensions == 2 && !texels->cube ? texels->layers : 0;
    case SOFT_QUERY_CHANNEL_DATA_TYPE:
        return data_type(texture);
    case SOFT_QUERY_CHANNEL_ORDER: /* R, RG, RGBA */
        return texels->channels == 1 ? 0x10b0 : texels->channels == 2 ? 0x10b2 : 0x10b5;
    case SOFT_QUERY_NORMALIZED_COORDS:
        return texture->is_normalised;
    case SOFT_QUERY_ARRAY_SIZE:
        return !texels->layered ? 0 : texels->cube ? texels->layers / 6 : texels->layers;
    case SOFT_QUERY_MIPMAP_LEVELS:
        return texture->levels;
    default: /* one sample */
        return 1;
    }
}

const struct soft_instruction *soft_texture_ask(struct soft_warp *warp,
                                                const struct soft_instruction *in) {
    const uint32_t *operands = fetch_operands_of(warp, in);
    struct soft_lookup lookup = {.warp = warp, .in = in};
    enum soft_texture_query query =
        (enum soft_texture_query)((in->mode & SOFT_TEXTURE_QUERY) >> SOFT_TEXTURE_QUERY_SHIFT);
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        lookup.lane = (uint32_t)__builtin_ctz(left);
        if (!soft_lookup_object(&lookup, operands[0])) return NULL;
        int32_t level = 0;
        if ((in->mode & SOFT_TEXTURE_LEVEL) != 0) level = SLOT(int32_t, operands[2])[lookup.lane];
        /* The sizes of absent levels are 0. */
        bool known = level >= 0 && level < lookup.texture->levels;
        struct soft_texels texels = soft_texture_level(lookup.texture, known ? (unsigned)level : 0);
        SLOT(uint32_t, operands[1])
        [lookup.lane] = known ? fetch_answer(lookup.texture, &texels, query) : 0;
    }
    return in + 1;
}
