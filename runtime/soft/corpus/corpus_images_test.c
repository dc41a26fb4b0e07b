/*
 * The corpus's program about textures, compared with formulae of images.h.
 */
#include "corpus.h"
#include "images_scene.h"

#include <string.h>

TestSuite(corpus_images, .fini = test_soft_close);

#define NEAR(what, i, got, expected, tolerance)                                                    \
    cr_assert(fabs((double)(got) - (expected)) <= (tolerance), "%s: %s %u: %.9g, not %.9g",        \
              corpus_version(), what, (unsigned)(i), (double)(got), (double)(expected))

enum { TEXELS = 4096 };

static const float unset[4] = {0, 0, 0, 0};

static float random_float(uint32_t seed) {
    return (float)(int32_t)(corpus_mix(seed) % 20001) / 100.0f - 100.0f;
}

/* All modes, both filters, with and without a scale, of a texture of floats. */
static void check_modes(CUmodule module, const char *kernel, int dimensions, const int size[3]) {
    static float texels[TEXELS];
    static float places[IMAGES_PLACES][3], got[IMAGES_PLACES][4];
    size_t compared = 0;
    for (uint32_t i = 0; i < TEXELS; i++) texels[i] = random_float(i);
    CUarray array = images_array(
        (CUDA_ARRAY3D_DESCRIPTOR){(size_t)size[0], dimensions > 1 ? (size_t)size[1] : 0,
                                  dimensions > 2 ? (size_t)size[2] : 0, CU_AD_FORMAT_FLOAT, 4, 0},
        texels);
    for (unsigned way = 0; way < 16; way++) {
        enum images_mode mode = (enum images_mode)(way % 4);
        struct images_oracle o = {.texels = texels,
                                  .channels = 4,
                                  .dimensions = dimensions,
                                  .size = {size[0], size[1], size[2]},
                                  .mode = {mode, (enum images_mode)((mode + way / 4) % 4), mode},
                                  .linear = (way & 4) != 0,
                                  .normalised = (way & 8) != 0,
                                  .border = {1.5f, -2.5f, 100.0f, 0.25f}};
        CUtexObject texture = images_texture(array, &o, 0);
        images_choose(&o, places);
        images_run(module, kernel, texture, places, got);
        for (uint32_t i = 0; i < IMAGES_PLACES; i++) {
            if (images_on_edge(&o, places[i])) continue;
            compared++;
            for (int c = 0; c < 4; c++) {
                double expected = images_sample(&o, places[i], c);
                NEAR(kernel, i + way * 1000, got[i][c], expected, o.linear ? 1e-4 : 0.0);
            }
        }
        cr_assert_eq(cuTexObjectDestroy(texture), CUDA_SUCCESS);
        /* Memory of a check is limited: what this way has used goes. */
        corpus_forget(2);
    }
    cr_assert_gt(compared, 16 * IMAGES_PLACES / 2);
    cr_assert_eq(cuArrayDestroy(array), CUDA_SUCCESS);
}

static void check_1d(CUmodule module) {
    check_modes(module, "sample_1d", 1, (const int[3]){17, 1, 1});
}
static void check_2d(CUmodule module) {
    check_modes(module, "sample_2d", 2, (const int[3]){13, 7, 1});
    check_modes(module, "sample_2d_level", 2, (const int[3]){8, 16, 1});
    check_modes(module, "sample_2d_gradient", 2, (const int[3]){5, 3, 1});
}
static void check_3d(CUmodule module) {
    check_modes(module, "sample_3d", 3, (const int[3]){7, 5, 4});
}

CORPUS_TEST(corpus_images, one_dimension, { cr_assert_eq(corpus_each("images", check_1d), 3); })
CORPUS_TEST(corpus_images, two_dimensions, { cr_assert_eq(corpus_each("images", check_2d), 3); })
CORPUS_TEST(corpus_images, three_dimensions, { cr_assert_eq(corpus_each("images", check_3d), 3); })

