/*
 * Texture reads of a whole warp against reads lane by lane, bit by bit: in one launch all lanes
 * have one texture, in the other every second lane has another one that is equal. Formats, shapes,
 * modes, texels and coordinates are drawn. A launch repeats its read, because the first of a warp
 * is always executed lane by lane.
 */
#include "test/test_api.h"
#include "test/test_soft.h"

#include <math.h>
#include <string.h>

TestSuite(sample, .init = test_soft_open);

enum { TEXTURES = 600, LANES = 32, READS = 5, SIZE_MAX_1D = 70, WIDE = 131072 };

/* What a kernel reads and writes. */
struct scene {
    uint64_t handles[LANES];
    uint32_t coordinates[READS][4][LANES];
    uint32_t results[READS][4][LANES];
    uint64_t mask; /* of the lanes that read */
};

enum geometry { ROW, FLAT, SOLID, ROWS, FLATS, GEOMETRIES };
static const struct shape {
    const char *name, *vector;
    unsigned dimensions;
    bool layered;
} shapes[GEOMETRIES] = {
    [ROW] = {"1d", "{%c0}", 1, false},
    [FLAT] = {"2d", "{%c0, %c1}", 2, false},
    [SOLID] = {"3d", "{%c0, %c1, %c2, %c2}", 3, false},
    [ROWS] = {"a1d", "{%c3, %c0}", 1, true},
    [FLATS] = {"a2d", "{%c3, %c0, %c1, %c1}", 2, true},
};

static const struct format {
    CUarray_format format;
    unsigned bytes;
    bool is_float;
} formats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 1, false},
    {CU_AD_FORMAT_SIGNED_INT8, 1, false},
    {CU_AD_FORMAT_UNSIGNED_INT16, 2, false},
    {CU_AD_FORMAT_SIGNED_INT16, 2, false},
    {CU_AD_FORMAT_UNSIGNED_INT32, 4, false},
    {CU_AD_FORMAT_SIGNED_INT32, 4, false},
    {CU_AD_FORMAT_HALF, 2, true},
    {CU_AD_FORMAT_FLOAT, 4, true},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* A texture, as drawn. */
struct drawn_texture {
    enum geometry geometry;
    enum { IN_ARRAY, IN_ROW, IN_ROWS } place; /* of memory */
    const struct format *format;
    unsigned channels, size[3]; /* size[2] counts layers as well */
    CUDA_TEXTURE_DESC description;
    bool by_number;
};

static uint32_t random_word(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 32);
}

static uint32_t random_below(uint64_t *seed, uint32_t count) {
    return random_word(seed) % count;
}

