/*
 * The corpus's programs about numbers: wide and narrow ones, hashes, pictures, functions; and those
 * that print.
 */
#include "corpus_scene.h"

#include "hashes.h"
#include "numbers.h"
#include "pictures.h"

#include <stdlib.h>
#include <string.h>

TestSuite(corpus_numbers, .fini = test_soft_close);

#define SAME(what, i, got, expected)                                                               \
    cr_assert_eq(got, expected, "%s: %s %u: 0x%llx, not 0x%llx", corpus_version(), what,           \
                 (unsigned)(i), (unsigned long long)(got), (unsigned long long)(expected))

__extension__ typedef unsigned __int128 wide_product;

static uint64_t high_product(uint64_t a, uint64_t b) {
    return (uint64_t)((wide_product)a * b >> 64);
}

static void check_numbers(CUmodule module) {
    enum { COUNT = 300 };
    static uint64_t wide[5 * COUNT];
    static uint32_t narrow[COUNT], bits[9 * COUNT];
    uint32_t count = COUNT;
    CUdeviceptr w = corpus_put(NULL, sizeof wide), n = corpus_put(NULL, sizeof narrow);
    CUdeviceptr b = corpus_put(NULL, sizeof bits);
    CORPUS_LAUNCH(module, "wide_numbers", 3, 128, 0, &w, &count);
    CORPUS_LAUNCH(module, "narrow_numbers", 3, 128, 0, &n, &count);
    CORPUS_LAUNCH(module, "bits", 3, 128, 0, &b, &count);
    corpus_get(w, wide, sizeof wide);
    corpus_get(n, narrow, sizeof narrow);
    corpus_get(b, bits, sizeof bits);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t x = numbers_input(i), y = numbers_input(i + 77);
        uint64_t high = high_product(x, y);
        uint64_t signed_high = high - ((int64_t)x < 0 ? y : 0) - ((int64_t)y < 0 ? x : 0);
        SAME("gcd", i, wide[i], numbers_gcd(x, y));
        SAME("power", i, wide[COUNT + i], numbers_power(x, y, (y >> 33) + 2));
        SAME("root", i, wide[2 * COUNT + i], numbers_root(x));
        SAME("signed", i, wide[3 * COUNT + i], (uint64_t)numbers_signed((int64_t)x, (int64_t)y));
        SAME("high", i, wide[4 * COUNT + i], high ^ signed_high);
        SAME("narrow", i, narrow[i], numbers_narrow(corpus_mix(i)));
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t wide_x = numbers_input(i), product;
        uint32_t x = (uint32_t)wide_x, y = corpus_mix(i + 5), by = i % 40 < 32 ? i % 40 : 32;
        int64_t sx = (int32_t)x, sy = (int32_t)y;
        SAME("brev", i, bits[i], numbers_reverse(x) + 3 * numbers_reverse((uint32_t)wide_x));
        SAME("popc", i, bits[COUNT + i], numbers_count(x) + 100 * numbers_count(wide_x));
        SAME("clz", i, bits[2 * COUNT + i],
             numbers_leading(x, 32) + 100 * numbers_leading(wide_x, 64));
        SAME("ffs", i, bits[3 * COUNT + i], numbers_first(x) + 100 * numbers_first(wide_x));
        product = (uint64_t)y << 32 | x;
        SAME("funnel", i, bits[4 * COUNT + i],
             numbers_funnel(x, y, i) ^ (uint32_t)(by < 32 ? product >> by : y));
        SAME("bytes", i, bits[5 * COUNT + i], numbers_bytes(x, y, i * 0x1357));
        SAME("interleave", i, bits[6 * COUNT + i], numbers_interleave(x, y));
        uint32_t difference = (uint32_t)(sx > sy ? sx - sy : sy - sx);
        SAME("sad", i, bits[7 * COUNT + i],
             difference + 5 + (uint32_t)(sx * sy >> 32) + (uint32_t)((uint64_t)x * y >> 32));
        int64_t small_x = (int32_t)(x << 8) >> 8, small_y = (int32_t)(y << 8) >> 8;
        SAME("half", i, bits[8 * COUNT + i],
             (uint32_t)((sx + sy) >> 1) ^ (uint32_t)((sx + sy + 1) >> 1) ^
                 (uint32_t)(small_x * small_y));
    }
}

