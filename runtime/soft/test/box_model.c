/*
 * Copies of boxes, element by element.
 */
#include "box_model.h"

#include <string.h>

unsigned tensor_type_bytes(unsigned type) {
    switch (type) {
    case TENSOR_UINT8:
        return 1;
    case TENSOR_UINT16:
    case TENSOR_FLOAT16:
    case TENSOR_BFLOAT16:
        return 2;
    case TENSOR_UINT64:
    case TENSOR_INT64:
    case TENSOR_FLOAT64:
        return 8;
    default:
        return 4;
    }
}

bool tensor_type_is_floating(unsigned type) {
    return type >= TENSOR_FLOAT16;
}

static unsigned taken(const struct box_model *model, unsigned i) {
    if (model->im2col) return i == 0 ? model->box[0] : i == 1 ? model->pixels : 1;
    return (model->box[i] + model->step[i] - 1) / model->step[i];
}

uint64_t box_model_bytes(const struct box_model *model) {
    uint64_t bytes = model->each;
    for (unsigned i = 0; i < model->rank; i++) bytes *= taken(model, i);
    return bytes;
}

CUresult box_model_encode(const struct box_model *model, CUtensorMap *map, CUdeviceptr memory,
                          cuuint32_t first_step) {
    cuuint64_t sizes[TENSOR_RANK_MAX], strides[TENSOR_RANK_MAX];
    cuuint32_t box[TENSOR_RANK_MAX], steps[TENSOR_RANK_MAX];
    for (unsigned i = 0; i < model->rank; i++) {
        sizes[i] = model->size[i];
        box[i] = model->box[i];
        steps[i] = i == 0 ? first_step : model->step[i];
        if (i > 0) strides[i - 1] = model->stride[i];
    }
    void *address = (void *)(uintptr_t)(memory + model->first);
    if (model->im2col) {
        return cuTensorMapEncodeIm2col(map, (int)model->type, model->rank, address, sizes, strides,
                                       model->lower, model->upper, model->box[0], model->pixels,
                                       steps, 0, (int)model->swizzle, 0, (int)model->fill);
    }
    return cuTensorMapEncodeTiled(map, (int)model->type, model->rank, address, sizes, strides, box,
                                  steps, 0, (int)model->swizzle, 0, (int)model->fill);
}

/* The manual's tables of chunks of 16 bytes, for the lines of 128 bytes one after another. */
unsigned box_model_swizzled(unsigned swizzle, unsigned at) {
    static const uint8_t chunks[8][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6},
                                         {2, 3, 0, 1, 6, 7, 4, 5}, {3, 2, 1, 0, 7, 6, 5, 4},
                                         {4, 5, 6, 7, 0, 1, 2, 3}, {5, 4, 7, 6, 1, 0, 3, 2},
                                         {6, 7, 4, 5, 2, 3, 0, 1}, {7, 6, 5, 4, 3, 2, 1, 0}};
    unsigned repeats = 1u << swizzle, line = at / 128;
    return line * 128 + chunks[line % repeats][at / 16 % 8] * 16 + at % 16;
}

static void fill_value(const struct box_model *model, uint8_t *value) {
    static const uint8_t nan[] = {0xf7, 0x7f, 0xf7, 0x7f, 0xf7, 0x7f, 0xf7, 0x7f};
    memset(value, 0, model->each);
    if (model->fill) memcpy(value, nan, model->each);
}

/* TFLOAT32 is rounded to ten fraction bits; nothing is flushed. */
static void convert(const struct box_model *model, uint8_t *value) {
    uint32_t word;
    bool rounds = model->type == TENSOR_TFLOAT32 || model->type == TENSOR_TFLOAT32_FTZ;
    if (!rounds) return;
    memcpy(&word, value, 4);
    uint32_t sign = word & 0x80000000, rest = word & 0x7fffffff;
    if (rest > 0x7f800000) {
        sign = 0;
        rest = 0x7fffe000;
    } else if (rest < 0x7f800000) {
        uint32_t low = rest / 8192 * 8192, above = rest - low;
        bool up = above > 4096 || (above == 4096 && rest / 8192 % 2 == 1);
        rest = up ? low + 8192 : low;
    }
    word = sign | rest;
    memcpy(value, &word, 4);
}

/* The position of a pixel: the filter's path through the bounding boxes, from its begin. */
struct pixel {
    int64_t at[TENSOR_RANK_MAX];
};

