/*
 * halves against their definitions: weights of every format bit for bit, rows in double, rows that
 * are huge, tiny or no numbers, keys and values of pages; and what is refused.
 */
#include "decode/halves.h"
#include "guarded.h"
#include "inputs.h"
#include "kernel_scene.h"
#include "number.h"
#include "quantised/formats/quant_draw.h"

#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(halves, .init = kernel_scene_begin, .fini = kernel_scene_end);

static struct tol_buffer *buffer_of(const void *bytes, size_t count) {
    struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), count, 1, &buffer));
    if (bytes != NULL) MUST(tol_buffer_write(buffer, bytes, count));
    return buffer;
}

static struct kn_place place(const struct tol_buffer *buffer) {
    return kn_place_of(buffer, 0);
}

/* Runs what was queued, and reads an output between its guards. */
static void take(struct kn_guarded *out, void *bytes) {
    size_t changed = 1;
    MUST(tol_stream_synchronize(stream));
    MUST(kn_guarded_read(out, bytes));
    MUST(kn_guarded_check(out, &changed));
    cr_assert(changed == 0, "%zu guard bytes changed", changed);
}

static struct kn_place guarded_place(const struct kn_guarded *out) {
    return kn_place_of(out->buffer, out->offset);
}

/* ---- weights ---- */

static uint8_t *draw(enum kn_weight_format format, size_t count, uint64_t *state) {
    static const enum kn_quant quants[KN_WEIGHT_FORMATS] = {
        [KN_WEIGHT_Q8_0] = KN_Q8_0, [KN_WEIGHT_Q4_K] = KN_Q4_K, [KN_WEIGHT_Q6_K] = KN_Q6_K};
    const size_t bytes = kn_weight_row_bytes(format, count);
    uint8_t *weights = malloc(bytes);
    float *values = malloc(count * sizeof *values);
    cr_assert(weights != NULL && values != NULL);
    kn_inputs_draw(KN_NORMAL, state, 0.02, values, count);
    if (format == KN_WEIGHT_F32) {
        memcpy(weights, values, bytes);
    } else if (format == KN_WEIGHT_F16 || format == KN_WEIGHT_BF16) {
        kn_numbers_store(format == KN_WEIGHT_F16 ? KN_F16 : KN_BF16, values, count, weights);
    } else if (format == KN_WEIGHT_Q5_K) {
        for (size_t i = 0; i < bytes; i++) weights[i] = (uint8_t)kn_random(state);
        for (size_t i = 0; i < bytes; i += 176) {
            const uint16_t d[2] = {kn_f16_of(0.001f), kn_f16_of(0.002f)};
            memcpy(weights + i, d, sizeof d);
        }
    } else {
        const enum kn_quant quant = quants[format];
        kn_quant_draw(quant, KN_BLOCKS_USUAL, state, count / kn_quant_block_elements(quant),
                      weights);
    }
    free(values);
    return weights;
}

static void check_weights(enum kn_weight_format format, size_t count, int exponent) {
    uint64_t state = 3 + (uint64_t)format;
    uint8_t *weights = draw(format, count, &state);
    float *values = malloc(count * sizeof *values), peak = 0, most = 0;
    uint16_t *got = malloc(count * sizeof *got);
    struct kn_guarded out = {0};
    const uint32_t zero = 0;
    cr_assert(values != NULL && got != NULL);
    kn_weight_values(format, weights, count, values);
    tol_auto_buffer struct tol_buffer *in = buffer_of(weights, kn_weight_row_bytes(format, count));
    tol_auto_buffer struct tol_buffer *at = buffer_of(&zero, sizeof zero);
    MUST(kn_guarded_create(test_context(), count * sizeof *got, 0, &out));
    struct kn_halves_weights problem = {format, count, place(in), guarded_place(&out), exponent};
    MUST(kn_halves_weights(kernels, stream, &problem));
    problem.out = place(at);
    MUST(kn_halves_peak(kernels, stream, &problem));
    take(&out, got);
    MUST(tol_buffer_read(at, &peak, sizeof peak));
    for (size_t i = 0; i < count; i++) {
        const uint16_t expected = kn_f16_of(ldexpf(values[i], exponent));
        cr_assert(got[i] == expected, "%s, weight %zu of %zu: %#x, not %#x", kn_weight_name(format),
                  i, count, got[i], expected);
        most = fmaxf(most, fabsf(values[i]));
    }
    cr_assert(peak == most, "%s: the largest is %g, not %g", kn_weight_name(format), (double)peak,
              (double)most);
    kn_guarded_destroy(&out);
    free(weights), free(values), free(got);
}