CORPUS_TEST(corpus_numbers, wide_narrow_and_bits,
            { cr_assert_eq(corpus_each("numbers", check_numbers), 3); })

static void check_circle(CUmodule module) {
    enum { BLOCKS = 2, THREADS = 96, ROUNDS = 20, SEED = 7 };
    uint64_t inside[5], expected = 0;
    uint32_t seed = SEED, rounds = ROUNDS;
    CUdeviceptr counts = corpus_put(NULL, sizeof inside);
    CORPUS_LAUNCH(module, "circle", BLOCKS, THREADS, 0, &seed, &rounds, &counts);
    corpus_get(counts, inside, sizeof inside);
    for (uint32_t t = 0; t < BLOCKS * THREADS; t++) {
        for (uint32_t n = 0; n < ROUNDS; n++) {
            uint32_t r[4] = {n, t, 0, 0};
            hashes_philox(r, SEED, 42);
            /* Exact in double; the device rounds to single, which no point here is near enough to
             * the circle to notice. */
            double x = (r[0] >> 8) * 0x1p-24, y = (r[1] >> 8) * 0x1p-24;
            expected += x * x + y * y < 1.0;
            if (n == 0 && t < 4) SAME("random", t, inside[1 + t], r[t]);
        }
    }
    SAME("points", 0, inside[0], expected);
}

static void check_hashes(CUmodule module) {
    enum { COUNT = 100, LENGTH = 40 };
    static uint8_t messages[COUNT][LENGTH];
    static uint32_t digests[COUNT][8], crcs[COUNT];
    static const uint32_t cubes[64] = HASHES_CUBES;
    /* The digest of the empty message, and the check value of CRC-32, as they are published. */
    static const uint32_t empty[8] = {0xe3b0c442, 0x98fc1c14, 0x9afbf4c8, 0x996fb924,
                                      0x27ae41e4, 0x649b934c, 0xa495991b, 0x7852b855};
    uint32_t table[256], expected[8], length = LENGTH, count = COUNT;
    for (uint32_t i = 0; i < COUNT * LENGTH; i++)
        messages[i / LENGTH][i % LENGTH] = (uint8_t)corpus_mix(i);
    for (uint32_t i = 0; i < 256; i++) table[i] = hashes_crc_entry(i);
    cr_assert_eq(hashes_crc((const uint8_t *)"123456789", 9, table), 0xcbf43926);
    CUdeviceptr m = corpus_put(messages, sizeof messages), d = corpus_put(NULL, sizeof digests);
    CUdeviceptr c = corpus_put(NULL, sizeof crcs);
    CORPUS_LAUNCH(module, "sha256", 2, 64, 0, &m, &length, &d, &count);
    corpus_get(d, digests, sizeof digests);
    cr_assert(memcmp(digests[0], empty, sizeof empty) == 0, "%s", corpus_version());
    for (uint32_t i = 0; i < COUNT; i++) {
        hashes_sha256(messages[i], i % (LENGTH + 1), expected, cubes);
        cr_assert(memcmp(digests[i], expected, sizeof expected) == 0, "%s: %u", corpus_version(),
                  i);
    }
    void *none = NULL;
    CORPUS_LAUNCH(module, "make_crc_table", 1, 256, 0, &none);
    CORPUS_LAUNCH(module, "crc32", 2, 64, 0, &m, &length, &c, &count);
    corpus_get(c, crcs, sizeof crcs);
    for (uint32_t i = 0; i < COUNT; i++) {
        SAME("crc", i, crcs[i], hashes_crc(messages[i], LENGTH, table));
    }
    check_circle(module);
}

CORPUS_TEST(corpus_numbers, hashes_and_random_numbers,
            { cr_assert_eq(corpus_each("hashes", check_hashes), 3); })