/* Bytes and half-words become numbers from 0 or -1 to 1, halves what they are. */
static void check_formats(CUmodule module) {
    enum { SIDE = 16 };
    static const struct {
        CUarray_format format;
        unsigned bytes;
        double scale;
        bool is_signed;
    } formats[] = {{CU_AD_FORMAT_UNSIGNED_INT8, 1, 255, false},
                   {CU_AD_FORMAT_SIGNED_INT8, 1, 127, true},
                   {CU_AD_FORMAT_UNSIGNED_INT16, 2, 65535, false},
                   {CU_AD_FORMAT_SIGNED_INT16, 2, 32767, true}};
    static uint8_t bytes[SIDE * SIDE * 8];
    static float texels[SIDE * SIDE * 4], places[IMAGES_PLACES][3], got[IMAGES_PLACES][4];
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        for (uint32_t i = 0; i < SIDE * SIDE * 4; i++) {
            uint32_t value = corpus_mix(i + 77) & (formats[f].bytes == 1 ? 0xff : 0xffff);
            memcpy(bytes + i * formats[f].bytes, &value, formats[f].bytes);
            double number = formats[f].bytes == 1 ? (double)(int8_t)value : (double)(int16_t)value;
            if (!formats[f].is_signed) number = value;
            texels[i] = (float)fmax(number / formats[f].scale, -1.0);
        }
        CUarray array =
            images_array((CUDA_ARRAY3D_DESCRIPTOR){SIDE, SIDE, 0, formats[f].format, 4, 0}, bytes);
        for (int linear = 0; linear < 2; linear++) {
            struct images_oracle o = {.texels = texels,
                                      .channels = 4,
                                      .dimensions = 2,
                                      .size = {SIDE, SIDE, 1},
                                      .mode = {IMAGES_CLAMP, IMAGES_CLAMP, IMAGES_CLAMP},
                                      .linear = linear};
            CUtexObject texture = images_texture(array, &o, 0);
            images_choose(&o, places);
            images_run(module, "sample_2d", texture, places, got);
            for (uint32_t i = 0; i < IMAGES_PLACES; i++) {
                if (images_on_edge(&o, places[i])) continue;
                for (int c = 0; c < 4; c++) {
                    NEAR("format", i + f * 1000, got[i][c], images_sample(&o, places[i], c),
                         linear ? 2e-5 : 1e-6); /* of 16 bits */
                }
            }
            cr_assert_eq(cuTexObjectDestroy(texture), CUDA_SUCCESS);
            corpus_forget(2);
        }
        cr_assert_eq(cuArrayDestroy(array), CUDA_SUCCESS);
    }
}

/* Integers as they are, by CU_TRSF_READ_AS_INTEGER, and sign-extended. */
static void check_integers(CUmodule module) {
    enum { SIDE = 8 };
    int16_t texels[SIDE][SIDE][2];
    static float places[IMAGES_PLACES][3];
    int32_t got[IMAGES_PLACES][4];
    struct images_oracle o = {.mode = {IMAGES_CLAMP, IMAGES_CLAMP, IMAGES_CLAMP},
                              .dimensions = 2,
                              .size = {SIDE, SIDE, 1}};
    for (uint32_t i = 0; i < SIDE * SIDE * 2; i++) (&texels[0][0][0])[i] = (int16_t)corpus_mix(i);
    CUarray array = images_array(
        (CUDA_ARRAY3D_DESCRIPTOR){SIDE, SIDE, 0, CU_AD_FORMAT_SIGNED_INT16, 2, 0}, texels);
    CUtexObject texture = images_texture(array, &o, CU_TRSF_READ_AS_INTEGER);
    images_choose(&o, places);
    images_run(module, "sample_2d_whole", texture, places, (float(*)[4])(void *)got);
    for (uint32_t i = 0; i < IMAGES_PLACES; i++) {
        int x = (int)fmin(fmax(floor(places[i][0]), 0), SIDE - 1);
        int y = (int)fmin(fmax(floor(places[i][1]), 0), SIDE - 1);
        cr_assert_eq(got[i][0], texels[y][x][0]);
        cr_assert_eq(got[i][1], texels[y][x][1]);
        cr_assert(got[i][2] == 0 && got[i][3] == 0);
    }
    cr_assert_eq(cuTexObjectDestroy(texture), CUDA_SUCCESS);
    cr_assert_eq(cuArrayDestroy(array), CUDA_SUCCESS);
}

CORPUS_TEST(corpus_images, formats, { cr_assert_eq(corpus_each("images", check_formats), 3); })
CORPUS_TEST(corpus_images, integers, { cr_assert_eq(corpus_each("images", check_integers), 3); })

