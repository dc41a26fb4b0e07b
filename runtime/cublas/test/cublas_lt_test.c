/*
 * cublasLt: descriptors, and the product with its epilogues against plain loops.
 */
#include "test_cublas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *lt;

static void begin(void) {
    test_cublas_begin();
    lt = test_cublas_open("libcublasLt.so.13");
}

TestSuite(cublas_lt, .init = begin, .fini = test_cublas_end);

static test_function find(const char *name) {
    return test_cublas_find(lt, name);
}

/* Attributes of layouts and of the product, by cublasLt.h. */
enum { ORDER = 1, BATCH_COUNT = 5, BATCH_STRIDE = 6 };
enum { POINTER_MODE = 2, TRANSA = 3, TRANSB = 4, EPILOGUE = 7, BIAS = 8, BIAS_STRIDE = 10 };
enum { AUX_POINTER = 11, A_SCALE_POINTER = 17, BIAS_TYPE = 26 };
enum { NONE = 1, RELU = 2, WITH_BIAS = 4, GELU = 32, RELU_AUX = 130 };

static void *layout(int type, int rows, int columns, bool by_rows, int batch) {
    void *made = NULL;
    const int leading = (by_rows ? columns : rows) + 2;
    const int32_t order = by_rows, count = batch;
    const int64_t stride = (int64_t)leading * (by_rows ? rows : columns);
    OK(find("cublasLtMatrixLayoutCreate")(&made, type, (long)rows, (long)columns, (long)leading));
    OK(find("cublasLtMatrixLayoutSetAttribute")(made, ORDER, &order, sizeof order));
    OK(find("cublasLtMatrixLayoutSetAttribute")(made, BATCH_COUNT, &count, sizeof count));
    OK(find("cublasLtMatrixLayoutSetAttribute")(made, BATCH_STRIDE, &stride, sizeof stride));
    return made;
}

static int set(void *product, int attribute, int64_t value, size_t bytes) {
    return find("cublasLtMatmulDescSetAttribute")(product, attribute, &value, bytes);
}

/* ---- the product ---- */

enum { M = 67, N = 20, K = 33, BATCH = 2 };

struct trial {
    int type, c_type, compute, scale_type;
    bool a_rows, b_rows, d_rows, transpose_a, transpose_b;
    int epilogue, pointer_mode;
    double beta;
};

/* A batch of matrices as a layout describes it. */
struct matrices {
    struct test_numbers numbers;
    void *layout;
    int rows, columns;
    bool by_rows;
};

static struct matrices matrices_draw(int type, int rows, int columns, bool by_rows) {
    const size_t leading = (size_t)(by_rows ? columns : rows) + 2;
    return (struct matrices){test_draw(type, leading * (size_t)(by_rows ? rows : columns) * BATCH),
                             layout(type, rows, columns, by_rows, BATCH), rows, columns, by_rows};
}

static size_t matrices_at(const struct matrices *x, int batch, int row, int column) {
    const size_t inner = (size_t)(x->by_rows ? column : row);
    const size_t outer = (size_t)(x->by_rows ? row : column);
    const size_t leading = (size_t)(x->by_rows ? x->columns : x->rows) + 2;
    return ((size_t)batch * (size_t)(x->by_rows ? x->rows : x->columns) + outer) * leading + inner;
}

static double matrices_get(const struct matrices *x, bool transposed, int batch, int row,
                           int column) {
    return test_get(&x->numbers, transposed ? matrices_at(x, batch, column, row)
                                            : matrices_at(x, batch, row, column))
        .real;
}

static double follow(int epilogue, double x) {
    if ((epilogue & RELU) != 0) return x < 0 ? 0 : x;
    if ((epilogue & GELU) != 0)
        return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
    return x;
}

/* Vector modes have an alpha per row: 1, 2, 3, 1, 2, ... */
static double alpha_of(const struct trial *t, int row) {
    return t->pointer_mode >= 2 ? 1 + row % 3 : 2;
}