static void check_pictures(CUmodule module) {
    enum { WIDTH = 45, HEIGHT = 40, LIMIT = 100, SIDE = 33 };
    static uint32_t out[WIDTH * HEIGHT];
    static uint8_t cells[SIDE][SIDE], got[SIDE][SIDE];
    uint32_t width = WIDTH, height = HEIGHT, limit = LIMIT, side = SIDE;
    CUdeviceptr o = corpus_put(NULL, sizeof out);
    CORPUS_LAUNCH_2D(module, "mandelbrot", 3, 5, 16, 8, 0, &o, &width, &height, &limit);
    corpus_get(o, out, sizeof out);
    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++) {
        uint32_t row = i / WIDTH, column = i % WIDTH;
        float x = (float)column * 0.0625f - 2.0f, y = (float)row * 0.0625f - 1.25f;
        SAME("point", i, out[i], pictures_escape(x, y, LIMIT));
    }
    CORPUS_LAUNCH_2D(module, "mandelbrot_double", 3, 5, 16, 8, 0, &o, &width, &height, &limit);
    corpus_get(o, out, sizeof out);
    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++) {
        uint32_t row = i / WIDTH, column = i % WIDTH;
        double x = fma(column, 0.001, -0.75), y = fma(row, 0.001, 0.1);
        SAME("point", i, out[i], pictures_escape_double(x, y, LIMIT));
    }
    for (uint32_t i = 0; i < SIDE * SIDE; i++) cells[i / SIDE][i % SIDE] = corpus_mix(i) % 3 == 0;
    CUdeviceptr from = corpus_put(cells, sizeof cells), to = corpus_put(NULL, sizeof cells);
    for (int generation = 0; generation < 5; generation++) {
        CORPUS_LAUNCH_2D(module, "life", 3, 5, 16, 8, 0, &from, &to, &side);
        corpus_get(to, got, sizeof got);
        for (uint32_t i = 0; i < SIDE * SIDE; i++) {
            uint32_t r = i / SIDE, c = i % SIDE, around = 0;
            for (uint32_t k = 0; k < 9; k++) {
                if (k != 4)
                    around += cells[(r + SIDE + k / 3 - 1) % SIDE][(c + SIDE + k % 3 - 1) % SIDE];
            }
            SAME("cell", i, got[r][c], pictures_lives(cells[r][c], around));
        }
        memcpy(cells, got, sizeof cells);
        CUdeviceptr kept = from;
        from = to;
        to = kept;
    }
}

CORPUS_TEST(corpus_numbers, pictures, { cr_assert_eq(corpus_each("pictures", check_pictures), 3); })

/* The rows of functions.cu; exact: no error is allowed, for what rounds only at the end. */
static double function_of(unsigned row, double x, bool *exact) {
    *exact = row == 12 || row == 13 || row == 14 || (row >= 21 && row <= 23);
    switch (row) {
    case 0:
        return sin(x);
    case 1:
        return cos(x);
    case 2:
        return tan(x);
    case 3:
        return exp(x);
    case 4:
        return log(fabs(x));
    case 5:
        return pow(fabs(x), 1.7);
    case 6:
        return erf(x);
    case 7:
        return tgamma(x);
    case 8:
        return cbrt(x);
    case 9:
        return atan2(x, 2);
    case 10:
        return hypot(x, 3);
    case 11:
        return tanh(x);
    case 12:
        return sqrt(fabs(x));
    case 13:
        return floor(x) + ceil(x * 0.5);
    case 14:
        return fmod(x, 0.7);
    case 15:
        return log1p(fabs(x));
    case 16:
        return exp2(x);
    case 17:
        return asin(x / (1 + fabs(x)));
    case 18:
        return sinh(x * 0.1);
    case 19:
        return lgamma(x);
    case 20:
        return 1 / sqrt(fabs(x) + 0.1);
    case 21:
        return ldexp(x, 3);
    case 22:
        return round(x);
    case 23:
        return rint(x);
    case 24:
        return expm1(x * 0.01);
    default:
        return erfc(x * 0.1);
    }
}