static uint32_t bits_of(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static struct drawn_texture draw_texture(uint64_t *seed) {
    static const CUfilter_mode filters[] = {CU_TR_FILTER_MODE_POINT, CU_TR_FILTER_MODE_LINEAR};
    struct drawn_texture t = {.geometry = random_below(seed, GEOMETRIES),
                              .format = &formats[random_below(seed, FORMATS)],
                              .channels = 1u << random_below(seed, 3),
                              .by_number = random_below(seed, 4) == 0};
    for (unsigned d = 0; d < 3; d++) {
        t.size[d] = 1 + random_below(seed, d == 0 ? SIZE_MAX_1D : 7);
        t.description.addressMode[d] = (CUaddress_mode)random_below(seed, 4);
    }
    if (random_below(seed, 16) == 0) {
        t.geometry = ROW;
        t.channels = 1;
        t.format = &formats[random_below(seed, 2)];
        t.size[0] = WIDE;
    } else if (random_below(seed, 3) == 0 && t.geometry <= FLAT) {
        t.place = t.geometry == ROW ? IN_ROW : IN_ROWS;
        if (t.place == IN_ROW) t.by_number = true;
    }
    /* Integers of 32 bits have no filter. */
    if (t.format->is_float || t.format->bytes < 4) {
        t.description.filterMode = filters[random_below(seed, 2)];
    }
    if (random_below(seed, 2) == 0) t.description.flags |= CU_TRSF_NORMALIZED_COORDINATES;
    if (random_below(seed, 3) == 0 && !t.format->is_float) {
        t.description.flags |= CU_TRSF_READ_AS_INTEGER;
    }
    for (unsigned i = 0; i < 4; i++) {
        t.description.borderColor[i] = (float)(int)random_below(seed, 41) / 16 - 1;
    }
    return t;
}

/* Any bytes; of floats mostly numbers of moderate size, so that sums are rounded. */
static void draw_texels(const struct drawn_texture *t, uint8_t *bytes, size_t count,
                        uint64_t *seed) {
    const bool wild = random_below(seed, 4) == 0;
    for (size_t i = 0; i < count; i += t->format->bytes) {
        uint32_t word = random_word(seed);
        if (t->format->is_float && !wild) {
            word =
                t->format->bytes == 4 ? (word & 0x83ffffff) | 0x3c000000 : (word & 0x8fff) | 0x3000;
        }
        memcpy(bytes + i, &word, t->format->bytes);
    }
}

/* An array with the texels of a host. */
static CUarray array_of(const struct drawn_texture *t, const uint8_t *bytes) {
    const struct shape *shape = &shapes[t->geometry];
    const unsigned rows = shape->dimensions > 1 ? t->size[1] : 1;
    const bool deep = shape->layered || shape->dimensions == 3;
    const CUDA_ARRAY3D_DESCRIPTOR wanted = {t->size[0],
                                            shape->dimensions > 1 ? t->size[1] : 0,
                                            deep ? t->size[2] : 0,
                                            t->format->format,
                                            t->channels,
                                            shape->layered ? CUDA_ARRAY3D_LAYERED : 0};
    CUarray array = NULL;
    OK(cuArray3DCreate_v2(&array, &wanted));
    const size_t pitch = (size_t)t->size[0] * t->channels * t->format->bytes;
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = bytes,
                          .srcPitch = pitch,
                          .srcHeight = rows,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstArray = array,
                          .WidthInBytes = pitch,
                          .Height = rows,
                          .Depth = deep ? t->size[2] : 1};
    OK(cuMemcpy3D_v2(&copy));
    return array;
}

/* Two equal objects. */
static void make_objects(const struct drawn_texture *t, const uint8_t *bytes, CUtexObject pair[2]) {
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    const size_t pitch = 1152, row = (size_t)t->size[0] * t->channels * t->format->bytes;
    CUdeviceptr memory = 0;
    if (t->place == IN_ARRAY) {
        resource.res.array.hArray = array_of(t, bytes);
    } else {
        OK(cuMemAlloc_v2(&memory, pitch * 8));
        OK(cuMemcpyHtoD_v2(memory, bytes, pitch * 8));
    }
    if (t->place == IN_ROW) {
        resource.resType = CU_RESOURCE_TYPE_LINEAR;
        resource.res.linear.devPtr = memory;
        resource.res.linear.format = t->format->format;
        resource.res.linear.numChannels = t->channels;
        resource.res.linear.sizeInBytes = row;
    } else if (t->place == IN_ROWS) {
        resource.resType = CU_RESOURCE_TYPE_PITCH2D;
        resource.res.pitch2D.devPtr = memory;
        resource.res.pitch2D.format = t->format->format;
        resource.res.pitch2D.numChannels = t->channels;
        resource.res.pitch2D.width = t->size[0];
        resource.res.pitch2D.height = t->size[1];
        resource.res.pitch2D.pitchInBytes = pitch;
    }
    for (int i = 0; i < 2; i++) OK(cuTexObjectCreate(&pair[i], &resource, &t->description, NULL));
}

static uint32_t draw_number(uint32_t size, uint64_t *seed) {
    switch (random_below(seed, 20)) {
    case 0:
        return random_word(seed);
    case 1:
        return INT32_MAX;
    default:
        return random_below(seed, size + 4) - 2;
    }
}

/* A position in texels, often on an edge of a step or of a texel. */
static float draw_position(uint32_t size, uint64_t *seed) {
    static const float special[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, -0.0f, 1e-40f, 3e9f};
    const float position = ((float)random_word(seed) * 0x1p-31f - 0.5f) * ((float)size + 2);
    switch (random_below(seed, 12)) {
    case 0:
        return special[random_below(seed, sizeof special / sizeof *special)];
    case 1:
        return floorf(position);
    case 2:
        return floorf(position) + 0.5f;
    case 3:
    case 4:
        return floorf(position * 512) / 512;
    default:
        return position;
    }
}