static void check_every_format(void) {
    for (int format = 0; format < KN_WEIGHT_FORMATS; format++) {
        const size_t grain = kn_weight_grain((enum kn_weight_format)format);
        check_weights((enum kn_weight_format)format, grain, 0);
        check_weights((enum kn_weight_format)format, 256 * 35 + (grain < 256 ? grain : 0), 7);
        check_weights((enum kn_weight_format)format, 512 * 33, -3);
    }
}

Test(halves, weights_of_every_format_are_rounded_once) {
    check_every_format();
}

static void begin_in_another_order(void) {
    kernel_scene_reorder();
    kernel_scene_begin();
}

TestSuite(halves_order, .init = begin_in_another_order, .fini = kernel_scene_end);

Test(halves_order, warps_do_not_lose_the_peak) {
    check_every_format();
}

Test(halves, a_weight_that_is_no_number_is_the_peak) {
    float weights[512], peak = 0;
    for (size_t i = 0; i < 512; i++) weights[i] = -(float)i;
    tol_auto_buffer struct tol_buffer *in = buffer_of(weights, sizeof weights);
    tol_auto_buffer struct tol_buffer *at = buffer_of(&peak, sizeof peak);
    const struct kn_halves_weights problem = {KN_WEIGHT_F32, 512, place(in), place(at), 0};
    MUST(kn_halves_peak(kernels, stream, &problem));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(at, &peak, sizeof peak));
    cr_assert(peak == 511);
    weights[300] = NAN;
    MUST(tol_buffer_write(in, weights, sizeof weights));
    MUST(kn_halves_peak(kernels, stream, &problem));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(at, &peak, sizeof peak));
    cr_assert(isnan(peak));
}

Test(halves, the_exponent_brings_the_largest_below_two_to_the_15) {
    static const double sizes[] = {1, 0.999, 1.001, 1e-7, 3e9, 16384, 16383, 32767.9};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const double scaled = ldexp(sizes[i], kn_halves_exponent(sizes[i]));
        cr_assert(scaled >= 16384 && scaled < 32768, "%g becomes %g", sizes[i], scaled);
    }
    cr_assert(kn_halves_exponent(0) == 0 && kn_halves_exponent(-1) == 0);
    cr_assert(kn_halves_exponent((double)NAN) == 0 && kn_halves_exponent((double)INFINITY) == 0);
    cr_assert(kn_halves_exponent(1e-30) == 40 && kn_halves_exponent(1e30) == -40);
}

/* ---- rows ---- */

static double value_of(uint16_t half) {
    return (double)kn_f16_value(half);
}

/* 2^-11 of the value for its rounding, and what the sums and the root have lost. */
static bool is_near(double got, double expected, double scale) {
    return fabs(got - expected) <= fabs(expected) * 5e-4 + scale * 1e-6;
}

static void check_norm(size_t rows, size_t columns, bool adds, bool scales, int exponent) {
    const size_t count = rows * columns;
    uint64_t state = 5;
    float *x = malloc(count * sizeof *x), *sums = malloc(count * sizeof *sums), scale[4];
    float *weight = malloc(columns * sizeof *weight), *now = malloc(count * sizeof *now);
    uint16_t *got = malloc(count * sizeof *got);
    struct kn_guarded out = {0}, kept = {0};
    cr_assert(x != NULL && sums != NULL && weight != NULL && now != NULL && got != NULL);
    kn_inputs_draw(KN_NORMAL, &state, 3, x, count);
    kn_inputs_draw(KN_NORMAL, &state, 100, sums, count);
    kn_inputs_draw(KN_UNIFORM, &state, 2, weight, columns);
    for (size_t r = 0; r < rows; r++) scale[r] = ldexpf(1, -(int)r - 3);
    tol_auto_buffer struct tol_buffer *sums_in = buffer_of(sums, count * 4);
    tol_auto_buffer struct tol_buffer *scales_in = buffer_of(scale, sizeof scale);
    tol_auto_buffer struct tol_buffer *weight_in = buffer_of(weight, columns * 4);
    MUST(kn_guarded_create(test_context(), count * sizeof *got, 0, &out));
    MUST(kn_guarded_create(test_context(), count * sizeof *x, 0, &kept));
    MUST(kn_guarded_write(&kept, x));
    struct kn_halves_norm problem = {.rows = rows,
                                     .columns = columns,
                                     .x = guarded_place(&kept),
                                     .weight = place(weight_in),
                                     .out = guarded_place(&out),
                                     .epsilon = 1e-5f,
                                     .exponent = exponent};
    if (adds) problem.sums = place(sums_in);
    if (scales) problem.scales = place(scales_in);
    MUST(kn_halves_norm(kernels, stream, &problem));
    take(&kept, now);
    take(&out, got);
    for (size_t r = 0; r < rows; r++) {
        double squares = 0;
        for (size_t c = 0; c < columns; c++) {
            const size_t i = r * columns + c;
            const float by = scales ? scale[r] : 1;
            const float sum = adds ? fmaf(sums[i], by, x[i]) : x[i];
            cr_assert(now[i] == sum, "element %zu of row %zu: %g, not %g", c, r, (double)now[i],
                      (double)sum);
            squares += (double)sum * (double)sum;
        }
        const double share = 1 / sqrt(squares / (double)columns + 1e-5);
        for (size_t c = 0; c < columns; c++) {
            const size_t i = r * columns + c;
            const double right = ldexp((double)now[i] * share * (double)weight[c], exponent);
            cr_assert(is_near(value_of(got[i]), right, ldexp(1, exponent)),
                      "element %zu of row %zu of %zu: %g, not %g", c, r, columns, value_of(got[i]),
                      right);
        }
    }
    kn_guarded_destroy(&out), kn_guarded_destroy(&kept);
    free(x), free(sums), free(weight), free(now), free(got);
}

