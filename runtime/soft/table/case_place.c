/*
 * Cases on textures and surfaces: reading the line, texels, places.
 */
#include "case_texture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct format formats[] = {
    {"u8", CU_AD_FORMAT_UNSIGNED_INT8, 1, 'u'},   {"u16", CU_AD_FORMAT_UNSIGNED_INT16, 2, 'u'},
    {"u32", CU_AD_FORMAT_UNSIGNED_INT32, 4, 'u'}, {"s8", CU_AD_FORMAT_SIGNED_INT8, 1, 's'},
    {"s16", CU_AD_FORMAT_SIGNED_INT16, 2, 's'},   {"s32", CU_AD_FORMAT_SIGNED_INT32, 4, 's'},
    {"f16", CU_AD_FORMAT_HALF, 2, 'f'},           {"f32", CU_AD_FORMAT_FLOAT, 4, 'f'},
};

static bool is_type(const char *word) {
    static const char *const types[] = {"u32", "s32", "f32", "b8",  "b16",  "b32",
                                        "b64", "u64", "s64", "f16", "f16x2"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(word, types[i]) == 0) return true;
    }
    return false;
}

static void case_place_read_instruction(struct texture *t, const char *spelling) {
    char copy[128], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", spelling);
    char *word = strtok_r(copy, ".", &rest);
    snprintf(t->name, sizeof t->name, "%s", word);
    t->results = 1;
    unsigned types = 0;
    for (word = strtok_r(NULL, ".", &rest); word != NULL; word = strtok_r(NULL, ".", &rest)) {
        static const char *const geometries[] = {"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"};
        for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++) {
            if (strcmp(word, geometries[i]) != 0) continue;
            snprintf(t->geometry, sizeof t->geometry, "%s", word);
            t->layered = word[0] == 'a';
            t->cube = strstr(word, "cube") != NULL;
            t->dimensions = t->cube ? 3 : (unsigned)(word[t->layered] - '0');
        }
        if (strcmp(word, "v2") == 0) t->results = 2;
        if (strcmp(word, "v4") == 0) t->results = 4;
        if (is_type(word)) {
            char *to = types++ == 0 ? t->type : t->place_type;
            snprintf(to, sizeof t->type, "%s", word);
        }
    }
    if (t->place_type[0] == '\0') snprintf(t->place_type, sizeof t->place_type, "s32");
    t->coordinates = t->dimensions + t->layered;
}

/* f32x4 5x3 */
static bool read_array(struct texture *t, const char *format, const char *size) {
    const char *times = strchr(format, 'x');
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        size_t length = strlen(formats[i].name);
        if (times != NULL && (size_t)(times - format) == length &&
            strncmp(format, formats[i].name, length) == 0) {
            t->format = &formats[i];
        }
    }
    if (t->format == NULL) return false;
    t->channels = (unsigned)strtoul(times + 1, NULL, 10);
    for (unsigned i = 0; i < 3; i++) {
        char *end = NULL;
        t->size[i] = *size != '\0' ? strtoul(size, &end, 10) : 0;
        size = end != NULL && *end == 'x' ? end + 1 : "";
    }
    return t->channels > 0 && row_bytes(t) * rows_of(t) <= ARRAY_MAX;
}