static const void *scalars(const struct trial *t, bool is_alpha) {
    const bool is_vector = t->pointer_mode >= 2 && (is_alpha || t->pointer_mode == 2);
    struct test_numbers list = test_draw(t->scale_type, M);
    for (int i = 0; i < M; i++) {
        test_set(&list, (size_t)i,
                 (struct test_number){is_alpha ? alpha_of(t, is_vector ? i : 0) : t->beta, 0});
    }
    test_send(&list);
    return t->pointer_mode == 0 || (!is_alpha && t->pointer_mode == 4) ? list.host
                                                                       : test_address(&list, 0);
}

static void *product_of(const struct trial *t, const struct test_numbers *bias) {
    void *product = NULL;
    OK(find("cublasLtMatmulDescCreate")(&product, t->compute, t->scale_type));
    OK(set(product, TRANSA, t->transpose_a, 4));
    OK(set(product, TRANSB, t->transpose_b, 4));
    OK(set(product, EPILOGUE, t->epilogue, 4));
    OK(set(product, POINTER_MODE, t->pointer_mode, 4));
    OK(set(product, BIAS, (int64_t)(uintptr_t)test_address(bias, 0), 8));
    OK(set(product, BIAS_STRIDE, M, 8));
    return product;
}

static void check_value(const struct trial *t, double is, double to_be) {
    unsigned char room[16];
    test_store(t->c_type, (struct test_number){to_be, 0}, room);
    const double rounded = test_load(t->c_type, room).real;
    const double error = (t->epilogue & GELU) == 0 ? 0 : 1e-2 * fabs(to_be) + 1e-5;
    cr_assert(is == rounded || fabs(is - rounded) <= error,
              "types %d %d, epilogue %d, pointer mode %d: %g, not %g", t->type, t->c_type,
              t->epilogue, t->pointer_mode, is, rounded);
}

static void check(const struct trial *t) {
    struct matrices a =
        matrices_draw(t->type, t->transpose_a ? K : M, t->transpose_a ? M : K, t->a_rows);
    struct matrices b =
        matrices_draw(t->type, t->transpose_b ? N : K, t->transpose_b ? K : N, t->b_rows);
    /* Only ours promise that C may have another order than D. */
    struct matrices c = matrices_draw(t->c_type, M, N, t->d_rows == test_is_other());
    struct matrices d = matrices_draw(t->c_type, M, N, t->d_rows);
    struct test_numbers bias = test_draw(t->c_type, M * BATCH);
    void *product = product_of(t, &bias), *preference = NULL;
    struct {
        uint64_t algorithm[8];
        size_t workspace;
        int status;
        float waves;
        int reserved[4];
    } found;
    int count = 0;
    OK(find("cublasLtMatmulPreferenceCreate")(&preference));
    if (!test_is_computed(find("cublasLtMatmulAlgoGetHeuristic")(test_handle, product, a.layout,
                                                                 b.layout, c.layout, d.layout,
                                                                 preference, 1, &found, &count))) {
        test_free();
        return;
    }
    cr_assert(count == 1 && found.status == 0);
    OK(find("cublasLtMatmul")(test_handle, product, scalars(t, true), test_address(&a.numbers, 0),
                              a.layout, test_address(&b.numbers, 0), b.layout, scalars(t, false),
                              test_address(&c.numbers, 0), c.layout, test_address(&d.numbers, 0),
                              d.layout, &found.algorithm, NULL, (size_t)0, NULL));
    test_fetch(&d.numbers);
    for (int i = 0; i < M * N * BATCH; i++) {
        const int row = i % M, column = i / M % N, batch = i / M / N;
        double sum = 0;
        for (int l = 0; l < K; l++) {
            sum += matrices_get(&a, t->transpose_a, batch, row, l) *
                   matrices_get(&b, t->transpose_b, batch, l, column);
        }
        sum *= alpha_of(t, row);
        if (t->pointer_mode != 3) sum += t->beta * matrices_get(&c, false, batch, row, column);
        if ((t->epilogue & WITH_BIAS) != 0)
            sum += test_get(&bias, (size_t)batch * M + (size_t)row).real;
        check_value(t, matrices_get(&d, false, batch, row, column), follow(t->epilogue, sum));
    }
    void *const layouts[] = {a.layout, b.layout, c.layout, d.layout};
    for (int i = 0; i < 4; i++) OK(find("cublasLtMatrixLayoutDestroy")(layouts[i]));
    OK(find("cublasLtMatmulDescDestroy")(product));
    OK(find("cublasLtMatmulPreferenceDestroy")(preference));
    test_free();
}