Test(halves, norms_add_and_are_as_defined) {
    check_norm(1, 4, false, false, 0);
    check_norm(3, 64, true, true, 9);
    check_norm(2, 4100, true, false, 5);
    check_norm(2, 20000, true, true, -2);
    check_norm(1, 32768, false, false, 1);
}

/* A row with elements of `size`; the largest half is at least 2^14 of 2^e, unless all are zero. */
static void check_gated(size_t columns, float size) {
    enum { ROWS = 3 };
    const size_t count = ROWS * columns;
    uint64_t state = 6;
    float *x = malloc(2 * count * sizeof *x), scales[ROWS];
    uint16_t *got = malloc(count * sizeof *got);
    struct kn_guarded out = {0}, powers = {0};
    cr_assert(x != NULL && got != NULL);
    kn_inputs_draw(KN_NORMAL, &state, 2, x, 2 * count);
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t c = 0; c < columns; c++) x[(2 * r + 1) * columns + c] *= r == 2 ? 0 : size;
    }
    tol_auto_buffer struct tol_buffer *in = buffer_of(x, 2 * count * 4);
    MUST(kn_guarded_create(test_context(), count * sizeof *got, 0, &out));
    MUST(kn_guarded_create(test_context(), sizeof scales, 0, &powers));
    MUST(kn_halves_gated(kernels, stream,
                         &(struct kn_halves_gated){ROWS, columns, place(in), guarded_place(&out),
                                                   guarded_place(&powers)}));
    take(&out, got);
    take(&powers, scales);
    for (size_t r = 0; r < ROWS; r++) {
        double largest = 0;
        int power = 0;
        cr_assert(frexpf(scales[r], &power) == 0.5f, "%g is no power of two", (double)scales[r]);
        for (size_t c = 0; c < columns; c++) {
            const double g = (double)x[2 * r * columns + c];
            const double u = (double)x[(2 * r + 1) * columns + c];
            const double right = g / (1 + exp(-g)) * u, half = value_of(got[r * columns + c]);
            cr_assert(is_near(half * (double)scales[r], right, (double)scales[r]),
                      "element %zu of row %zu: %g times %g, not %g", c, r, half, (double)scales[r],
                      right);
            largest = fmax(largest, fabs(half));
        }
        cr_assert(r == 2 ? largest == 0 : largest >= 16384 && largest <= 32768, "row %zu: %g", r,
                  largest);
    }
    kn_guarded_destroy(&out), kn_guarded_destroy(&powers);
    free(x), free(got);
}

Test(halves, gated_rows_of_any_size_fit) {
    check_gated(64, 1);
    check_gated(4100, 1e30f);
    check_gated(14336, 1e-25f);
    check_gated(32768, 3e4f);
}

