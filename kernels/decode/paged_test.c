/*
 * heads and paged attention against the definition in double: sessions of several lengths in one
 * batch, pages in any order, groups, windows, both pairings, norms; and the same bits alone.
 */
#include "decode/paged_step.h"
#include "guarded.h"
#include "inputs.h"
#include "kernel_scene.h"
#include "number.h"
#include "quantised/formats/rounded.h"

#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(paged, .fini = kernel_scene_end);

enum { SLOTS = 3, LAYER_AT = 64 };

/* Sessions with random keys and values at all positions before their own. */
struct stage {
    struct kn_paged_heads shape;
    size_t rotated, window, positions[SLOTS];
    bool halves, normed;
    float magnitude;
    size_t pages_max, page_bytes;
    uint8_t *pages; /* a copy of the host's, SLOTS * pages_max of them, in a shuffled order */
    struct kn_guarded device;
    struct tol_buffer *tables, *state, *weights;
    float *qkv, *norms, *frequencies;
};

static size_t width(const struct stage *s) {
    return (s->shape.heads + 2 * s->shape.kv_heads) * s->shape.head_size;
}

static size_t place_of_page(const struct stage *s, size_t slot, size_t page) {
    return (page * SLOTS + (slot + page) % SLOTS) * s->page_bytes;
}

static uint16_t *element(const struct stage *s, bool value, size_t slot, size_t head,
                         size_t position, size_t i) {
    const size_t size = s->shape.head_size, at = position % 16;
    uint16_t *part = (uint16_t *)(s->pages + place_of_page(s, slot, position / 16) + LAYER_AT);
    if (value) return part + s->shape.kv_heads * 16 * size + (head * 16 + at) * size + i;
    return part + head * 16 * size + (i / 8 * 16 + at) * 8 + i % 8;
}

static void draw_cache(struct stage *s, uint64_t *state) {
    const size_t bytes = SLOTS * s->pages_max * s->page_bytes;
    s->pages = malloc(bytes);
    cr_assert(s->pages != NULL);
    memset(s->pages, 0xff, bytes); /* NaN: what is not seen must not be read into a sum */
    for (size_t slot = 0; slot < SLOTS; slot++) {
        for (size_t p = 0; p < s->positions[slot]; p++) {
            for (size_t i = 0; i < 2 * s->shape.kv_heads * s->shape.head_size; i++) {
                const size_t head = i / 2 / s->shape.head_size, at = i / 2 % s->shape.head_size;
                *element(s, i % 2, slot, head, p, at) =
                    kn_f16_of((float)(2 * kn_random_unit(state) - 1));
            }
        }
    }
    MUST(kn_guarded_create(test_context(), bytes, 0, &s->device));
    MUST(kn_guarded_write(&s->device, s->pages));
}

static void make(struct stage *s) {
    uint64_t state = 11, *addresses;
    float *weights;
    const size_t size = s->shape.head_size;
    s->page_bytes = LAYER_AT + kn_paged_layer_bytes(&s->shape) + 32;
    for (size_t i = 0; i < SLOTS; i++) {
        if (s->positions[i] / 16 + 1 > s->pages_max) s->pages_max = s->positions[i] / 16 + 1;
    }
    draw_cache(s, &state);
    addresses = malloc(SLOTS * s->pages_max * sizeof *addresses);
    weights = malloc((2 * size + s->rotated / 2 + 1) * sizeof *weights);
    s->qkv = malloc(SLOTS * width(s) * sizeof *s->qkv);
    cr_assert(addresses != NULL && weights != NULL && s->qkv != NULL);
    kn_inputs_draw(KN_NORMAL, &state, 1, s->qkv, SLOTS * width(s));
    kn_inputs_draw(KN_UNIFORM, &state, 2, weights, 2 * size);
    s->norms = weights, s->frequencies = weights + 2 * size;
    for (size_t i = 0; i < s->rotated / 2; i++) {
        s->frequencies[i] = powf(10000, -(float)(2 * i) / (float)s->rotated);
    }
    for (size_t i = 0; i < SLOTS * s->pages_max; i++) {
        addresses[i] = tol_buffer_address(s->device.buffer) + s->device.offset +
                       place_of_page(s, i / s->pages_max, i % s->pages_max);
    }
    MUST(tol_buffer_create(test_context(), SLOTS * s->pages_max, 8, &s->tables));
    MUST(tol_buffer_write(s->tables, addresses, SLOTS * s->pages_max * 8));
    MUST(tol_buffer_create(test_context(), 2 * size + s->rotated / 2 + 1, 4, &s->weights));
    MUST(tol_buffer_write(s->weights, weights, (2 * size + s->rotated / 2 + 1) * 4));
    MUST(tol_buffer_create(test_context(), 2 * SLOTS, 4, &s->state));
    free(addresses);
}

