/*
 * Products against the definition, for each type, operation and form of batch. The numbers are
 * small and whole, so every result is exact but for its one rounding.
 */
#include "test_cublas.h"

#include <stdlib.h>
#include <string.h>

TestSuite(cublas_gemm, .init = test_cublas_begin, .fini = test_cublas_end);

enum form { ONE, STRIDED, ARRAYS };

struct trial {
    int type, c_type, compute, scale_type;
    int op_a, op_b, m, n, k;
    struct test_number alpha, beta;
    int pointer_mode;
    enum form form;
    const char *function; /* of one type; NULL: cublasGemmEx and its kin */
};

enum { PAD = 3, BATCH = 3 };

/* A matrix of each of a batch: column-major, PAD elements between columns, which nothing reads. */
struct matrices {
    struct test_numbers numbers;
    int rows, columns, leading, batch;
    size_t stride;
};

static struct matrices matrices_draw(int type, int rows, int columns, int batch) {
    struct matrices x = {.rows = rows, .columns = columns, .leading = rows + PAD, .batch = batch};
    x.stride = (size_t)x.leading * (size_t)columns + PAD;
    x.numbers = test_draw(type, x.stride * (size_t)batch);
    for (size_t i = 0; i < x.numbers.count; i++) {
        const size_t at = i % x.stride;
        if (at >= (size_t)x.leading * (size_t)columns || at % (size_t)x.leading >= (size_t)rows)
            test_spoil(&x.numbers, i);
    }
    test_send(&x.numbers);
    return x;
}

static size_t matrices_at(const struct matrices *x, int batch, int row, int column) {
    return (size_t)batch * x->stride + (size_t)column * (size_t)x->leading + (size_t)row;
}

/* op(x)(row, column) */
static struct test_number matrices_get(const struct matrices *x, int operation, int batch, int row,
                                       int column) {
    if (operation == CUBLAS_OP_N) return test_get(&x->numbers, matrices_at(x, batch, row, column));
    struct test_number number = test_get(&x->numbers, matrices_at(x, batch, column, row));
    if (operation == CUBLAS_OP_C) number.imaginary = -number.imaginary;
    return number;
}

static const void *matrices_addresses(const struct matrices *x) {
    struct test_numbers list = test_draw(CUDA_R_64F, (size_t)x->batch); /* 8 bytes each */
    for (int i = 0; i < x->batch; i++) {
        void *address = test_address(&x->numbers, matrices_at(x, i, 0, 0));
        memcpy(list.host + 8 * i, &address, sizeof address);
    }
    test_send(&list);
    return test_address(&list, 0);
}

/* The words of the function for a call, in their order; sizes of 32 bits are passed as 64. */
static int call(const struct trial *t, const struct matrices *a, const struct matrices *b,
                const struct matrices *c) {
    static const char *const names[] = {"cublasGemmEx_64", "cublasGemmStridedBatchedEx_64",
                                        "cublasGemmBatchedEx_64"};
    const bool is_array = t->form == ARRAYS, is_typed = t->function == NULL;
    const struct matrices *all[] = {a, b, c};
    const int of[] = {t->type, t->type, t->c_type};
    uintptr_t words[24] = {(uintptr_t)t->op_a, (uintptr_t)t->op_b, (uintptr_t)t->m, (uintptr_t)t->n,
                           (uintptr_t)t->k};
    size_t n = 5;
    words[n++] = (uintptr_t)test_scalar(t->pointer_mode, t->scale_type, t->alpha);
    for (int i = 0; i < 3; i++) {
        if (i == 2) words[n++] = (uintptr_t)test_scalar(t->pointer_mode, t->scale_type, t->beta);
        words[n++] =
            (uintptr_t)(is_array ? matrices_addresses(all[i]) : test_address(&all[i]->numbers, 0));
        if (is_typed) words[n++] = (uintptr_t)of[i];
        words[n++] = (uintptr_t)all[i]->leading;
        if (t->form == STRIDED) words[n++] = all[i]->stride;
    }
    if (t->form != ONE) words[n++] = BATCH;
    if (is_typed) words[n++] = (uintptr_t)t->compute;
    test_set_pointer_mode(t->pointer_mode);
    return test_cublas(is_typed ? names[t->form] : t->function)(
        test_handle, words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7],
        words[8], words[9], words[10], words[11], words[12], words[13], words[14], words[15],
        words[16], words[17], words[18], words[19], words[20], words[21]);
}