Test(halves, an_infinite_element_reaches_its_row_alone) {
    enum { COLUMNS = 8, ROWS = 2 };
    float x[2 * ROWS * COLUMNS];
    uint16_t got[ROWS * COLUMNS];
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) x[i] = 1;
    x[COLUMNS + 3] = INFINITY;
    tol_auto_buffer struct tol_buffer *in = buffer_of(x, sizeof x);
    tol_auto_buffer struct tol_buffer *out = buffer_of(NULL, sizeof got);
    tol_auto_buffer struct tol_buffer *scales = buffer_of(NULL, ROWS * 4);
    MUST(kn_halves_gated(
        kernels, stream,
        &(struct kn_halves_gated){ROWS, COLUMNS, place(in), place(out), place(scales)}));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(out, got, sizeof got));
    cr_assert(isinf(value_of(got[3])) && value_of(got[COLUMNS + 3]) >= 16384);
}

Test(halves, heads_of_q_and_biases_are_of_the_first_columns) {
    enum { ROWS = 3, COLUMNS = 1028, STRIDE = 1100 };
    float x[ROWS * STRIDE], bias[COLUMNS], now[ROWS * STRIDE];
    uint16_t got[ROWS * COLUMNS];
    uint64_t state = 8;
    struct kn_guarded out = {0};
    kn_inputs_draw(KN_NORMAL, &state, 2, x, ROWS * STRIDE);
    kn_inputs_draw(KN_NORMAL, &state, 2, bias, COLUMNS);
    tol_auto_buffer struct tol_buffer *in = buffer_of(x, sizeof x);
    tol_auto_buffer struct tol_buffer *biases = buffer_of(bias, sizeof bias);
    MUST(kn_guarded_create(test_context(), sizeof got, 0, &out));
    MUST(kn_halves_bias(kernels, stream,
                        &(struct kn_halves_bias){ROWS, COLUMNS, STRIDE, place(in), place(biases)}));
    MUST(kn_halves_rows(
        kernels, stream,
        &(struct kn_halves_rows){ROWS, COLUMNS, STRIDE, place(in), guarded_place(&out)}));
    take(&out, got);
    MUST(tol_buffer_read(in, now, sizeof now));
    for (size_t i = 0; i < ROWS * STRIDE; i++) {
        const size_t row = i / STRIDE, c = i % STRIDE;
        const float right = c < COLUMNS ? x[i] + bias[c] : x[i];
        cr_assert(now[i] == right);
        cr_assert(c >= COLUMNS || got[row * COLUMNS + c] == kn_f16_of(right));
    }
    kn_guarded_destroy(&out);
}

/* ---- keys and values ---- */

/* Pages of random bytes, in a shuffled order; each element is looked up as paged.h says. */
static void check_cache(enum kn_cache kind, size_t head_size) {
    enum { PAGES = 3, POSITIONS = 41, KV = 2, SLOT = 1, LAYER_AT = 32 };
    const struct kn_paged_heads shape = {4, KV, head_size, kind};
    const size_t layer = kn_paged_layer_bytes(&shape), page = LAYER_AT + layer;
    const size_t part = KV * 16 * head_size, count = KV * POSITIONS * head_size;
    uint8_t *pages = malloc(PAGES * page);
    uint16_t *keys = malloc(count * 2), *values = malloc(count * 2);
    uint64_t state = 9, addresses[2 * PAGES] = {0};
    const int32_t slot = SLOT, position = POSITIONS - 1;
    struct kn_guarded key_out = {0}, value_out = {0};
    cr_assert(pages != NULL && keys != NULL && values != NULL);
    for (size_t i = 0; i < PAGES * page; i++) pages[i] = (uint8_t)(kn_random(&state) & 0x3f);
    tol_auto_buffer struct tol_buffer *device = buffer_of(pages, PAGES * page);
    for (size_t i = 0; i < PAGES; i++) {
        addresses[SLOT * PAGES + i] = tol_buffer_address(device) + (i + 1) % PAGES * page;
    }
    tol_auto_buffer struct tol_buffer *tables = buffer_of(addresses, sizeof addresses);
    tol_auto_buffer struct tol_buffer *slots = buffer_of(&slot, 4);
    tol_auto_buffer struct tol_buffer *positions = buffer_of(&position, 4);
    MUST(kn_guarded_create(test_context(), count * 2, 0, &key_out));
    MUST(kn_guarded_create(test_context(), count * 2, 0, &value_out));
    const struct kn_halves_cache problem = {
        .batch = {1, place(positions), place(slots), place(tables), PAGES, LAYER_AT},
        .shape = shape,
        .positions = POSITIONS,
        .keys = guarded_place(&key_out),
        .values = guarded_place(&value_out)};
    MUST(kn_halves_cache(kernels, stream, &problem));
    take(&key_out, keys);
    take(&value_out, values);
    for (size_t i = 0; i < 2 * count; i++) {
        const bool is_value = i >= count;
        const size_t at = i % count, e = at % head_size, p = at / head_size % POSITIONS;
        const size_t head = at / head_size / POSITIONS, in = p % 16;
        const uint8_t *own = pages + (p / 16 + 1) % PAGES * page + LAYER_AT;
        const size_t element = head * 16 * head_size +
                               (is_value ? in * head_size + e : (e / 8 * 16 + in) * 8 + e % 8) +
                               (is_value ? part : 0);
        uint16_t right = 0;
        if (kind == KN_CACHE_F16) {
            memcpy(&right, own + 2 * element, 2);
        } else {
            uint16_t scale = 0;
            const size_t block = (head * 16 + in) * (head_size / 32) + e / 32;
            memcpy(&scale, own + 2 * part + 2 * (block + (is_value ? part / 32 : 0)), 2);
            right = kn_f16_of(kn_f16_value(scale) * (float)(int8_t)own[element]);
        }
        const uint16_t got = is_value ? values[at] : keys[at];
        cr_assert(got == right, "%s %zu of head %zu at %zu: %#x, not %#x",
                  is_value ? "value" : "key", e, head, p, got, right);
    }
    MUST_FAIL(kn_halves_cache(kernels, stream,
                              &(struct kn_halves_cache){.batch = problem.batch,
                                                        .shape = shape,
                                                        .positions = 49,
                                                        .keys = problem.keys,
                                                        .values = problem.values}),
              TOL_OUT_OF_RANGE, "49 positions do not fit 3 pages");
    kn_guarded_destroy(&key_out), kn_guarded_destroy(&value_out);
    free(pages), free(keys), free(values);
}

