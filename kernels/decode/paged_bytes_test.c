/*
 * The cache of bytes: what is stored is the host's Q8_0 of k and v, and attention is the definition
 * in double over what is stored.
 */
#include "decode/paged.h"
#include "inputs.h"
#include "kernel_scene.h"
#include "number.h"

#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>

TestSuite(paged_bytes, .fini = kernel_scene_end);

enum { ROWS = 150, HEADS = 6, KV = 2, ALL = HEADS + 2 * KV, PAGES = (ROWS + 15) / 16 };

struct trial {
    struct kn_paged_heads shape;
    float *qkv, *out;
    uint8_t *pages;
    size_t page_bytes;
};

/* A page's bytes and scales, as paged.h has them. */
static float stored(const struct trial *t, bool value, size_t head, size_t position, size_t i) {
    const size_t size = t->shape.head_size, at = position % 16, part = KV * 16 * size;
    const uint8_t *page = t->pages + position / 16 * t->page_bytes;
    const size_t place = value ? part + (head * 16 + at) * size + i
                               : head * 16 * size + (i / 8 * 16 + at) * 8 + i % 8;
    const uint16_t *scales =
        (const uint16_t *)(const void *)(page + 2 * part) + (value ? KV * 16 * (size / 32) : 0);
    const float scale = kn_f16_value(scales[(head * 16 + at) * (size / 32) + i / 32]);
    return scale * (float)(int8_t)page[place];
}

/* What llama.cpp's Q8_0 makes of an element of 32: quantize_row_q8_0 in ggml's reference. */
static float rounded(const float *block, size_t i) {
    float largest = 0;
    for (size_t j = 0; j < 32; j++) largest = fmaxf(largest, fabsf(block[j]));
    const float scale = largest / 127;
    const float byte = scale > 0 ? roundf(block[i] / scale) : 0;
    return kn_f16_value(kn_f16_of(scale)) * byte;
}

static const float *row_of(const struct trial *t, size_t row, size_t head) {
    return t->qkv + (row * ALL + head) * t->shape.head_size;
}

static void check_stored(const struct trial *t) {
    const size_t size = t->shape.head_size;
    for (size_t row = 0; row < ROWS; row++) {
        for (size_t i = 0; i < 2 * KV * size; i++) {
            const size_t head = i / size, at = i % size;
            const float expected = rounded(row_of(t, row, HEADS + head) + at / 32 * 32, at % 32);
            const float got = stored(t, head >= KV, head % KV, row, at);
            cr_assert(got == expected, "row %zu, head %zu, element %zu: %g, not %g", row, head, at,
                      (double)got, (double)expected);
        }
    }
}

static void check_attention(const struct trial *t) {
    const size_t size = t->shape.head_size;
    for (size_t row = 0; row < ROWS; row += 7) {
        for (size_t head = 0; head < HEADS; head++) {
            double weights[ROWS], total = 0, largest = -INFINITY;
            for (size_t p = 0; p <= row; p++) {
                weights[p] = 0;
                for (size_t i = 0; i < size; i++) {
                    weights[p] += (double)row_of(t, row, head)[i] *
                                  (double)stored(t, false, head / (HEADS / KV), p, i);
                }
                weights[p] /= sqrt((double)size);
                largest = fmax(largest, weights[p]);
            }
            for (size_t p = 0; p <= row; p++) total += weights[p] = exp(weights[p] - largest);
            for (size_t i = 0; i < size; i++) {
                double expected = 0;
                for (size_t p = 0; p <= row; p++) {
                    expected +=
                        weights[p] / total * (double)stored(t, true, head / (HEADS / KV), p, i);
                }
                const double got = (double)t->out[(row * HEADS + head) * size + i];
                cr_assert(!(fabs(got - expected) > 2e-5), "row %zu, head %zu, element %zu: %g, %g",
                          row, head, i, got, expected);
            }
        }
    }
}