/* alpha op(A) op(B) + beta C, rounded to the type of C. */
static struct test_number expected(const struct trial *t, const struct matrices *a,
                                   const struct matrices *b, struct test_number before, int batch,
                                   int row, int column) {
    struct test_number sum = {0, 0}, stored;
    unsigned char room[16];
    for (int l = 0; l < t->k; l++) {
        const struct test_number one = test_times(matrices_get(a, t->op_a, batch, row, l),
                                                  matrices_get(b, t->op_b, batch, l, column));
        sum.real += one.real;
        sum.imaginary += one.imaginary;
    }
    sum = test_times(t->alpha, sum);
    if (t->beta.real != 0 || t->beta.imaginary != 0) {
        stored = test_times(t->beta, before);
        sum.real += stored.real;
        sum.imaginary += stored.imaginary;
    }
    test_store(t->c_type, sum, room);
    return test_load(t->c_type, room);
}

static void check(const struct trial *t) {
    const int batch = t->form == ONE ? 1 : BATCH;
    const bool plain_a = t->op_a == CUBLAS_OP_N, plain_b = t->op_b == CUBLAS_OP_N;
    const bool reads_c = t->beta.real != 0 || t->beta.imaginary != 0;
    struct matrices a = matrices_draw(t->type, plain_a ? t->m : t->k, plain_a ? t->k : t->m, batch);
    struct matrices b = matrices_draw(t->type, plain_b ? t->k : t->n, plain_b ? t->n : t->k, batch);
    struct matrices c = matrices_draw(t->c_type, t->m, t->n, batch);
    for (size_t i = 0; !reads_c && i < c.numbers.count; i++) test_spoil(&c.numbers, i);
    test_send(&c.numbers);
    struct matrices before = c;
    before.numbers.host = malloc(c.numbers.count * test_bytes(t->c_type));
    cr_assert(before.numbers.host != NULL);
    memcpy(before.numbers.host, c.numbers.host, c.numbers.count * test_bytes(t->c_type));
    if (!test_is_computed(call(t, &a, &b, &c))) {
        free(before.numbers.host);
        return;
    }
    test_fetch(&c.numbers);
    for (int i = 0; i < batch; i++) {
        for (int column = 0; column < t->n; column++) {
            for (int row = 0; row < t->m; row++) {
                const size_t at = matrices_at(&c, i, row, column);
                const struct test_number is = test_get(&c.numbers, at);
                const struct test_number to_be =
                    expected(t, &a, &b, test_get(&before.numbers, at), i, row, column);
                cr_assert(is.real == to_be.real && is.imaginary == to_be.imaginary,
                          "types %d %d, %d x %d x %d, operations %d %d, form %d, mode %d: "
                          "C[%d][%d, %d] is %g + %g i, not %g + %g i",
                          t->type, t->c_type, t->m, t->n, t->k, t->op_a, t->op_b, (int)t->form,
                          t->pointer_mode, i, row, column, is.real, is.imaginary, to_be.real,
                          to_be.imaginary);
                /* For the comparison of what lies between. */
                test_set(&before.numbers, at, is);
            }
        }
    }
    cr_assert(
        memcmp(before.numbers.host, c.numbers.host, c.numbers.count * test_bytes(t->c_type)) == 0,
        "nothing but C is written");
    free(before.numbers.host);
}

static const int types[][4] = {{CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F},
                               {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F},
                               {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, CUDA_R_16F},
                               {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F},
                               {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F},
                               {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F},
                               {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F},
                               {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I},
                               {CUDA_R_8I, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F},
                               {CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F, CUDA_C_32F},
                               {CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F, CUDA_C_64F},
                               {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F}};
enum { TYPES = sizeof types / sizeof types[0] };

static struct trial trial_of(int type, int m, int n, int k) {
    return (struct trial){.type = types[type][0],
                          .c_type = types[type][1],
                          .compute = types[type][2],
                          .scale_type = types[type][3],
                          .m = m,
                          .n = n,
                          .k = k,
                          .alpha = {2, 0},
                          .beta = {-1, 0}};
}

static void run(const struct trial *t) {
    if (test_takes_trial()) check(t);
    test_free();
}