static void finish(struct stage *s) {
    kn_guarded_destroy(&s->device);
    tol_buffer_destroy(s->tables);
    tol_buffer_destroy(s->state);
    tol_buffer_destroy(s->weights);
    free(s->pages), free(s->qkv), free(s->norms);
}

/* A step of the same rows: the same bits in the cache and in the result, as floats or rounded. */
static void check_step(struct stage *s, struct tol_buffer *qkv, const float *rows_in,
                       const struct kn_heads_ready *heads, const struct kn_paged *paged,
                       const void *expected, size_t bytes) {
    const size_t cache_bytes = SLOTS * s->pages_max * s->page_bytes;
    struct kn_paged step = *paged;
    struct kn_guarded result = {0};
    size_t changed = 1;
    uint8_t *caches = malloc(2 * cache_bytes + bytes), *got = caches + 2 * cache_bytes;
    cr_assert(caches != NULL);
    memset(got, 0, bytes); /* a rounded tile has places of rows that do not exist */
    MUST(kn_guarded_create(test_context(), bytes, 16, &result));
    MUST(kn_guarded_write(&result, got));
    MUST(kn_guarded_read(&s->device, caches));
    MUST(kn_guarded_write(&s->device, s->pages)); /* nothing is stored yet */
    MUST(tol_buffer_write(qkv, rows_in, heads->batch.rows * width(s) * sizeof(float)));
    struct kn_place *out = paged->rounded.address != 0 ? &step.rounded : &step.out;
    *out = (struct kn_place){tol_buffer_address(result.buffer) + result.offset, bytes};
    MUST(kn_paged_step(kernels, stream, heads, &step));
    MUST(tol_stream_synchronize(stream));
    MUST(kn_guarded_read(&result, got));
    MUST(kn_guarded_check(&result, &changed));
    cr_assert(changed == 0);
    MUST(kn_guarded_read(&s->device, caches + cache_bytes));
    MUST(kn_guarded_check(&s->device, &changed));
    cr_assert(changed == 0);
    cr_assert(memcmp(caches, caches + cache_bytes, cache_bytes) == 0);
    cr_assert(memcmp(got, expected, bytes) == 0);
    kn_guarded_destroy(&result);
    free(caches);
}