/* Memory as a texture: in a row, outside of which there are zeros; and in rows with a pitch. */
static void check_memory(CUmodule module) {
    enum { COUNT = 100, PITCH = 128, ROWS = 6, WIDTH = 7 };
    float texels[COUNT][4], got[IMAGES_PLACES][4], rows[ROWS][PITCH / 4], places[IMAGES_PLACES][3];
    int32_t at[IMAGES_PLACES];
    uint32_t count = IMAGES_PLACES;
    CUtexObject texture = 0;
    for (uint32_t i = 0; i < COUNT * 4; i++) (&texels[0][0])[i] = random_float(i);
    for (uint32_t i = 0; i < ROWS * PITCH / 4; i++) (&rows[0][0])[i] = random_float(i);
    for (int i = 0; i < IMAGES_PLACES; i++) at[i] = i - IMAGES_PLACES / 4;
    CUdeviceptr memory = corpus_put(texels, sizeof texels), flat = corpus_put(rows, sizeof rows);
    CUdeviceptr out = corpus_put(NULL, sizeof got), where = corpus_put(at, sizeof at);
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
    CUDA_TEXTURE_DESC description = {.filterMode = CU_TR_FILTER_MODE_POINT};
    resource.res.linear.devPtr = memory;
    resource.res.linear.format = CU_AD_FORMAT_FLOAT;
    resource.res.linear.numChannels = 4;
    resource.res.linear.sizeInBytes = sizeof texels;
    cr_assert_eq(cuTexObjectCreate(&texture, &resource, &description, NULL), CUDA_SUCCESS);
    CORPUS_LAUNCH(module, "fetch_1d", 2, IMAGES_PLACES / 2, 0, &out, &texture, &where, &count);
    corpus_get(out, got, sizeof got);
    for (int i = 0; i < IMAGES_PLACES; i++) {
        bool inside = at[i] >= 0 && at[i] < COUNT;
        cr_assert(memcmp(got[i], inside ? texels[at[i]] : unset, sizeof got[i]) == 0, "%d", at[i]);
    }
    cr_assert_eq(cuTexObjectDestroy(texture), CUDA_SUCCESS);

    resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_PITCH2D};
    resource.res.pitch2D.devPtr = flat;
    resource.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
    resource.res.pitch2D.numChannels = 1;
    resource.res.pitch2D.width = WIDTH;
    resource.res.pitch2D.height = ROWS;
    resource.res.pitch2D.pitchInBytes = PITCH;
    description.filterMode = CU_TR_FILTER_MODE_LINEAR;
    for (int i = 0; i < 3; i++) description.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
    cr_assert_eq(cuTexObjectCreate(&texture, &resource, &description, NULL), CUDA_SUCCESS);
    float dense[ROWS][WIDTH];
    for (int y = 0; y < ROWS; y++) memcpy(dense[y], rows[y], sizeof dense[y]);
    struct images_oracle o = {.texels = &dense[0][0],
                              .channels = 1,
                              .dimensions = 2,
                              .size = {WIDTH, ROWS, 1},
                              .mode = {IMAGES_CLAMP, IMAGES_CLAMP, IMAGES_CLAMP},
                              .linear = true};
    images_choose(&o, places);
    images_run(module, "sample_2d", texture, places, got);
    for (uint32_t i = 0; i < IMAGES_PLACES; i++) {
        if (images_on_edge(&o, places[i])) continue;
        NEAR("row", i, got[i][0], images_sample(&o, places[i], 0), 1e-4);
        cr_assert(got[i][1] == 0 && got[i][2] == 0 && got[i][3] == 0);
    }
    cr_assert_eq(cuTexObjectDestroy(texture), CUDA_SUCCESS);
}

CORPUS_TEST(corpus_images, memory, { cr_assert_eq(corpus_each("images", check_memory), 3); })

/* Layers are chosen, never mixed; a number outside, below 0 too, is that of the last one. */
static void check_layers(CUmodule module) {
    enum { WIDTH = 9, HEIGHT = 5, LAYERS = 4 };
    static float texels[LAYERS * HEIGHT * WIDTH * 2], places[IMAGES_PLACES][3],
        got[IMAGES_PLACES][4];
    for (uint32_t i = 0; i < LAYERS * HEIGHT * WIDTH * 2; i++) texels[i] = random_float(i);
    for (int dimensions = 1; dimensions < 3; dimensions++) {
        int rows = dimensions > 1 ? HEIGHT : 1;
        CUarray array =
            images_array((CUDA_ARRAY3D_DESCRIPTOR){WIDTH, dimensions > 1 ? HEIGHT : 0, LAYERS,
                                                   CU_AD_FORMAT_FLOAT, 2, CUDA_ARRAY3D_LAYERED},
                         texels);
        struct images_oracle o = {.channels = 2,
                                  .dimensions = dimensions,
                                  .size = {WIDTH, rows, 1},
                                  .mode = {IMAGES_CLAMP, IMAGES_BORDER, IMAGES_CLAMP},
                                  .linear = true,
                                  .layered = true};
        CUtexObject texture = images_texture(array, &o, 0);
        images_choose(&o, places);
        for (uint32_t i = 0; i < IMAGES_PLACES; i++) places[i][2] = (float)(i % 8) - 2;
        images_run(module, dimensions == 1 ? "sample_layers_1d" : "sample_layers_2d", texture,
                   places, got);
        for (uint32_t i = 0; i < IMAGES_PLACES; i++) {
            int layer = places[i][2] >= 0 && places[i][2] < LAYERS ? (int)places[i][2] : LAYERS - 1;
            o.texels = texels + layer * rows * WIDTH * 2;
            if (images_on_edge(&o, places[i])) continue;
            for (int c = 0; c < 2; c++) {
                NEAR("layer", i, got[i][c], images_sample(&o, places[i], c), 1e-4);
            }
        }
        cr_assert_eq(cuTexObjectDestroy(texture), CUDA_SUCCESS);
        cr_assert_eq(cuArrayDestroy(array), CUDA_SUCCESS);
        corpus_forget(2);
    }
}