static uint32_t draw_coordinate(const struct drawn_texture *t, uint32_t size, uint64_t *seed) {
    if (t->by_number) return draw_number(size, seed);
    const bool scales = (t->description.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    float position = draw_position(size, seed);
    return bits_of(scales ? position / (float)size : position);
}

/* In every second read the lanes are beside each other along x, and in one row. */
static void draw_coordinates(const struct drawn_texture *t, struct scene *scene, uint64_t *seed) {
    for (unsigned read = 0; read < READS; read++) {
        const int first = (int)random_below(seed, t->size[0] + 1) - 16;
        for (unsigned d = 0; d < 3; d++) {
            const uint32_t same = draw_coordinate(t, t->size[d], seed);
            for (unsigned lane = 0; lane < LANES; lane++) {
                uint32_t *to = &scene->coordinates[read][d][lane];
                const float x = (float)(first + (int)lane) + 0.3f;
                const bool scales = (t->description.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
                *to = read % 2 == 0  ? draw_coordinate(t, t->size[d], seed)
                      : d > 0        ? same
                      : t->by_number ? (uint32_t)(first + (int)lane)
                                     : bits_of(scales ? x / (float)t->size[0] : x);
            }
        }
        for (unsigned lane = 0; lane < LANES; lane++) {
            scene->coordinates[read][3][lane] = draw_number(t->size[2], seed);
        }
    }
}

/* A warp that reads READS times with one instruction. */
static const char *text_of(const struct drawn_texture *t) {
    static char text[3000];
    const struct shape *shape = &shapes[t->geometry];
    const bool floats =
        t->format->is_float ||
        ((t->description.flags & CU_TRSF_READ_AS_INTEGER) == 0 && t->format->bytes < 4);
    snprintf(
        text, sizeof text,
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 out)\n{\n"
        ".reg .b64 %%p, %%h, %%m, %%a; .reg .b32 %%c<4>, %%r<4>, %%t, %%i; .reg .pred %%q, %%on;\n"
        "ld.param.u64 %%p, [out]; mov.u32 %%t, %%tid.x; ld.global.u64 %%m, [%%p+%u];\n"
        "shr.u64 %%m, %%m, %%t; and.b64 %%m, %%m, 1; setp.ne.u64 %%on, %%m, 0;\n"
        "mad.wide.u32 %%a, %%t, 8, %%p; ld.global.u64 %%h, [%%a];\n"
        "mad.wide.u32 %%a, %%t, 4, %%p; mov.u32 %%i, 0;\n"
        "AGAIN:\n"
        "ld.global.b32 %%c0, [%%a+256]; ld.global.b32 %%c1, [%%a+384];\n"
        "ld.global.b32 %%c2, [%%a+512]; ld.global.b32 %%c3, [%%a+640];\n"
        "mov.b32 %%r0, 7; mov.b32 %%r1, 7; mov.b32 %%r2, 7; mov.b32 %%r3, 7;\n"
        "@%%on tex.%s.v4.%s.%s {%%r0, %%r1, %%r2, %%r3}, [%%h, %s];\n"
        "st.global.b32 [%%a+%u], %%r0; st.global.b32 [%%a+%u], %%r1;\n"
        "st.global.b32 [%%a+%u], %%r2; st.global.b32 [%%a+%u], %%r3;\n"
        "add.u64 %%a, %%a, 512; add.u32 %%i, %%i, 1; setp.lt.u32 %%q, %%i, %u;\n"
        "@%%q bra AGAIN;\nret;\n}\n",
        (unsigned)offsetof(struct scene, mask), shape->name, floats ? "f32" : "u32",
        t->by_number ? "s32" : "f32", shape->vector, 256 + 512 * READS, 384 + 512 * READS,
        512 + 512 * READS, 640 + 512 * READS, READS);
    return text;
}

static void run(const struct drawn_texture *t, struct scene *scene) {
    CUresult result = test_run(text_of(t), 1, LANES, scene, sizeof *scene);
    cr_assert_eq(result, CUDA_SUCCESS, "%d: %s", (int)result, test_log());
}

static void compare(const struct drawn_texture *t, uint64_t *seed, int number) {
    static uint8_t bytes[WIDE];
    static struct scene together, apart;
    const uint64_t masks[] = {UINT32_MAX, UINT32_MAX, random_word(seed) | 1};
    CUtexObject pair[2];
    draw_texels(t, bytes, sizeof bytes, seed);
    make_objects(t, bytes, pair);
    together.mask = masks[random_below(seed, 3)];
    draw_coordinates(t, &together, seed);
    apart = together;
    for (unsigned lane = 0; lane < LANES; lane++) {
        together.handles[lane] = pair[0];
        apart.handles[lane] = pair[lane % 2];
    }
    run(t, &together);
    run(t, &apart);
    for (unsigned i = 0; i < READS * 4 * LANES; i++) {
        const uint32_t *x = (const uint32_t *)together.results,
                       *y = (const uint32_t *)apart.results;
        const unsigned read = i / 4 / LANES, lane = i % LANES;
        cr_assert_eq(x[i], y[i],
                     "texture %d: .%s, format 0x%x of %u channels, %ux%ux%u, filter %d, modes "
                     "%d %d %d, flags %x, read %u, channel %u, lane %u at 0x%x 0x%x 0x%x, layer "
                     "%d: 0x%x together, 0x%x apart",
                     number, shapes[t->geometry].name, t->format->format, t->channels, t->size[0],
                     t->size[1], t->size[2], (int)t->description.filterMode,
                     (int)t->description.addressMode[0], (int)t->description.addressMode[1],
                     (int)t->description.addressMode[2], t->description.flags, read, i / LANES % 4,
                     lane, together.coordinates[read][0][lane], together.coordinates[read][1][lane],
                     together.coordinates[read][2][lane], (int)together.coordinates[read][3][lane],
                     x[i], y[i]);
    }
    for (int i = 0; i < 2; i++) OK(cuTexObjectDestroy(pair[i]));
}

Test(sample, a_warp_reads_what_its_lanes_would) {
    uint64_t seed = 1;
    for (int i = 0; i < TEXTURES; i++) {
        struct drawn_texture t = draw_texture(&seed);
        compare(&t, &seed, i);
    }
}

/* A texture of 64 numbers, of which the first 40 were written. */
static CUtexObject half_written(void) {
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
    const CUDA_TEXTURE_DESC description = {.addressMode = {1, 1, 1}};
    uint32_t numbers[40];
    CUtexObject texture = 0;
    for (uint32_t i = 0; i < 40; i++) numbers[i] = 100 + i;
    OK(cuMemAlloc_v2(&resource.res.linear.devPtr, 256));
    OK(cuMemcpyHtoD_v2(resource.res.linear.devPtr, numbers, sizeof numbers));
    resource.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT32;
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = 256;
    OK(cuTexObjectCreate(&texture, &resource, &description, NULL));
    return texture;
}

/* The lanes read 32 texels from each read's number on. */
static const char *read_rows(const uint32_t first[READS]) {
    static struct scene scene;
    const struct drawn_texture t = {
        .geometry = ROW, .format = &formats[4], .channels = 1, .by_number = true};
    const CUtexObject texture = half_written();
    scene.mask = UINT32_MAX;
    for (unsigned i = 0; i < READS * LANES; i++) {
        scene.handles[i % LANES] = texture;
        scene.coordinates[i / LANES][0][i % LANES] = first[i / LANES] + i % LANES;
    }
    test_capture(stderr);
    run(&t, &scene);
    for (unsigned i = 0; i < READS * LANES; i++) {
        const uint32_t number = first[i / LANES] + i % LANES;
        cr_assert_eq(scene.results[i / LANES][0][i % LANES], number < 40 ? 100 + number : 0);
    }
    return test_captured(stderr);
}

Test(sample, texels_that_were_not_written_are_reported_in_a_later_read) {
    const char *said = read_rows((const uint32_t[READS]){0, 8, 9, 0, 0});
    cr_assert(strstr(said, "uninitialised read in kernel k") != NULL, "%s", said);
    cr_assert(strstr(said, "thread (31,0,0)") != NULL, "%s", said);
}

Test(sample, texels_outside_are_not_reported) {
    const char *said = read_rows((const uint32_t[READS]){0, 8, 0xffffffe0, 64, 0});
    cr_assert_str_empty(said);
}