/* Attention whose rows are rounded, against its rows rounded by the kernel for that. */
static void check_rounded(struct stage *s, struct tol_buffer *qkv, const float *rows_in,
                          const struct kn_heads_ready *heads, const struct kn_paged *paged,
                          const float *out) {
    const size_t rows = paged->batch.rows, q_width = s->shape.heads * s->shape.head_size;
    const size_t bytes = kn_rounded_bytes(rows, q_width);
    struct kn_paged rounding = *paged;
    struct kn_guarded results[2] = {{0}, {0}};
    tol_auto_buffer struct tol_buffer *floats = NULL;
    size_t changed = 1;
    if (!kn_paged_can_round(&s->shape)) return;
    uint8_t *zeros = calloc(3, bytes), *got[2] = {zeros + bytes, zeros + 2 * bytes};
    cr_assert(zeros != NULL);
    for (int i = 0; i < 2; i++) {
        MUST(kn_guarded_create(test_context(), bytes, 16, &results[i]));
        MUST(kn_guarded_write(&results[i], zeros));
    }
    const struct kn_place places[2] = {
        {tol_buffer_address(results[0].buffer) + results[0].offset, bytes},
        {tol_buffer_address(results[1].buffer) + results[1].offset, bytes}};
    MUST(tol_buffer_create(test_context(), rows * q_width, sizeof(float), &floats));
    MUST(tol_buffer_write(floats, out, rows * q_width * sizeof(float)));
    rounding.rounded = places[0];
    MUST(kn_paged_attention(kernels, stream, &rounding));
    MUST(kn_rounded(kernels, stream,
                    &(struct kn_rounded){.columns = rows,
                                         .k = q_width,
                                         .x = kn_place_of(floats, 0),
                                         .x_stride = q_width,
                                         .out = places[1]}));
    MUST(tol_stream_synchronize(stream));
    for (int i = 0; i < 2; i++) {
        MUST(kn_guarded_read(&results[i], got[i]));
        MUST(kn_guarded_check(&results[i], &changed));
        cr_assert(changed == 0);
        kn_guarded_destroy(&results[i]);
    }
    cr_assert(memcmp(got[0], got[1], bytes) == 0);
    check_step(s, qkv, rows_in, heads, &rounding, got[0], bytes);
    free(zeros);
}

static struct kn_heads_ready heads_of(const struct stage *s, const struct kn_paged_rows *batch,
                                      const struct tol_buffer *qkv) {
    const struct kn_place none = {0, 0};
    const size_t size = s->shape.head_size;
    return (struct kn_heads_ready){.batch = *batch,
                                   .shape = s->shape,
                                   .qkv = kn_place_of(qkv, 0),
                                   .qkv_stride = width(s),
                                   .q_norm = s->normed ? kn_place_of(s->weights, 0) : none,
                                   .k_norm = s->normed ? kn_place_of(s->weights, size * 4) : none,
                                   .epsilon = 1e-5f,
                                   .rotated = s->rotated,
                                   .halves = s->halves,
                                   .frequencies = kn_place_of(s->weights, 2 * size * 4),
                                   .magnitude = s->magnitude};
}

/* Runs both on rows of the slots from first on; out gets their rows, q k v as they are then. */
static void run(struct stage *s, size_t first, size_t rows, size_t more_splits, float *out) {
    const size_t q_width = s->shape.heads * s->shape.head_size;
    int32_t state[2 * SLOTS] = {0};
    size_t splits = 1, changed = 1;
    tol_auto_buffer struct tol_buffer *qkv = NULL, *workspace = NULL;
    struct kn_guarded result = {0};
    for (size_t i = 0; i < rows; i++) {
        state[i] = (int32_t)s->positions[first + i];
        state[SLOTS + i] = (int32_t)(first + i);
        if (s->positions[first + i] / 128 + 1 > splits) splits = s->positions[first + i] / 128 + 1;
    }
    splits += more_splits;
    MUST(kn_guarded_write(&s->device, s->pages)); /* nothing is stored yet */
    MUST(tol_buffer_write(s->state, state, sizeof state));
    MUST(tol_buffer_create(test_context(), rows * width(s), 4, &qkv));
    MUST(tol_buffer_write(qkv, s->qkv + first * width(s), rows * width(s) * 4));
    MUST(tol_buffer_create(test_context(), kn_paged_workspace(&s->shape, rows, splits), 1,
                           &workspace));
    MUST(kn_guarded_create(test_context(), rows * q_width * 4, 4, &result));
    const struct kn_paged_rows batch = {.rows = rows,
                                        .positions = kn_place_of(s->state, 0),
                                        .slots = kn_place_of(s->state, SLOTS * 4),
                                        .tables = kn_place_of(s->tables, 0),
                                        .pages_max = s->pages_max,
                                        .layer_at = LAYER_AT};
    const struct kn_heads_ready heads = heads_of(s, &batch, qkv);
    const struct kn_paged paged = {
        .batch = batch,
        .shape = s->shape,
        .q = kn_place_of(qkv, 0),
        .out = {tol_buffer_address(result.buffer) + result.offset, result.bytes},
        .q_stride = width(s),
        .out_stride = q_width,
        .window = s->window,
        .splits = splits,
        .workspace = kn_place_of(workspace, 0)};
    const float *rows_in = s->qkv + first * width(s);
    MUST(kn_heads(kernels, stream, &heads));
    MUST(kn_paged_attention(kernels, stream, &paged));
    MUST(tol_stream_synchronize(stream));
    MUST(kn_guarded_read(&result, out));
    MUST(kn_guarded_check(&result, &changed));
    cr_assert(changed == 0);
    check_rounded(s, qkv, rows_in, &heads, &paged, out);
    check_step(s, qkv, rows_in, &heads, &paged, out, rows * q_width * sizeof(float));
    kn_guarded_destroy(&result);
}