static double fast_of(unsigned row, double x, bool *exact) {
    *exact = row == 5 || row == 11 || row == 12 || row == 13 || row == 15;
    switch (row) {
    case 0:
        return sin(x);
    case 1:
        return cos(x);
    case 2:
        return exp(x);
    case 3:
        return log(fabs(x));
    case 4:
    case 8:
        return x / 3;
    case 5:
        return x * x + 1;
    case 6:
        return x + (double)1e-3f;
    case 7:
        return x * (double)1.1f;
    case 9:
    case 14:
        return sqrt(fabs(x));
    case 10:
        return 1 / x;
    case 11:
        return x < 0 ? 0 : x > 1 ? 1 : x;
    case 12:
        return floor(x);
    case 13:
        return -x;
    default:
        return rint(x * 1.5);
    }
}

enum { INPUTS = 128, FUNCTIONS = 26, FASTS = 16 };

/* Errors are of the larger of the result and one: where a result is near zero between its poles and
 * zeros, its own size says nothing. CUDA's tables allow a few units in the last place. */
static void check_row(const char *kernel, unsigned row, unsigned i, double x, double got,
                      double expected, double allowed) {
    double size = fabs(expected) > 1 ? fabs(expected) : 1;
    cr_assert(fabs(got - expected) <= allowed * size || got == expected,
              "%s, %s, row %u: at %.17g it is %.17g, not %.17g (input %u)", corpus_version(),
              kernel, row, x, got, expected, i);
}

static void check_functions(CUmodule module) {
    static float singles[INPUTS], single_out[FUNCTIONS * INPUTS];
    static double doubles[INPUTS], double_out[FUNCTIONS * INPUTS];
    uint32_t count = INPUTS;
    for (uint32_t i = 0; i < INPUTS; i++) {
        double x = ((double)corpus_mix(i + 1) / 4294967296.0 - 0.5) * 16;
        singles[i] = (float)x;
        doubles[i] = x;
    }
    CUdeviceptr in = corpus_put(singles, sizeof singles), out = corpus_put(NULL, sizeof double_out);
    CORPUS_LAUNCH_2D(module, "single", 1, FUNCTIONS, INPUTS, 1, 0, &in, &out, &count);
    corpus_get(out, single_out, sizeof single_out);
    bool exact = false;
    for (unsigned k = 0; k < FUNCTIONS * INPUTS; k++) {
        double x = (double)singles[k % INPUTS], expected = function_of(k / INPUTS, x, &exact);
        if (k / INPUTS == 14) expected = fmodf(singles[k % INPUTS], 0.7f);
        if (exact) expected = (double)(float)expected;
        check_row("single", k / INPUTS, k % INPUTS, x, single_out[k], expected, exact ? 0 : 2e-6);
    }
    CORPUS_LAUNCH_2D(module, "fast", 1, FASTS, INPUTS, 1, 0, &in, &out, &count);
    corpus_get(out, single_out, FASTS * INPUTS * 4);
    for (unsigned k = 0; k < FASTS * INPUTS; k++) {
        double x = (double)singles[k % INPUTS], expected = fast_of(k / INPUTS, x, &exact);
        if (exact) expected = (double)(float)expected;
        check_row("fast", k / INPUTS, k % INPUTS, x, single_out[k], expected, exact ? 0 : 5e-6);
    }
    in = corpus_put(doubles, sizeof doubles);
    CORPUS_LAUNCH_2D(module, "twice", 1, FUNCTIONS, INPUTS, 1, 0, &in, &out, &count);
    corpus_get(out, double_out, sizeof double_out);
    for (unsigned k = 0; k < FUNCTIONS * INPUTS; k++) {
        double x = doubles[k % INPUTS], expected = function_of(k / INPUTS, x, &exact);
        check_row("twice", k / INPUTS, k % INPUTS, x, double_out[k], expected, exact ? 0 : 1e-14);
    }
}

