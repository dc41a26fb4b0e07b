/*
 * The corpus's program about surfaces: stores, and accesses outside.
 */
#include "corpus.h"
#include "images_scene.h"

TestSuite(corpus_surfaces, .fini = test_soft_close);

static void check_surfaces(CUmodule module) {
    enum { WIDTH = 19, HEIGHT = 11, DEPTH = 3 };
    uint8_t pixels[HEIGHT][WIDTH][4], back[HEIGHT][WIDTH][4];
    static float pairs[DEPTH][HEIGHT][WIDTH][2], pairs_back[DEPTH][HEIGHT][WIDTH][2];
    int16_t layers[DEPTH][HEIGHT][WIDTH], layers_back[DEPTH][HEIGHT][WIDTH];
    int width = WIDTH, height = HEIGHT, depth = DEPTH, first = 0, second = 2;
    const unsigned flags = CUDA_ARRAY3D_SURFACE_LDST;
    for (uint32_t i = 0; i < sizeof pixels; i++) (&pixels[0][0][0])[i] = (uint8_t)corpus_mix(i);
    for (uint32_t i = 0; i < sizeof pairs / 4; i++) {
        (&pairs[0][0][0][0])[i] = (float)(corpus_mix(i) % 1000);
    }
    for (uint32_t i = 0; i < sizeof layers / 2; i++) {
        (&layers[0][0][0])[i] = (int16_t)(corpus_mix(i) % 1000);
    }
    CUarray one = images_array(
        (CUDA_ARRAY3D_DESCRIPTOR){WIDTH, HEIGHT, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, flags}, pixels);
    CUarray other = images_array(
        (CUDA_ARRAY3D_DESCRIPTOR){WIDTH, HEIGHT, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, flags}, pixels);
    CUarray box = images_array(
        (CUDA_ARRAY3D_DESCRIPTOR){WIDTH, HEIGHT, DEPTH, CU_AD_FORMAT_FLOAT, 2, flags}, pairs);
    CUarray layered =
        images_array((CUDA_ARRAY3D_DESCRIPTOR){WIDTH, HEIGHT, DEPTH, CU_AD_FORMAT_SIGNED_INT16, 1,
                                               flags | CUDA_ARRAY3D_LAYERED},
                     layers);
    CUsurfObject from = images_surface(one), to = images_surface(other),
                 cells = images_surface(box);
    CUsurfObject sheets = images_surface(layered);
    CORPUS_LAUNCH_2D(module, "invert_2d", 2, 2, 16, 8, 0, &from, &to, &width, &height);
    CORPUS_LAUNCH_2D(module, "add_3d", 2, 2, 16, 8, 0, &cells, &width, &height, &depth);
    CORPUS_LAUNCH_2D(module, "copy_layer", 2, 1, 16, HEIGHT, 0, &sheets, &width, &first, &second);
    images_read(other, back, sizeof back[0], HEIGHT, 1);
    images_read(box, pairs_back, sizeof pairs_back[0][0], HEIGHT, DEPTH);
    images_read(layered, layers_back, sizeof layers_back[0][0], HEIGHT, DEPTH);
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++) {
            for (int c = 0; c < 4; c++) {
                uint8_t p = pixels[y][x][c];
                cr_assert_eq(back[y][x][c], c < 3 ? 255 - p : p, "(%d, %d)", x, y);
            }
            for (int z = 0; z < DEPTH; z++) {
                cr_assert_eq(pairs_back[z][y][x][0], pairs[z][y][x][0] + 1);
                cr_assert_eq(pairs_back[z][y][x][1], pairs[z][y][x][1] + (float)z);
                int16_t expected = z == 2 ? (int16_t)(layers[0][y][x] * 2) : layers[z][y][x];
                cr_assert_eq(layers_back[z][y][x], expected, "(%d, %d, %d)", x, y, z);
            }
        }
    }
    cr_assert_eq(cuSurfObjectDestroy(from), CUDA_SUCCESS);
    cr_assert_eq(cuSurfObjectDestroy(to), CUDA_SUCCESS);
    cr_assert_eq(cuSurfObjectDestroy(cells), CUDA_SUCCESS);
    cr_assert_eq(cuSurfObjectDestroy(sheets), CUDA_SUCCESS);
    cr_assert_eq(cuArrayDestroy(one), CUDA_SUCCESS);
    cr_assert_eq(cuArrayDestroy(other), CUDA_SUCCESS);
    cr_assert_eq(cuArrayDestroy(box), CUDA_SUCCESS);
    cr_assert_eq(cuArrayDestroy(layered), CUDA_SUCCESS);
}