/* Directions through the middles of a cube's texels: the guide's table, read from the face to the
 * direction. */
static void check_cube(CUmodule module) {
    enum { SIDE = 4 };
    static float texels[6][SIDE][SIDE], places[IMAGES_PLACES][3], got[IMAGES_PLACES][4];
    struct images_oracle o = {.mode = {IMAGES_CLAMP, IMAGES_CLAMP, IMAGES_CLAMP},
                              .normalised = true};
    for (uint32_t i = 0; i < 6 * SIDE * SIDE; i++) (&texels[0][0][0])[i] = random_float(i);
    CUarray array = images_array(
        (CUDA_ARRAY3D_DESCRIPTOR){SIDE, SIDE, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP},
        texels);
    CUtexObject texture = images_texture(array, &o, 0);
    for (uint32_t i = 0; i < IMAGES_PLACES; i++) {
        uint32_t face = i / (SIDE * SIDE) % 6, y = i / SIDE % SIDE, x = i % SIDE;
        float s = ((float)x + 0.5f) * 2 / SIDE - 1, t = ((float)y + 0.5f) * 2 / SIDE - 1;
        const float directions[6][3] = {{1, -t, -s}, {-1, -t, s}, {s, 1, t},
                                        {s, -1, -t}, {s, -t, 1},  {-s, -t, -1}};
        for (int d = 0; d < 3; d++) places[i][d] = directions[face][d] * (float)(1 + i % 3);
    }
    images_run(module, "sample_cube", texture, places, got);
    for (uint32_t i = 0; i < IMAGES_PLACES; i++) {
        cr_assert_eq(got[i][0], (&texels[0][0][0])[i % (6 * SIDE * SIDE)], "place %u", i);
    }
    cr_assert_eq(cuTexObjectDestroy(texture), CUDA_SUCCESS);
    cr_assert_eq(cuArrayDestroy(array), CUDA_SUCCESS);
}

/* The four texels around a place, from the lower left on, against the clock. */
static void check_gather(CUmodule module) {
    enum { SIDE = 6 };
    float texels[SIDE][SIDE][2], places[IMAGES_PLACES][3], got[IMAGES_PLACES][4];
    struct images_oracle o = {.mode = {IMAGES_CLAMP, IMAGES_CLAMP, IMAGES_CLAMP},
                              .dimensions = 2,
                              .size = {SIDE, SIDE, 1}};
    for (uint32_t i = 0; i < SIDE * SIDE * 2; i++) (&texels[0][0][0])[i] = random_float(i);
    CUarray array = images_array((CUDA_ARRAY3D_DESCRIPTOR){SIDE, SIDE, 0, CU_AD_FORMAT_FLOAT, 2,
                                                           CUDA_ARRAY3D_TEXTURE_GATHER},
                                 texels);
    CUtexObject texture = images_texture(array, &o, 0);
    images_choose(&o, places);
    images_run(module, "gather", texture, places, got);
    for (uint32_t i = 0; i < IMAGES_PLACES; i++) {
        for (int corner = 0; corner < 4; corner++) {
            int right = corner == 1 || corner == 2, down = corner < 2;
            int x = (int)floor((double)places[i][0] - 0.5) + right;
            int y = (int)floor((double)places[i][1] - 0.5) + down;
            x = x < 0 ? 0 : x >= SIDE ? SIDE - 1 : x;
            y = y < 0 ? 0 : y >= SIDE ? SIDE - 1 : y;
            cr_assert_eq(got[i][corner], texels[y][x][1], "place %u, corner %d", i, corner);
        }
    }
    cr_assert_eq(cuTexObjectDestroy(texture), CUDA_SUCCESS);
    cr_assert_eq(cuArrayDestroy(array), CUDA_SUCCESS);
}

CORPUS_TEST(corpus_images, layers, { cr_assert_eq(corpus_each("images", check_layers), 3); })
CORPUS_TEST(corpus_images, cubes, { cr_assert_eq(corpus_each("images", check_cube), 3); })
CORPUS_TEST(corpus_images, gathers, { cr_assert_eq(corpus_each("images", check_gather), 3); })