static const struct trial kinds[] = {
    {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, .beta = 3},
    {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F, .beta = 0},
    {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, .beta = -1},
    {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, CUDA_R_16F, .beta = 1},
    {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F, .beta = 2},
    {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I, .beta = 0}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

Test(cublas_lt, orders_and_transpositions) {
    for (int i = 0; i < 32; i++) {
        struct trial t = kinds[i % KINDS];
        t.a_rows = i & 1, t.b_rows = i & 2, t.d_rows = i & 4;
        t.transpose_a = i & 8, t.transpose_b = i & 16;
        t.epilogue = WITH_BIAS;
        check(&t);
    }
}

Test(cublas_lt, epilogues) {
    static const int epilogues[] = {
        NONE, RELU, WITH_BIAS, RELU | WITH_BIAS, GELU, GELU | WITH_BIAS};
    for (int i = 0; i < KINDS * 6; i++) {
        struct trial t = kinds[i % KINDS];
        t.epilogue = epilogues[i / KINDS];
        /* GELU is of sums in float that are scaled in float. */
        if ((t.epilogue & GELU) == 0 || t.scale_type == CUDA_R_32F) check(&t);
    }
}

Test(cublas_lt, pointer_modes) {
    for (int i = 0; i < 5 * 2 * 2; i++) {
        struct trial t = kinds[i % 2 == 0 ? 0 : 3];
        t.pointer_mode = i / 2 % 5;
        t.d_rows = i / 10;
        t.epilogue = NONE;
        check(&t);
    }
}

/* ---- what is refused ---- */

static int heuristic(const struct trial *t, void *product, int d_type, int rows) {
    uint64_t found[16];
    int count = -1;
    void *a = layout(t->type, M, K, false, 1), *b = layout(t->type, K, N, false, 1);
    void *c = layout(d_type, rows, N, false, 1), *preference = NULL;
    OK(find("cublasLtMatmulPreferenceCreate")(&preference));
    const int status = find("cublasLtMatmulAlgoGetHeuristic")(test_handle, product, a, b, c, c,
                                                              preference, 1, found, &count);
    cr_assert(status != 0 || count == 1, "%d", count);
    OK(find("cublasLtMatmulPreferenceDestroy")(preference));
    void *const layouts[] = {a, b, c};
    for (int i = 0; i < 3; i++) OK(find("cublasLtMatrixLayoutDestroy")(layouts[i]));
    return status;
}

Test(cublas_lt, what_is_not_computed_is_refused_before_and_at_the_product) {
    const struct trial t = {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F,
                            .epilogue = NONE};
    struct test_numbers bias = test_draw(CUDA_R_32F, M);
    static const int changes[][3] = {{EPILOGUE, RELU_AUX, 4}, {EPILOGUE, RELU | GELU, 4},
                                     {AUX_POINTER, 64, 8},    {A_SCALE_POINTER, 64, 8},
                                     {POINTER_MODE, 5, 4},    {0, CUBLAS_COMPUTE_64F, 4}};
    void *product = product_of(&t, &bias);
    OK(heuristic(&t, product, CUDA_R_32F, M));
    STATUS(heuristic(&t, product, CUDA_R_16F, M), NOT_SUPPORTED);
    STATUS(heuristic(&t, product, CUDA_R_32F, M + 1), INVALID_VALUE);
    test_ours_only("to refuse these problems");
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        OK(find("cublasLtMatmulDescDestroy")(product));
        product = product_of(&t, &bias);
        OK(set(product, changes[i][0], changes[i][1], (size_t)changes[i][2]));
        STATUS(heuristic(&t, product, CUDA_R_32F, M), NOT_SUPPORTED);
    }
    OK(find("cublasLtMatmulDescDestroy")(product));
    product = product_of(&t, &bias);
    OK(set(product, EPILOGUE, WITH_BIAS, 4));
    OK(set(product, BIAS_TYPE, CUDA_R_16F, 4));
    STATUS(heuristic(&t, product, CUDA_R_32F, M), NOT_SUPPORTED);
    OK(find("cublasLtMatmulDescDestroy")(product));
}

