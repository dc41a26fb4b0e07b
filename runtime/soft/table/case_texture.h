/*
 * A case on a texture or a surface: the instruction, the array, and where threads read it.
 */
#ifndef SOFT_TABLE_CASE_TEXTURE_H
#define SOFT_TABLE_CASE_TEXTURE_H

#include "case.h"

enum { THREADS_MAX = 2048, ARRAY_MAX = 1 << 17, COORDINATES = 8, RESULTS = 4, PITCH = 512 };

struct format {
    const char *name;
    int number;
    unsigned bytes;
    char kind; /* u, s, f */
};

struct texture {
    /* of the instruction */
    char name[16]; /* tex, tld4, txq, suld, sust, sured, suq */
    char geometry[8], type[8], place_type[8], operation[16];
    unsigned results, coordinates; /* registers, those of a layer among them */
    bool layered;
    /* of the array */
    const struct format *format;
    unsigned channels, dimensions;
    size_t size[3];
    bool in_memory, pitched, cube;
    /* of the threads */
    unsigned threads;
    uint32_t place[THREADS_MAX][COORDINATES];
    uint64_t values[THREADS_MAX][RESULTS], written[THREADS_MAX][RESULTS];
    uint8_t texels[ARRAY_MAX], after[ARRAY_MAX];
};

static inline size_t texel_bytes(const struct texture *t) {
    return (size_t)t->format->bytes * t->channels;
}

static inline size_t row_bytes(const struct texture *t) {
    return t->size[0] * texel_bytes(t);
}

static inline size_t rows_of(const struct texture *t) {
    size_t height = t->size[1] > 0 ? t->size[1] : 1, depth = t->size[2] > 0 ? t->size[2] : 1;
    return height * depth;
}

/* Reads the line, and fills texels, places and values. false: it is not a case. */
bool case_texture_read(const struct case_line *line, struct texture *texture);

/* Fills the texels of a level of detail, of the size that texture has now. */
void case_texture_fill(const struct case_line *line, struct texture *texture, unsigned level);

#endif