/* The definition of heads: normed and rotated, in double. */
static void ready(const struct stage *s, const float *in, const float *norm, bool turns,
                  size_t position, double *out) {
    const size_t size = s->shape.head_size, pairs = s->rotated / 2;
    double squares = 0;
    for (size_t i = 0; i < size; i++) squares += (double)in[i] * (double)in[i];
    for (size_t i = 0; i < size; i++) {
        out[i] = (double)in[i];
        if (norm != NULL) out[i] *= (double)norm[i] / sqrt(squares / (double)size + 1e-5);
    }
    for (size_t i = 0; turns && i < pairs; i++) {
        const size_t a = s->halves ? i : 2 * i, b = s->halves ? i + pairs : 2 * i + 1;
        const double angle = (double)position * (double)s->frequencies[i];
        const double x = out[a], y = out[b], m = (double)s->magnitude;
        out[a] = m * (x * cos(angle) - y * sin(angle));
        out[b] = m * (x * sin(angle) + y * cos(angle));
    }
}

/* A key or a value of the slot, as the row sees it. */
static double cached(const struct stage *s, bool value, size_t slot, size_t head, size_t position,
                     size_t i, const double *own) {
    if (position == s->positions[slot]) return (double)kn_f16_value(kn_f16_of((float)own[i]));
    return (double)kn_f16_value(*element(s, value, slot, head, position, i));
}

static void oracle(const struct stage *s, size_t slot, size_t head, double *out) {
    const size_t size = s->shape.head_size, kv = head / (s->shape.heads / s->shape.kv_heads);
    const float *row = s->qkv + slot * width(s);
    const size_t at = s->positions[slot];
    const size_t first = s->window > 0 && at + 1 > s->window ? at + 1 - s->window : 0;
    double q[256], k[256], v[256], total = 0, largest = -INFINITY;
    double *scores = malloc((at + 1) * sizeof *scores);
    cr_assert(scores != NULL);
    ready(s, row + head * size, s->normed ? s->norms : NULL, true, at, q);
    ready(s, row + (s->shape.heads + kv) * size, s->normed ? s->norms + size : NULL, true, at, k);
    ready(s, row + (s->shape.heads + s->shape.kv_heads + kv) * size, NULL, false, at, v);
    for (size_t p = first; p <= at; p++) {
        scores[p] = 0;
        for (size_t i = 0; i < size; i++) scores[p] += q[i] * cached(s, false, slot, kv, p, i, k);
        scores[p] /= sqrt((double)size);
        largest = fmax(largest, scores[p]);
    }
    memset(out, 0, size * sizeof *out);
    for (size_t p = first; p <= at; p++) {
        const double weight = exp(scores[p] - largest);
        total += weight;
        for (size_t i = 0; i < size; i++) out[i] += weight * cached(s, true, slot, kv, p, i, v);
    }
    for (size_t i = 0; i < size; i++) out[i] /= total;
    free(scores);
}