Test(cublas_gemm, every_type_and_operation_in_tiles_and_elements) {
    static const int shapes[][3] = {{3, 5, 7}, {65, 70, 33}};
    for (int i = 0; i < TYPES * 2 * 9; i++) {
        const int *shape = shapes[i / TYPES % 2];
        struct trial t = trial_of(i % TYPES, shape[0], shape[1], shape[2]);
        t.op_a = i / TYPES / 2 % 3;
        t.op_b = i / TYPES / 6;
        run(&t);
    }
}

Test(cublas_gemm, every_form_of_batch_and_scalar) {
    for (int i = 0; i < TYPES * 3 * 2 * 4; i++) {
        const int kind = i / TYPES;
        struct trial t = trial_of(i % TYPES, kind % 2 == 0 ? 4 : 66, 30, 20);
        t.form = (enum form)(kind % 3);
        t.pointer_mode = kind / 3 % 2;
        /* Also without alpha, without beta, and without both. C is NaN where beta is 0. */
        if (kind / 6 % 2 != 0) t.alpha = (struct test_number){0, 0};
        if (kind / 12 != 0) t.beta = (struct test_number){0, 0};
        run(&t);
    }
}

Test(cublas_gemm, every_shape) {
    static const int sizes[] = {0, 1, 2, 17, 64, 130};
    for (int i = 0; i < 6 * 6 * 6; i++) {
        struct trial t =
            trial_of(i % 2 == 0 ? 0 : 3, sizes[i % 6], sizes[i / 6 % 6], sizes[i / 36]);
        t.op_a = i % 2;
        run(&t);
    }
}

Test(cublas_gemm, complex_scalars) {
    for (int type = 9; type < 11; type++) {
        for (int mode = 0; mode < 2; mode++) {
            struct trial t = trial_of(type, 20, 70, 9);
            t.alpha = (struct test_number){1, -2};
            t.beta = (struct test_number){0, 3};
            t.op_a = CUBLAS_OP_C;
            t.pointer_mode = mode;
            check(&t);
            test_free();
        }
    }
}

/* Sums in float of numbers of 16 bits: the product of halves would overflow their range. */
Test(cublas_gemm, sums_of_halves_are_kept_in_float) {
    struct test_numbers a = test_draw(CUDA_R_16F, 4096), c = test_draw(CUDA_R_16F, 1);
    for (size_t i = 0; i < 4096; i++)
        test_set(&a, i, (struct test_number){i % 2 == 0 ? 60 : 59, 0});
    test_send(&a);
    const void *alpha = test_scalar(0, CUDA_R_32F, (struct test_number){1.0 / 4096, 0});
    const void *beta = test_scalar(0, CUDA_R_32F, (struct test_number){0, 0});
    OK(test_cublas("cublasGemmEx")(test_handle, 1, 0, 1, 1, 4096, alpha, test_address(&a, 0),
                                   CUDA_R_16F, 4096, test_address(&a, 0), CUDA_R_16F, 4096, beta,
                                   test_address(&c, 0), CUDA_R_16F, 1, CUBLAS_COMPUTE_32F, -1));
    test_fetch(&c);
    cr_assert(test_get(&c, 0).real == 3540, "%g", test_get(&c, 0).real); /* 3540.5 as a half */
}