static uint64_t case_place_mixed(uint64_t x) {
    x = (x + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

static uint16_t
case_place_half_of(float x) { /* exact, or cut off: which half does not matter here */
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    int exponent = (int)(word >> 23 & 0xff) - 112;
    if (exponent <= 0) return (uint16_t)(word >> 16 & 0x8000);
    return (uint16_t)((word >> 16 & 0x8000) | (unsigned)exponent << 10 | (word >> 13 & 0x3ff));
}

static void put_channel(const struct texture *t, size_t i, float x, uint64_t bits, uint8_t *to) {
    uint32_t word = (uint32_t)bits;
    if (t->format->kind == 'f' && t->format->bytes == 4) memcpy(&word, &x, sizeof word);
    if (t->format->kind == 'f' && t->format->bytes == 2) word = case_place_half_of(x);
    memcpy(to + i * t->format->bytes, &word, t->format->bytes);
}

/* texels=ramp: 0, 1, 2 ...; texels=one,K: 1 at texel K, 0 elsewhere; texels=level: the level;
 * otherwise seeded numbers. */
void case_texture_fill(const struct case_line *line, struct texture *t, unsigned level) {
    const char *set = case_value(line, "texels");
    long long one = 0;
    bool ramp = set != NULL && strncmp(set, "ramp", 4) == 0;
    bool single = set != NULL && strncmp(set, "one", 3) == 0;
    bool flat = set != NULL && strcmp(set, "level") == 0;
    if (single && set[3] == ',') case_numbers(set + 4, &one, 1);
    size_t channels = t->size[0] * rows_of(t) * t->channels;
    for (size_t i = 0; i < channels; i++) {
        uint64_t bits = case_place_mixed(i + 7777u * level);
        size_t texel = i / t->channels;
        float x = (float)((double)(bits >> 40) / 0x1p21 - 4);
        if (ramp) x = (float)texel, bits = texel;
        if (flat) x = (float)level, bits = level;
        if (single) {
            bool here = texel == (size_t)one;
            x = here ? 1 : 0;
            bits = here ? ~0ull >> (t->format->kind == 's') : 0;
            if (here && t->format->kind == 's') bits = (1ull << (8 * t->format->bytes - 1)) - 1;
        }
        put_channel(t, i, x, bits, t->texels);
    }
}

/* ---- places ---- */

static uint32_t case_place_bits_of(float x) {
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

/* Places along a dimension of n texels, in texels: before it, at and around texels, after it. */
static float case_place_spot(unsigned i, size_t n) {
    const float size = (float)n;
    const float spots[] = {
        0.5f,
        0.0f,
        0.25f,
        0.75f,
        1.0f,
        1.3f,
        1.5f,
        -0.001f,
        -0.25f,
        -0.5f,
        -0.75f,
        -1.0f,
        -1.6f,
        -2.3f,
        size,
        size - 0.5f,
        size - 0.25f,
        size - 0.75f,
        size - 1,
        size + 0.2f,
        size + 0.5f,
        size + 0.75f,
        size + 1.1f,
        size + 2.6f,
        2 * size,
        2 * size + 0.3f,
        -size,
        -size - 0.4f,
        -2 * size + 0.3f,
        3.4f * size,
        -3.7f * size,
        size / 2,
        size / 3,
        0.499f,
        0.501f,
        0.998f,
        0.5009765625f,
        0.501953125f,
        0.5029296875f,
        1000.3f,
        -1000.3f,
        1e10f,
        -1e10f,
        INFINITY,
        -INFINITY,
        NAN,
        1e-30f,
        -1e-30f,
    };
    return spots[i % (sizeof spots / sizeof spots[0])];
}

static int case_place_step(unsigned i, size_t n) {
    const int size = (int)n;
    const int steps[] = {0, 1,  -1,        size - 1, size,    size + 1,
                         2, -2, size + 7,  -1000000, 1000000, size / 2,
                         3, -7, INT32_MIN, INT32_MAX};
    return steps[i % (sizeof steps / sizeof steps[0])];
}

static size_t access_bytes(const struct texture *t) {
    return strtoul(t->type + 1, NULL, 10) / 8 * t->results;
}

/* Places by number: the first ones are inside. */
enum { INSIDE = 16 };

/* fine=FIRST,STEP,COUNT in parts of 4096 of a texel (or of one, where normalized) along the first
 * dimension; at=X,Y,Z for one thread; otherwise the usual places, crossed. */
static void choose_places(const struct case_line *line, struct texture *t) {
    static const unsigned factors[] = {1, 7, 5, 11}, shifts[] = {0, 3, 1, 2};
    bool integers = t->place_type[0] != 'f', normalized = case_has(line, "normalized");
    long long fine[3] = {0, 1, 1}, at[4] = {0}, layer = 0, lod[2] = {0};
    bool has_lod = case_numbers(case_value(line, "lod"), lod, 2) > 0;
    bool is_fine = case_numbers(case_value(line, "fine"), fine, 3) > 0;
    bool is_at = case_numbers(case_value(line, "at"), at, 4) > 0;
    bool is_surface = strncmp(t->name, "su", 2) == 0;
    bool bytes = is_surface && strstr(line->word[0], ".b.") != NULL;
    case_numbers(case_value(line, "layer"), &layer, 1);
    t->threads = is_fine ? (unsigned)fine[2] : is_at ? 1 : integers ? 48 : 96;
    if (strstr(t->name, "q") != NULL) t->threads = 1;
    if (t->threads > THREADS_MAX) t->threads = THREADS_MAX;
    for (unsigned i = 0; i < t->threads; i++) {
        uint32_t *place = t->place[i];
        unsigned next = 0;
        if (t->layered) {
            place[next++] = (uint32_t)(is_fine || is_at ? layer : (long long)(i % 5) - 1);
        }
        for (unsigned d = 0; d < t->dimensions; d++) {
            size_t size = t->size[d] > 0 ? t->size[d] : 1;
            unsigned pick = (i + shifts[d]) * factors[d] + (d > 0 ? i / 48 * 5 : 0);
            if (integers) {
                long long texel =
                    i < INSIDE ? (long long)(i / (d + 1) % size)
                               : case_place_step((i - INSIDE) * factors[d] + i / 16 * d, size);
                if (is_at) texel = at[d];
                if (is_fine && d == 0) texel = fine[0] + fine[1] * i;
                /* Bytes; where several threads choose, accesses are aligned. */
                size_t each = texel_bytes(t), access = access_bytes(t);
                if (bytes && d == 0) texel *= (long long)(is_at || each > access ? each : access);
                place[next++] = (uint32_t)texel;
                continue;
            }
            float x = is_at ? (float)at[d] / 4096 : case_place_spot(pick, size);
            if (t->cube) x = (float)((double)(case_place_mixed(4 * i + d) >> 40) / 0x1p23 - 1);
            if (is_fine) x = d == 0 ? (float)(fine[0] + fine[1] * i) / 4096 : (float)at[d] / 4096;
            if (normalized && !is_fine && !is_at && !t->cube) x /= (float)size;
            place[next++] = case_place_bits_of(x);
        }
        if (has_lod) place[next] = case_place_bits_of((float)(lod[0] + lod[1] * i) / 4096);
        for (unsigned r = 0; r < RESULTS; r++) {
            uint64_t bits = case_place_mixed(1000 + RESULTS * i + r);
            float x = (float)((double)(bits >> 40) / 0x1p14 - 512);
            t->values[i][r] = t->type[0] == 'f' ? case_place_bits_of(x) : bits >> (i % 3 * 12);
        }
    }
}

bool case_texture_read(const struct case_line *line, struct texture *t) {
    memset(t, 0, sizeof *t);
    case_place_read_instruction(t, line->word[0]);
    if (!read_array(t, line->word[1], line->word[2])) return false;
    if (t->cube) t->size[2] = t->layered ? 12 : 6;
    t->layered |= case_has(line, "layered");
    case_texture_fill(line, t, 0);
    choose_places(line, t);
    return true;
}