static void check(struct stage s) {
    const size_t q_width = s.shape.heads * s.shape.head_size;
    float *all = malloc(SLOTS * q_width * sizeof *all), *one = malloc(q_width * sizeof *one);
    double expected[256];
    cr_assert(all != NULL && one != NULL);
    make(&s);
    run(&s, 0, SLOTS, 0, all);
    for (size_t slot = 0; slot < SLOTS; slot++) {
        for (size_t head = 0; head < s.shape.heads; head++) {
            oracle(&s, slot, head, expected);
            for (size_t i = 0; i < s.shape.head_size; i++) {
                const double got = (double)all[slot * q_width + head * s.shape.head_size + i];
                /* An own key that falls on the other side of a rounding to fp16 moves a score by
                 * 2^-11 of a few units. */
                cr_assert(!(fabs(got - expected[i]) > 2e-3),
                          "heads of %zu, slot %zu, head %zu, "
                          "element %zu: %g and not %g",
                          s.shape.head_size, slot, head, i, got, expected[i]);
            }
        }
        run(&s, slot, 1, 2, one); /* alone, in a grid with more spans: the same bits */
        cr_assert(memcmp(one, all + slot * q_width, q_width * sizeof *one) == 0, "slot %zu", slot);
    }
    finish(&s);
    free(all), free(one);
}

Test(paged, attention_is_the_definition_for_sessions_of_any_length) {
    kernel_scene_begin();
    check((struct stage){
        .shape = {4, 2, 64}, .rotated = 64, .positions = {0, 15, 300}, .magnitude = 1});
    check((struct stage){.shape = {8, 1, 32},
                         .rotated = 32,
                         .positions = {127, 128, 16},
                         .magnitude = 1,
                         .halves = true,
                         .normed = true});
    check((struct stage){.shape = {9, 1, 16},
                         .rotated = 8,
                         .positions = {1, 2, 140},
                         .magnitude = 1.25f,
                         .halves = true});
    check((struct stage){.shape = {3, 1, 80},
                         .rotated = 20,
                         .positions = {31, 256, 5},
                         .magnitude = 1,
                         .normed = true});
    check((struct stage){/* three blocks for the heads of a key */
                         .shape = {18, 1, 16},
                         .rotated = 16,
                         .positions = {4, 130, 17},
                         .magnitude = 1});
}

Test(paged, a_window_hides_what_is_before_it) {
    kernel_scene_begin();
    check((struct stage){.shape = {2, 2, 128},
                         .rotated = 128,
                         .positions = {7, 260, 40},
                         .window = 40,
                         .magnitude = 1});
    check((struct stage){
        .shape = {2, 1, 256}, .rotated = 0, .positions = {3, 150, 0}, .window = 1, .magnitude = 1});
}