static void run(struct trial *t, struct tol_buffer *qkv) {
    const size_t size = t->shape.head_size, splits = (ROWS + 127) / 128;
    struct tol_buffer *pages = NULL, *tables = NULL, *state = NULL, *out = NULL, *work = NULL;
    uint64_t addresses[PAGES];
    int32_t positions[2 * ROWS] = {0}; /* and slots, all 0 */
    t->page_bytes = kn_paged_layer_bytes(&t->shape);
    cr_assert(t->page_bytes == 2 * KV * 16 * (size + size / 32 * 2));
    MUST(tol_buffer_create(test_context(), PAGES, t->page_bytes, &pages));
    MUST(tol_buffer_create(test_context(), PAGES, 8, &tables));
    MUST(tol_buffer_create(test_context(), 2 * ROWS, 4, &state));
    MUST(tol_buffer_create(test_context(), ROWS * HEADS * size, 4, &out));
    MUST(tol_buffer_create(test_context(), kn_paged_workspace(&t->shape, ROWS, splits), 1, &work));
    for (size_t i = 0; i < PAGES; i++) {
        addresses[i] = tol_buffer_address(pages) + (PAGES - 1 - i) * t->page_bytes;
    }
    for (int32_t i = 0; i < ROWS; i++) positions[i] = i;
    MUST(tol_buffer_write(tables, addresses, sizeof addresses));
    MUST(tol_buffer_write(state, positions, sizeof positions));
    const struct kn_paged_rows batch = {.rows = ROWS,
                                        .positions = kn_place_of(state, 0),
                                        .slots = kn_place_of(state, ROWS * 4),
                                        .tables = kn_place_of(tables, 0),
                                        .pages_max = PAGES};
    MUST(kn_heads(kernels, stream,
                  &(struct kn_heads_ready){.batch = batch,
                                           .shape = t->shape,
                                           .qkv = kn_place_of(qkv, 0),
                                           .qkv_stride = ALL * size,
                                           .epsilon = 1e-6f,
                                           .magnitude = 1}));
    MUST(kn_paged_attention(kernels, stream,
                            &(struct kn_paged){.batch = batch,
                                               .shape = t->shape,
                                               .q = kn_place_of(qkv, 0),
                                               .out = kn_place_of(out, 0),
                                               .q_stride = ALL * size,
                                               .out_stride = HEADS * size,
                                               .splits = splits,
                                               .workspace = kn_place_of(work, 0)}));
    MUST(tol_stream_synchronize(stream));
    for (size_t i = 0; i < PAGES; i++) {
        MUST(tol_buffer_read_at(pages, (PAGES - 1 - i) * t->page_bytes,
                                t->pages + i * t->page_bytes, t->page_bytes));
    }
    MUST(tol_buffer_read(out, t->out, ROWS * HEADS * size * 4));
    tol_buffer_destroy(pages);
    tol_buffer_destroy(tables);
    tol_buffer_destroy(state);
    tol_buffer_destroy(out);
    tol_buffer_destroy(work);
}

Test(paged_bytes, what_is_stored_is_q8_0_and_attention_is_over_it) {
    static const size_t sizes[] = {32, 64, 128, 256};
    kernel_scene_begin();
    for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
        uint64_t random = 5 + n;
        if (!test_takes_trial()) continue;
        const size_t count = ROWS * ALL * sizes[n];
        struct trial t = {.shape = {HEADS, KV, sizes[n], KN_CACHE_Q8_0}};
        struct tol_buffer *qkv = NULL;
        t.qkv = malloc(count * sizeof *t.qkv);
        t.out = malloc(count * sizeof *t.out);
        t.pages = malloc(PAGES * kn_paged_layer_bytes(&t.shape));
        cr_assert(t.qkv != NULL && t.out != NULL && t.pages != NULL);
        kn_inputs_draw(KN_NORMAL, &random, 1, t.qkv, count);
        for (size_t i = 0; i < 32; i++) t.qkv[HEADS * sizes[n] + i] = 0; /* a block of zeros */
        MUST(tol_buffer_create(test_context(), count, 4, &qkv));
        MUST(tol_buffer_write(qkv, t.qkv, count * 4));
        run(&t, qkv);
        check_stored(&t);
        check_attention(&t);
        tol_buffer_destroy(qkv);
        free(t.qkv), free(t.out), free(t.pages);
    }
}

Test(paged_bytes, heads_that_are_no_blocks_are_refused) {
    const struct kn_heads_ready ready = {.batch = {.rows = 1, .pages_max = 1},
                                         .shape = {4, 2, 48, KN_CACHE_Q8_0}};
    struct kn_heads_ready other = ready;
    kernel_scene_begin();
    MUST_FAIL(kn_heads(kernels, stream, &ready), TOL_INVALID_ARGUMENT, "multiple of 32");
    other.shape.cache = KN_CACHES;
    MUST_FAIL(kn_heads(kernels, stream, &other), TOL_INVALID_ARGUMENT, "no kind of cache is 2");
}