Test(halves, keys_and_values_come_from_their_pages) {
    check_cache(KN_CACHE_F16, 8);
    check_cache(KN_CACHE_F16, 128);
    check_cache(KN_CACHE_Q8_0, 32);
    check_cache(KN_CACHE_Q8_0, 64);
}

/* ---- what is refused ---- */

Test(halves, what_makes_no_sense_is_refused) {
    tol_auto_buffer struct tol_buffer *some = buffer_of(NULL, 4096), *out = buffer_of(NULL, 4096);
    const struct kn_place in = place(some), to = place(out);
    MUST_FAIL(kn_halves_weights(kernels, stream,
                                &(struct kn_halves_weights){KN_WEIGHT_Q4_K, 255, in, to, 0}),
              TOL_INVALID_ARGUMENT, "255 weights, no multiple of 256");
    MUST_FAIL(kn_halves_weights(kernels, stream,
                                &(struct kn_halves_weights){KN_WEIGHT_Q4_K, 2304, in, to, 0}),
              TOL_OUT_OF_RANGE, "out needs 4608 bytes");
    MUST_FAIL(kn_halves_weights(kernels, stream,
                                &(struct kn_halves_weights){KN_WEIGHT_F16, 64, in, in, 0}),
              TOL_INVALID_ARGUMENT, "overlap");
    MUST_FAIL(kn_halves_weights(kernels, stream,
                                &(struct kn_halves_weights){KN_WEIGHT_F16, 64, in, to, 127}),
              TOL_INVALID_ARGUMENT, "2^127");
    MUST_FAIL(kn_halves_norm(kernels, stream,
                             &(struct kn_halves_norm){.rows = 1, .columns = 32772, .x = in}),
              TOL_INVALID_ARGUMENT, "rows of 32772 elements");
    MUST_FAIL(kn_halves_norm(
                  kernels, stream,
                  &(struct kn_halves_norm){.rows = (size_t)INT32_MAX + 1, .columns = 64, .x = in}),
              TOL_OVER_LIMIT, "2147483648 rows");
    MUST_FAIL(kn_halves_gated(kernels, stream, &(struct kn_halves_gated){1, 600, in, to, in}),
              TOL_OUT_OF_RANGE, "x needs 4800 bytes");
    MUST_FAIL(kn_halves_rows(kernels, stream, &(struct kn_halves_rows){1, 6, 8, in, to}),
              TOL_INVALID_ARGUMENT, "6 columns");
    MUST_FAIL(kn_halves_rows(kernels, stream, &(struct kn_halves_rows){70000, 4, 4, in, to}),
              TOL_OVER_LIMIT, "70000 rows");
    MUST(kn_halves_rows(kernels, stream, &(struct kn_halves_rows){0, 4, 4, in, to}));
}