/* What a step, or heads alone, notes of the rows of all slots. */
static void note(struct stage *s, bool is_step, uint64_t notices[SLOTS]) {
    const size_t q_bytes = SLOTS * s->shape.heads * s->shape.head_size * sizeof(float);
    const size_t qkv_bytes = SLOTS * width(s) * sizeof(float);
    tol_auto_buffer struct tol_buffer *all = NULL;
    const size_t notices_at = qkv_bytes + q_bytes, work_at = notices_at + SLOTS * sizeof *notices;
    const size_t work = kn_paged_workspace(&s->shape, SLOTS, 1);
    int32_t state[2 * SLOTS] = {[SLOTS] = 0, 1, 2};
    for (size_t i = 0; i < SLOTS; i++) state[i] = (int32_t)s->positions[i];
    MUST(tol_buffer_create(test_context(), work_at + work, 1, &all));
    MUST(tol_buffer_write_at(all, 0, s->qkv, qkv_bytes));
    MUST(tol_buffer_write_at(all, notices_at, notices, SLOTS * sizeof *notices));
    MUST(tol_buffer_write(s->state, state, sizeof state));
    const struct kn_paged_rows batch = {.rows = SLOTS,
                                        .positions = kn_place_of(s->state, 0),
                                        .slots = kn_place_of(s->state, SLOTS * 4),
                                        .tables = kn_place_of(s->tables, 0),
                                        .pages_max = s->pages_max,
                                        .layer_at = LAYER_AT};
    struct kn_heads_ready heads = heads_of(s, &batch, all);
    heads.layer = 7;
    heads.notices = kn_place_of(all, notices_at);
    const struct kn_paged paged = {.batch = batch,
                                   .shape = s->shape,
                                   .q = kn_place_of(all, 0),
                                   .out = kn_place_of(all, qkv_bytes),
                                   .q_stride = width(s),
                                   .out_stride = s->shape.heads * s->shape.head_size,
                                   .splits = 1,
                                   .workspace = kn_place_of(all, work_at)};
    MUST(is_step ? kn_paged_step(kernels, stream, &heads, &paged)
                 : kn_heads(kernels, stream, &heads));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read_at(all, notices_at, notices, SLOTS * sizeof *notices));
}

static void check_notice(uint64_t bits, struct kn_notice expected) {
    struct kn_notice got;
    cr_assert(kn_notice_read(bits, &got));
    cr_assert(got.layer == expected.layer && got.position == expected.position, "%zu, %zu",
              got.layer, got.position);
    cr_assert(got.is_value == expected.is_value && got.is_finite == expected.is_finite,
              "%d, %d, position %zu", got.is_value, got.is_finite, got.position);
}

/* Elements of k and v of rows of three sessions, beside those that fit. */
static void check_notices(struct stage s) {
    const float end = (float)kn_cache_end(s.shape.cache), fits = nextafterf(end, 0);
    make(&s);
    for (size_t i = 0; i < SLOTS * width(&s); i++) s.qkv[i] = i % 3 == 0 ? -fits : fits;
    float *second = s.qkv + width(&s), *third = second + width(&s);
    const size_t k = s.shape.heads * s.shape.head_size,
                 v = k + s.shape.kv_heads * s.shape.head_size;
    second[0] = INFINITY; /* of q, which is not stored */
    second[v + 5] = -end;
    third[k + 7] = NAN;
    third[v] = INFINITY;
    for (int is_step = 0; is_step < 2; is_step++) {
        struct kn_notice none;
        uint64_t notices[SLOTS] = {kn_notice_none, kn_notice_none, kn_notice_none};
        note(&s, is_step, notices);
        cr_assert(!kn_notice_read(notices[0], &none));
        check_notice(notices[1], (struct kn_notice){7, s.positions[1], true, true});
        check_notice(notices[2], (struct kn_notice){7, s.positions[2], false, false});
        notices[1] = 1, notices[2] = kn_notice_none - 1; /* of a lower layer, and of a higher one */
        note(&s, is_step, notices);
        check_notice(notices[1], (struct kn_notice){0, 0, false, false});
        check_notice(notices[2], (struct kn_notice){7, s.positions[2], false, false});
    }
    finish(&s);
}

Test(paged, what_the_cache_cannot_hold_is_noticed) {
    kernel_scene_begin();
    check_notices((struct stage){.shape = {4, 2, 64}, .positions = {5, 20, 40}, .magnitude = 1});
    check_notices((struct stage){.shape = {9, 1, 8}, .positions = {1, 0, 16}, .magnitude = 1});
    check_notices((struct stage){.shape = {2, 2, 32, KN_CACHE_Q8_0}, .magnitude = 1});
    cr_assert(kn_cache_end(KN_CACHE_F16) == 65520);
    cr_assert(isinf(kn_f16_value(kn_f16_of(65520))));
}