Test(cublas_lt, attributes_are_kept_and_checked) {
    void *product = NULL;
    uint64_t in_place[32], small[2];
    int32_t value = 0;
    size_t written = 0;
    OK(find("cublasLtMatmulDescCreate")(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    OK(set(product, TRANSA, 1, 4));
    OK(find("cublasLtMatmulDescGetAttribute")(product, TRANSA, &value, sizeof value, &written));
    cr_assert(value == 1 && written == 4);
    OK(find("cublasLtMatmulDescGetAttribute")(product, BIAS, NULL, (size_t)0, &written));
    cr_assert(written == 8);
    STATUS(find("cublasLtMatmulDescGetAttribute")(product, BIAS, &value, sizeof value, &written),
           INVALID_VALUE);
    STATUS(set(product, TRANSA, 1, 8), INVALID_VALUE);
    STATUS(set(product, 99, 1, 4), INVALID_VALUE);
    STATUS(set(NULL, TRANSA, 1, 4), INVALID_VALUE);
    OK(find("cublasLtMatmulDescDestroy")(product));
    OK(find("cublasLtMatmulDescInit_internal")(in_place, sizeof in_place, CUBLAS_COMPUTE_64F, 1));
    OK(find("cublasLtMatmulDescGetAttribute")(in_place, 0, &value, sizeof value, &written));
    cr_assert(value == CUBLAS_COMPUTE_64F);
    STATUS(find("cublasLtMatmulDescInit_internal")(small, sizeof small, CUBLAS_COMPUTE_64F, 1),
           ALLOC_FAILED);
}

/* ---- the library ---- */

Test(cublas_lt, both_libraries_are_there_for_both_versions_of_cuda) {
    test_ours_only("libraries for both versions in one folder");
    static const char *const names[][2] = {{"libcublas.so.12", "libcublasLt.so.12"},
                                           {"libcublas.so.13", "libcublasLt.so.13"}};
    for (int i = 0; i < 2; i++) {
        void *blas = test_cublas_open(names[i][0]), *light = test_cublas_open(names[i][1]);
        void *handle = NULL;
        int version = 0, major = 0;
        OK(test_cublas_find(blas, "cublasGetVersion_v2")(NULL, &version));
        OK(test_cublas_find(light, "cublasLtGetProperty")((void *)0, &major));
        cr_assert(version / 10000 == 12 + i && major == 12 + i, "%d, %d", version, major);
        OK(test_cublas_find(light, "cublasLtCreate")(&handle));
        OK(test_cublas_find(light, "cublasLtDestroy")(handle));
        STATUS(test_cublas_find(light, "cublasLtDestroy")(NULL), NOT_INITIALIZED);
        STATUS(test_cublas_find(blas, "cublasStrsm_v2")(NULL), NOT_SUPPORTED);
        STATUS(test_cublas_find(light, "cublasLtMatrixTransform")(NULL), NOT_SUPPORTED);
    }
}

/* In a process of its own, which has opened no driver before. */
Test(cublas_without_driver, a_handle_cannot_be_made) {
    test_ours_only("to take their driver from TOLLENS_LIBCUDA");
    void *handle = NULL;
    setenv("TOLLENS_LIBCUDA", "/no/such/libcuda.so", 1);
    void *library = test_cublas_open("libcublas.so.13");
    STATUS(test_cublas_find(library, "cublasCreate_v2")(&handle), NOT_INITIALIZED);
    STATUS(test_cublas_find(library, "cublasCreate_v2")(NULL), INVALID_VALUE);
    STATUS(test_cublas_find(library, "cublasDestroy_v2")(NULL), NOT_INITIALIZED);
    STATUS(test_cublas_find(library, "cublasStrsm_v2")(NULL), NOT_SUPPORTED);
}