CORPUS_TEST(corpus_numbers, mathematical_functions,
            { cr_assert_eq(corpus_each("functions", check_functions), 3); })

/* Arguments far from zero take another way through the reduction of angles. */
static void check_far(CUmodule module) {
    static double in[INPUTS], out[FUNCTIONS * INPUTS];
    uint32_t count = INPUTS;
    for (uint32_t i = 0; i < INPUTS; i++) in[i] = ldexp(1 + corpus_mix(i) * 0x1p-32, (int)i * 7);
    CUdeviceptr x = corpus_put(in, sizeof in), y = corpus_put(NULL, sizeof out);
    CORPUS_LAUNCH_2D(module, "twice", 1, 3, INPUTS, 1, 0, &x, &y, &count);
    corpus_get(y, out, 3 * INPUTS * 8);
    bool exact = false;
    for (unsigned k = 0; k < 3 * INPUTS; k++) {
        double expected = function_of(k / INPUTS, in[k % INPUTS], &exact);
        check_row("twice", k / INPUTS, k % INPUTS, in[k % INPUTS], out[k], expected, 1e-13);
    }
}

CORPUS_TEST(corpus_numbers, angles_far_from_zero,
            { cr_assert_eq(corpus_each("functions", check_far), 3); })

static void check_talking(CUmodule module) {
    static const char *const names[3] = {"zero", "one", "many"};
    char expected[2000];
    size_t at = 0;
    int32_t base = 1;
    for (unsigned t = 0; t < 4; t++) {
        int32_t n = base + (int32_t)t;
        at += (size_t)sprintf(expected + at,
                              "thread %u of block 0: %d is %s, %5.2f, %c, %llx, %e, %s\n", t, n,
                              names[n < 2 ? n : 2], n / 3.0, 'a' + n, (unsigned long long)n << 33,
                              (double)((float)n * 1e-5f), n % 2 ? "odd" : "even");
    }
    sprintf(expected + at, "100%% of %-4d|%04x|%+d|%g\n", 2, 2u, 2, 0.1 * 2);
    test_capture(stdout);
    CORPUS_LAUNCH(module, "talk", 1, 4, 0, &base);
    cr_assert_str_eq(test_captured(stdout), expected, "%s: %s", corpus_version(),
                     test_captured(stdout));
    int32_t values[3] = {0, 7, 9};
    CUdeviceptr v = corpus_put(values, sizeof values);
    test_capture(stdout);
    CORPUS_LAUNCH(module, "insist", 1, 3, 0, &v);
    cr_assert_str_eq(test_captured(stdout), "seven\n");
}

CORPUS_TEST(corpus_numbers, kernels_that_print, {
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    cr_assert_eq(corpus_each("talking", check_talking), 4);
})

Test(corpus_numbers, an_assertion_of_the_corpus) {
    static const char *const versions[] = {"talking_80.ptx", "talking_80_debug.ptx"};
    for (int k = 0; k < 2; k++) {
        char *text = test_fixture("corpus", versions[k]);
        int32_t values[3] = {5, -1, 9};
        CUmodule module = test_load(text);
        CUdeviceptr v = corpus_put(values, sizeof values);
        void *arguments[] = {&v};
        test_capture(stderr);
        cr_assert_eq(cuLaunchKernel(test_function(module, "insist"), 1, 1, 1, 3, 1, 1, 0, NULL,
                                    arguments, NULL),
                     CUDA_SUCCESS);
        cr_assert_eq(cuCtxSynchronize(), CUDA_ERROR_ASSERT);
        cr_assert(strstr(test_captured(stderr),
                         "talking.cu:19: void insist(const signed int *): block: [0,0,0], thread: "
                         "[1,0,0] Assertion `values[threadIdx.x] >= 0` failed.\n") != NULL,
                  "%s", test_captured(stderr));
        if (k == 1) {
            cr_assert(strstr(test_captured(stderr), "talking.cu:19") != NULL);
        }
        test_soft_close();
        free(text);
    }
}