static void find_pixels(const struct box_model *model, const int32_t *from, const uint16_t *offsets,
                        struct pixel *pixels) {
    unsigned count = 0, dimensions = model->rank - 2;
    int64_t begin[3] = {0, 0, 0}, lower[3] = {0, 0, 0}, last[3] = {0, 0, 0}, step[3] = {1, 1, 1};
    for (unsigned i = 0; i < dimensions; i++) {
        begin[i] = from[i + 1];
        lower[i] = model->lower[i];
        last[i] = (int64_t)model->size[i + 1] - 1 + model->upper[i];
        step[i] = model->step[i + 1];
    }
    for (int64_t n = from[model->rank - 1]; count < model->pixels; n++) {
        bool first = n == from[model->rank - 1];
        for (int64_t d = first ? begin[2] : lower[2]; d <= last[2]; d += step[2]) {
            bool first_plane = first && d == begin[2];
            for (int64_t h = first_plane ? begin[1] : lower[1]; h <= last[1]; h += step[1]) {
                bool first_line = first_plane && h == begin[1];
                for (int64_t w = first_line ? begin[0] : lower[0]; w <= last[0]; w += step[0]) {
                    if (count == model->pixels) return;
                    const int64_t place[3] = {w, h, d};
                    pixels[count].at[model->rank - 1] = n;
                    for (unsigned i = 0; i < dimensions; i++) {
                        pixels[count].at[i + 1] = place[i] + offsets[i];
                    }
                    count++;
                }
            }
        }
    }
}

void box_model_load(const struct box_model *model, const uint8_t *memory, int64_t from,
                    uint8_t *value) {
    if (from < 0) {
        fill_value(model, value);
        return;
    }
    memcpy(value, memory + from, model->each);
    convert(model, value);
}

/* Boxes begin at a multiple of 16 bytes. Stored boxes, and the bounding box of im2col, do not begin
 * before the tensor; the filter of im2col begins inside the bounding box. */
bool box_model_refuses(const struct box_model *model, const int32_t *begin) {
    if ((int64_t)begin[0] * model->each % 16 != 0) return true;
    for (unsigned i = 0; i < model->rank && model->stores; i++) {
        if (begin[i] < 0) return true;
    }
    for (unsigned i = 1; i + 1 < model->rank && model->im2col; i++) {
        int64_t last = (int64_t)model->size[i] - 1 + model->upper[i - 1];
        if (model->stores && model->lower[i - 1] < 0) return true;
        if (begin[i] < model->lower[i - 1] || begin[i] > last) return true;
    }
    return false;
}

/* From a row to the next one in shared memory. */
static uint64_t pitch(const struct box_model *model) {
    uint64_t row = (uint64_t)model->box[0] * model->each, span = 16u << model->swizzle;
    return model->swizzle > 0 && row < span ? span : row;
}

uint64_t box_model_extent(const struct box_model *model) {
    return box_model_bytes(model) / (model->box[0] * model->each) * pitch(model);
}

/* The number of copied elements in a dimension: in a stored tile, a row extends to the end of its
 * last 16 bytes. */
static int64_t extent(const struct box_model *model, unsigned i) {
    uint64_t size = model->size[i];
    if (i > 0 || model->im2col || !model->stores) return (int64_t)size;
    return (int64_t)((size * model->each + 15) / 16 * 16 / model->each);
}

void box_model_each(const struct box_model *model, const int32_t *begin, const uint16_t *offsets,
                    void (*visit)(void *user, unsigned at, int64_t from), void *user) {
    static struct pixel pixels[TENSOR_PIXELS_MAX];
    uint64_t count = box_model_bytes(model) / model->each;
    if (model->im2col) find_pixels(model, begin, offsets, pixels);
    for (uint64_t e = 0; e < count; e++) {
        int64_t from = (int64_t)model->first;
        bool inside = true;
        uint64_t rest = e;
        for (unsigned i = 0; i < model->rank; i++) {
            int64_t index = (int64_t)(rest % taken(model, i));
            int64_t place = begin[i] + index * model->step[i];
            if (model->im2col && i > 0) place = pixels[e / model->box[0]].at[i];
            rest /= taken(model, i);
            if (place < 0 || place >= extent(model, i)) inside = false;
            if (inside) from += place * (int64_t)(i == 0 ? model->each : model->stride[i]);
        }
        uint64_t at = e / model->box[0] * pitch(model) + e % model->box[0] * model->each;
        visit(user, (unsigned)at, inside ? from : -1);
    }
}