/* Every function of one type gives the bits of cublasGemmEx. */
Test(cublas_gemm, functions_of_one_type) {
    static const struct {
        const char *name;
        int type, form;
        bool is_wide;
    } functions[] = {
#define OF(letter, version, type)                                                                  \
    {"cublas" #letter "gemm" version, type, ONE, false},                                           \
        {"cublas" #letter "gemm" version "_64", type, ONE, true},                                  \
        {"cublas" #letter "gemmStridedBatched", type, STRIDED, false},                             \
        {"cublas" #letter "gemmStridedBatched_64", type, STRIDED, true},                           \
        {"cublas" #letter "gemmBatched", type, ARRAYS, false},                                     \
        {"cublas" #letter "gemmBatched_64", type, ARRAYS, true},
        OF(S, "_v2", 0) OF(D, "_v2", 1) OF(H, "", 2) OF(C, "_v2", 9) OF(Z, "_v2", 10)};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        struct trial t = trial_of(functions[i].type, 6, 5, 4);
        t.form = (enum form)functions[i].form;
        t.function = functions[i].name;
        t.op_b = CUBLAS_OP_T;
        check(&t);
        test_free();
    }
}

/* The first product of a process loads its kernel, which a captured stream must not notice. */
Test(cublas_gemm, the_first_product_may_be_captured) {
    const struct tol_driver_table *driver = tol_driver_functions(test_driver());
    struct tol_stream *stream = NULL;
    CUgraph graph = NULL;
    const float two = 2, zero = 0;
    struct test_numbers a = test_draw(CUDA_R_32F, 4), c = test_draw(CUDA_R_32F, 4);
    MUST(tol_stream_create(test_context(), NULL, &stream));
    CUstream handle = tol_stream_handle(stream);
    OK(test_cublas("cublasSetStream_v2")(test_handle, handle));
    cr_assert(driver->cuStreamBeginCapture_v2(handle, CU_STREAM_CAPTURE_MODE_GLOBAL) == 0);
    OK(test_cublas("cublasSgemm_v2")(test_handle, 0, 0, 2, 2, 2, &two, test_address(&a, 0), 2,
                                     test_address(&a, 0), 2, &zero, test_address(&c, 0), 2));
    cr_assert(driver->cuStreamEndCapture(handle, &graph) == 0 && graph != NULL);
    cr_assert(driver->cuGraphDestroy(graph) == 0);
    OK(test_cublas("cublasSetStream_v2")(test_handle, NULL));
    tol_stream_destroy(stream);
}

/* ---- what is refused ---- */

static int plain(int op, int m, int n, int k, const void *alpha, int lda, int ldc) {
    static struct test_numbers room;
    if (room.count == 0) room = test_draw(CUDA_R_32F, 100);
    void *at = test_address(&room, 0);
    return test_cublas("cublasSgemm_v2")(test_handle, op, 0, m, n, k, alpha, at, lda, at, 9, alpha,
                                         at, ldc);
}

Test(cublas_gemm, arguments_are_checked) {
    const float one = 1;
    OK(plain(0, 3, 3, 3, &one, 3, 3));
    OK(plain(0, 0, 3, 3, &one, 3, 3));
    STATUS(plain(0, -1, 3, 3, &one, 3, 3), INVALID_VALUE);
    STATUS(plain(0, 3, 3, -3, &one, 3, 3), INVALID_VALUE);
    STATUS(plain(0, 3, 3, 3, &one, 2, 3), INVALID_VALUE);
    STATUS(plain(1, 3, 3, 4, &one, 3, 3), INVALID_VALUE);
    STATUS(plain(0, 3, 3, 3, &one, 3, 2), INVALID_VALUE);
    STATUS(plain(0, 0, 0, 0, &one, 0, 1), INVALID_VALUE);
    STATUS(plain(3, 3, 3, 3, &one, 3, 3), INVALID_VALUE);
    STATUS(plain(0, 3, 3, 3, NULL, 3, 3), INVALID_VALUE);
    STATUS(
        test_cublas("cublasSgemm_v2")(NULL, 0, 0, 3, 3, 3, &one, &one, 3, &one, 3, &one, &one, 3),
        NOT_INITIALIZED);
}

Test(cublas_gemm, types_without_a_product_are_refused) {
    enum { NOT = CUBLAS_STATUS_NOT_SUPPORTED, NONE = CUBLAS_STATUS_INVALID_VALUE };
    static const int refused[][5] = {{CUDA_R_32F, CUDA_R_32F, CUDA_R_64F, CUBLAS_COMPUTE_64F, NOT},
                                     {CUDA_R_32F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, NOT},
                                     {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_16F, NOT},
                                     {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32I, NOT},
                                     {28, 28, CUDA_R_32F, CUBLAS_COMPUTE_32F, NOT}, /* e4m3 */
                                     {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 1, NONE}};
    const float one = 1;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const int status = test_cublas("cublasGemmEx")(
            test_handle, 0, 0, 1, 1, 1, &one, &one, refused[i][0], 1, &one, refused[i][1], 1, &one,
            &one, refused[i][2], 1, refused[i][3], -1);
        cr_assert(status == refused[i][4], "row %zu: %d, not %d", i, status, refused[i][4]);
    }
}