#define REFUSED(change, status, text)                                                              \
    do {                                                                                           \
        struct kn_paged p = good;                                                                  \
        change;                                                                                    \
        MUST_FAIL(kn_paged_attention(kernels, stream, &p), status, text);                          \
    } while (0)

Test(paged, what_makes_no_sense_is_refused) {
    const struct kn_paged good = {.batch = {.rows = 2,
                                            .positions = {0x10000, 8},
                                            .slots = {0x10100, 8},
                                            .tables = {0x10200, 64},
                                            .pages_max = 4},
                                  .shape = {4, 2, 64},
                                  .q = {0x20000, 2 * 1024},
                                  .out = {0x30000, 2 * 1024},
                                  .q_stride = 256,
                                  .out_stride = 256,
                                  .splits = 1,
                                  .workspace = {0x40000, 2 * 4 * 66 * 4}};
    kernel_scene_begin();
    REFUSED(p.shape.kv_heads = 3, TOL_INVALID_ARGUMENT, "4 heads of q cannot share 3");
    REFUSED(p.shape.head_size = 60, TOL_INVALID_ARGUMENT, "heads have 60 elements");
    REFUSED(p.shape.head_size = 264, TOL_INVALID_ARGUMENT, "heads have 264 elements");
    REFUSED(p.batch.positions.bytes = 7, TOL_OUT_OF_RANGE, "positions needs 8");
    REFUSED(p.batch.slots.address++, TOL_INVALID_ARGUMENT, "slots at");
    REFUSED(p.batch.tables.bytes = 31, TOL_OUT_OF_RANGE, "tables needs 32");
    REFUSED(p.batch.layer_at = 8, TOL_INVALID_ARGUMENT, "byte 8 of a page");
    REFUSED(p.batch.pages_max = 0, TOL_INVALID_ARGUMENT, "0 pages");
    REFUSED(p.batch.rows = 65536, TOL_OVER_LIMIT, "65536 rows");
    REFUSED(p.q.bytes--, TOL_OUT_OF_RANGE, "2 rows of q");
    REFUSED(p.out_stride = 255, TOL_INVALID_ARGUMENT, "255 apart");
    REFUSED(p.splits = 0, TOL_INVALID_ARGUMENT, "0 spans");
    REFUSED(p.scale = -1, TOL_INVALID_ARGUMENT, "scale of -1");
    REFUSED(p.workspace.bytes--, TOL_OUT_OF_RANGE, "workspace needs 2112");
    struct kn_heads_ready heads = {.batch = good.batch,
                                   .shape = good.shape,
                                   .qkv = {0x20000, 2 * 2048},
                                   .qkv_stride = 512,
                                   .rotated = 65};
    MUST_FAIL(kn_heads(kernels, stream, &heads), TOL_INVALID_ARGUMENT, "65 elements of a head");
    heads.rotated = 64;
    MUST_FAIL(kn_heads(kernels, stream, &heads), TOL_INVALID_ARGUMENT, "frequencies");
    MUST_FAIL(kn_paged_step(kernels, stream, &heads, &good), TOL_INVALID_ARGUMENT,
              "different rows");
    heads.rotated = 0, heads.notices = (struct kn_place){0x50004, 64};
    MUST_FAIL(kn_heads(kernels, stream, &heads), TOL_INVALID_ARGUMENT, "notices at");
    heads.notices.address = 0, heads.layer = 65536;
    MUST_FAIL(kn_heads(kernels, stream, &heads), TOL_INVALID_ARGUMENT, "layer 65536");
    heads.layer = 0, heads.qkv.bytes--;
    MUST_FAIL(kn_heads(kernels, stream, &heads), TOL_OUT_OF_RANGE, "2 rows of qkv");
    heads.qkv_stride = good.q_stride;
    MUST_FAIL(kn_paged_step(kernels, stream, &heads, &good), TOL_INVALID_ARGUMENT, "512 elements");
}