/* What lies outside is zero, or the nearest inside, or not written, as the instruction says. */
static void check_edges(CUmodule module) {
    enum { COUNT = 8, ASKED = 16 };
    int32_t quads[COUNT][4], words[COUNT], got[ASKED], back[COUNT];
    double pairs[ASKED][2];
    int first = -4, mode = 1;
    uint32_t count = ASKED;
    const unsigned flags = CUDA_ARRAY3D_SURFACE_LDST;
    for (int i = 0; i < COUNT * 4; i++) (&quads[0][0])[i] = 100 + i;
    for (int i = 0; i < COUNT; i++) words[i] = 1000 + i;
    CUarray wide = images_array(
        (CUDA_ARRAY3D_DESCRIPTOR){COUNT, 0, 0, CU_AD_FORMAT_SIGNED_INT32, 4, flags}, quads);
    CUarray narrow = images_array(
        (CUDA_ARRAY3D_DESCRIPTOR){COUNT, 0, 0, CU_AD_FORMAT_SIGNED_INT32, 1, flags}, words);
    CUsurfObject quad = images_surface(wide), word = images_surface(narrow);
    CUdeviceptr out = corpus_put(NULL, sizeof pairs), clamped = corpus_put(NULL, sizeof got);
    CORPUS_LAUNCH(module, "shift_1d", 1, ASKED, 0, &out, &quad, &first, &count);
    CORPUS_LAUNCH(module, "clamp_1d", 1, ASKED, 0, &clamped, &word, &first, &count);
    corpus_get(out, pairs, sizeof pairs);
    corpus_get(clamped, got, sizeof got);
    for (int i = 0; i < ASKED; i++) {
        int at = first + i, nearest = at < 0 ? 0 : at >= COUNT ? COUNT - 1 : at;
        bool inside = at == nearest;
        cr_assert_eq(pairs[i][0], inside ? quads[at][0] : 0, "%d", at);
        cr_assert_eq(pairs[i][1], inside ? quads[at][3] : 0, "%d", at);
        cr_assert_eq(got[i], words[nearest], "%d", at);
    }
    first = -3;
    CORPUS_LAUNCH(module, "write_outside", 1, 5, 0, &word, &first, &mode);
    images_read(narrow, back, sizeof back, 1, 1);
    cr_assert(back[0] == 3 && back[1] == 4 && back[2] == words[2]);
    cr_assert_eq(cuSurfObjectDestroy(quad), CUDA_SUCCESS);
    cr_assert_eq(cuSurfObjectDestroy(word), CUDA_SUCCESS);
    cr_assert_eq(cuArrayDestroy(wide), CUDA_SUCCESS);
    cr_assert_eq(cuArrayDestroy(narrow), CUDA_SUCCESS);
}

static void check_reductions_and_sizes(CUmodule module) {
    enum { COUNT = 5, THREADS = 64 };
    int32_t words[COUNT] = {10, 20, 30, 40, -50}, back[COUNT], told[6];
    static float texels[3 * 2 * 7];
    int width = COUNT - 1;
    const unsigned flags = CUDA_ARRAY3D_SURFACE_LDST;
    CUarray array = images_array(
        (CUDA_ARRAY3D_DESCRIPTOR){COUNT, 0, 0, CU_AD_FORMAT_SIGNED_INT32, 1, flags}, words);
    CUarray box =
        images_array((CUDA_ARRAY3D_DESCRIPTOR){7, 2, 3, CU_AD_FORMAT_FLOAT, 1, flags}, texels);
    struct images_oracle o = {.mode = {IMAGES_CLAMP, IMAGES_CLAMP, IMAGES_CLAMP}};
    CUsurfObject surface = images_surface(array);
    CUtexObject texture = images_texture(box, &o, 0);
    CUdeviceptr out = corpus_put(NULL, sizeof told);
    CORPUS_LAUNCH(module, "reduce", 1, THREADS, 0, &surface, &width);
    CORPUS_LAUNCH(module, "sizes", 1, 1, 0, &out, &texture, &surface);
    images_read(array, back, sizeof back, 1, 1);
    for (int i = 0; i < width; i++) cr_assert_eq(back[i], words[i] + THREADS / width);
    cr_assert_eq(back[width], THREADS - 1 - 5);
    corpus_get(out, told, sizeof told);
    cr_assert(told[0] == 7 && told[1] == 2 && told[2] == 3);
    cr_assert(told[3] == COUNT && told[4] == 0 && told[5] == 0);
    cr_assert_eq(cuSurfObjectDestroy(surface), CUDA_SUCCESS);
    cr_assert_eq(cuTexObjectDestroy(texture), CUDA_SUCCESS);
    cr_assert_eq(cuArrayDestroy(array), CUDA_SUCCESS);
    cr_assert_eq(cuArrayDestroy(box), CUDA_SUCCESS);
}

CORPUS_TEST(corpus_surfaces, surfaces, { cr_assert_eq(corpus_each("images", check_surfaces), 3); })
CORPUS_TEST(corpus_surfaces, edges, { cr_assert_eq(corpus_each("images", check_edges), 3); })
CORPUS_TEST(corpus_surfaces, reductions_and_sizes,
            { cr_assert_eq(corpus_each("images", check_reductions_and_sizes), 3); })
