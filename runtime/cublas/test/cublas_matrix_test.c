/*
 * Operations of a matrix and vectors, and of matrices, against plain loops: every type and
 * operation, increments of both signs, both pointer modes.
 */
#include "test_vector.h"

#include <stdio.h>
#include <string.h>

TestSuite(cublas_matrix, .init = test_cublas_begin, .fini = test_cublas_end);

enum { ROWS = 70, COLUMNS = 9, LEADING = 73 };

/* op(A)(i, j) of a column-major matrix of ROWS rows. */
static struct test_number element(const struct test_numbers *a, int op, int i, int j) {
    if (op == CUBLAS_OP_N) return test_get(a, (size_t)j * LEADING + (size_t)i);
    const struct test_number x = test_get(a, (size_t)i * LEADING + (size_t)j);
    return op == CUBLAS_OP_C ? test_conjugate(x) : x;
}

static void check_gemv(int kind, int step, int op, int mode, struct test_number beta) {
    const int type = test_kinds[kind].type;
    const int rows = op == 0 ? ROWS : COLUMNS, columns = op == 0 ? COLUMNS : ROWS;
    const struct test_number alpha = {2, 0};
    struct test_numbers a = test_draw(type, LEADING * COLUMNS);
    struct test_vector x = test_vector_draw(type, columns, test_steps[step][0]);
    struct test_vector y = test_vector_draw(type, rows, test_steps[step][1]);
    for (int i = 0; beta.real == 0 && i < rows; i++) test_spoil(&y.numbers, test_vector_at(&y, i));
    test_send(&y.numbers);
    test_set_pointer_mode(mode);
    OK(test_function_of(test_kinds[kind].letter, "gemv",
                        false)(test_handle, op, ROWS, COLUMNS, test_scalar(mode, type, alpha),
                               test_address(&a, 0), LEADING, test_vector_address(&x), x.step,
                               test_scalar(mode, type, beta), test_vector_address(&y), y.step));
    for (int i = 0; i < rows; i++) {
        struct test_number sum = {0, 0};
        for (int j = 0; j < columns; j++)
            sum = test_plus(sum, test_times(element(&a, op, i, j), test_vector_get(&x, j)));
        sum = test_times(alpha, sum);
        if (beta.real != 0) sum = test_plus(sum, test_times(beta, test_vector_get(&y, i)));
        test_set(&y.numbers, test_vector_at(&y, i), sum);
    }
    test_vector_check(&y, "gemv");
}

Test(cublas_matrix, gemv) {
    for (int i = 0; i < TEST_KINDS * TEST_STEPS * 3 * 2; i++) {
        check_gemv(i % TEST_KINDS, i / TEST_KINDS % TEST_STEPS, i / TEST_KINDS / TEST_STEPS % 3,
                   i / TEST_KINDS / TEST_STEPS / 3, test_scalars[i % 2]);
        test_free();
    }
}

/* The addresses of batch vectors or matrices that follow one another. */
static const void *addresses(const struct test_numbers *all, size_t stride, int batch) {
    struct test_numbers list = test_draw(CUDA_R_64F, (size_t)batch); /* 8 bytes each */
    for (int i = 0; i < batch; i++) {
        const void *address = test_address(all, (size_t)i * stride);
        memcpy(list.host + 8 * i, &address, sizeof address);
    }
    test_send(&list);
    return test_address(&list, 0);
}

Test(cublas_matrix, gemv_of_batches) {
    static const struct {
        const char *name;
        int type, y_type, scale;
    } functions[] = {{"Sgemv", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
                     {"Zgemv", CUDA_C_64F, CUDA_C_64F, CUDA_C_64F},
                     {"HSHgemv", CUDA_R_16F, CUDA_R_16F, CUDA_R_32F},
                     {"TSSgemv", CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F}};
    enum { BATCH = 3, M = 20, K = 30 };
    for (int f = 0; f < 8; f++) {
        const int type = functions[f / 2].type, y_type = functions[f / 2].y_type;
        const bool is_array = f % 2 != 0;
        char name[64];
        struct test_numbers a = test_draw(type, M * K * BATCH), x = test_draw(type, K * BATCH);
        struct test_numbers y = test_draw(y_type, M * BATCH);
        const void *one = test_scalar(0, functions[f / 2].scale, (struct test_number){1, 0});
        snprintf(name, sizeof name, "cublas%s%s", functions[f / 2].name,
                 is_array ? "Batched" : "StridedBatched_64");
        if (is_array) {
            OK(test_cublas(name)(test_handle, 0, M, K, one, addresses(&a, M * K, BATCH), M,
                                 addresses(&x, K, BATCH), 1, one, addresses(&y, M, BATCH), 1,
                                 BATCH));
        } else {
            OK(test_cublas(name)(test_handle, 0, (long)M, (long)K, one, test_address(&a, 0),
                                 (long)M, (long)M * K, test_address(&x, 0), 1L, (long)K, one,
                                 test_address(&y, 0), 1L, (long)M, (long)BATCH));
        }
        for (int i = 0; i < M * BATCH; i++) {
            struct test_number sum = test_get(&y, (size_t)i);
            for (int l = 0; l < K; l++) {
                sum = test_plus(sum, test_times(test_get(&a, (size_t)(i / M) * M * K +
                                                                 (size_t)l * M + (size_t)(i % M)),
                                                test_get(&x, (size_t)(i / M) * K + (size_t)l)));
            }
            test_set(&y, (size_t)i, sum);
        }
        struct test_vector all = {.numbers = y, .count = M * BATCH, .step = 1};
        test_vector_check(&all, name);
    }
}

Test(cublas_matrix, ger) {
    static const char *const names[] = {"ger", "ger", "gerc", "geru"};
    for (int i = 0; i < TEST_KINDS * TEST_STEPS; i++) {
        const int kind = i % TEST_KINDS, step = i / TEST_KINDS, type = test_kinds[kind].type;
        const struct test_number alpha = {-2, 0};
        struct test_numbers a = test_draw(type, LEADING * COLUMNS);
        struct test_vector x = test_vector_draw(type, ROWS, test_steps[step][0]);
        struct test_vector y = test_vector_draw(type, COLUMNS, test_steps[step][1]);
        test_set_pointer_mode(step % 2);
        OK(test_function_of(test_kinds[kind].letter, names[kind], false)(
            test_handle, ROWS, COLUMNS, test_scalar(step % 2, type, alpha), test_vector_address(&x),
            x.step, test_vector_address(&y), y.step, test_address(&a, 0), LEADING));
        for (int j = 0; j < ROWS * COLUMNS; j++) {
            const size_t at = (size_t)(j / ROWS) * LEADING + (size_t)(j % ROWS);
            const struct test_number right = test_vector_get(&y, j / ROWS);
            test_set(&a, at,
                     test_plus(
                         test_get(&a, at),
                         test_times(alpha, test_times(test_vector_get(&x, j % ROWS),
                                                      kind == 2 ? test_conjugate(right) : right))));
        }
        struct test_vector all = {.numbers = a, .count = LEADING * COLUMNS, .step = 1};
        test_vector_check(&all, "ger");
        test_free();
    }
}

Test(cublas_matrix, syrk_writes_one_triangle) {
    for (int i = 0; i < TEST_KINDS * 2 * 2; i++) {
        const int kind = i % TEST_KINDS, fill = i / TEST_KINDS % 2, op = i / TEST_KINDS / 2;
        const int type = test_kinds[kind].type, inner = op == 0 ? COLUMNS : ROWS;
        const struct test_number alpha = {2, 0}, beta = {-1, 0};
        const int size = op == 0 ? ROWS : COLUMNS;
        struct test_numbers a = test_draw(type, LEADING * COLUMNS);
        struct test_numbers c = test_draw(type, (size_t)size * (size_t)size);
        OK(test_function_of(test_kinds[kind].letter, "syrk", false)(
            test_handle, fill, op, size, inner, test_scalar(0, type, alpha), test_address(&a, 0),
            LEADING, test_scalar(0, type, beta), test_address(&c, 0), size));
        for (int j = 0; j < size * size; j++) {
            const int row = j % size, column = j / size;
            struct test_number sum = {0, 0};
            if (fill == 0 ? row < column : row > column) continue; /* 0 is the lower one */
            for (int l = 0; l < inner; l++) {
                sum =
                    test_plus(sum, test_times(element(&a, op, row, l), element(&a, op, column, l)));
            }
            test_set(&c, (size_t)j,
                     test_plus(test_times(alpha, sum), test_times(beta, test_get(&c, (size_t)j))));
        }
        struct test_vector all = {.numbers = c, .count = size * size, .step = 1};
        test_vector_check(&all, "syrk");
        test_free();
    }
}

Test(cublas_matrix, geam) {
    for (int i = 0; i < TEST_KINDS * 9; i++) {
        const int kind = i % TEST_KINDS, op_a = i / TEST_KINDS % 3, op_b = i / TEST_KINDS / 3;
        const int type = test_kinds[kind].type, size = COLUMNS;
        const struct test_number alpha = {2, 0}, beta = {op_a == op_b ? 0 : -1, 0};
        struct test_numbers a = test_draw(type, LEADING * COLUMNS);
        struct test_numbers b = test_draw(type, LEADING * COLUMNS);
        struct test_numbers c = test_draw(type, (size_t)size * (size_t)size);
        char name[32];
        snprintf(name, sizeof name, "cublas%sgeam", test_kinds[kind].letter);
        for (size_t j = 0; beta.real == 0 && j < b.count; j++) test_spoil(&b, j);
        test_send(&b);
        OK(test_cublas(name)(test_handle, op_a, op_b, size, size, test_scalar(0, type, alpha),
                             test_address(&a, 0), LEADING, test_scalar(0, type, beta),
                             test_address(&b, 0), LEADING, test_address(&c, 0), size));
        for (int j = 0; j < size * size; j++) {
            struct test_number sum = test_times(alpha, element(&a, op_a, j % size, j / size));
            if (beta.real != 0)
                sum = test_plus(sum, test_times(beta, element(&b, op_b, j % size, j / size)));
            test_set(&c, (size_t)j, sum);
        }
        struct test_vector all = {.numbers = c, .count = size * size, .step = 1};
        test_vector_check(&all, "geam");
        test_free();
    }
}

Test(cublas_matrix, dgmm) {
    for (int i = 0; i < TEST_KINDS * TEST_STEPS * 2; i++) {
        const int kind = i % TEST_KINDS, step = i / TEST_KINDS % TEST_STEPS;
        const int type = test_kinds[kind].type, side = i / TEST_KINDS / TEST_STEPS;
        char name[32];
        struct test_numbers a = test_draw(type, LEADING * COLUMNS);
        struct test_numbers c = test_draw(type, LEADING * COLUMNS);
        struct test_vector x =
            test_vector_draw(type, side == 0 ? ROWS : COLUMNS, test_steps[step][0]);
        snprintf(name, sizeof name, "cublas%sdgmm", test_kinds[kind].letter);
        OK(test_cublas(name)(test_handle, side, ROWS, COLUMNS, test_address(&a, 0), LEADING,
                             test_vector_address(&x), x.step, test_address(&c, 0), LEADING));
        for (int j = 0; j < ROWS * COLUMNS; j++) {
            const size_t at = (size_t)(j / ROWS) * LEADING + (size_t)(j % ROWS);
            test_set(
                &c, at,
                test_times(test_get(&a, at), test_vector_get(&x, side == 0 ? j % ROWS : j / ROWS)));
        }
        struct test_vector all = {.numbers = c, .count = LEADING * COLUMNS, .step = 1};
        test_vector_check(&all, name);
        test_free();
    }
}

Test(cublas_matrix, arguments_are_checked) {
    const float one = 1;
    float to = 0;
    STATUS(
        test_cublas("cublasSgemv_v2")(test_handle, 0, 2, 2, &one, &one, 1, &one, 1, &one, &to, 1),
        INVALID_VALUE);
    STATUS(test_cublas("cublasSger_v2")(test_handle, 2, 2, &one, &one, 1, &one, 1, &to, 1),
           INVALID_VALUE);
    STATUS(
        test_cublas("cublasSgeam")(test_handle, 0, 0, 2, 2, &one, &one, 1, &one, &one, 2, &to, 2),
        INVALID_VALUE);
    STATUS(test_cublas("cublasSsyrk_v2")(test_handle, 3, 0, 2, 2, &one, &one, 2, &one, &to, 2),
           INVALID_VALUE);
    test_ours_only("to refuse an increment of 0");
    STATUS(
        test_cublas("cublasSgemv_v2")(test_handle, 0, 2, 2, &one, &one, 2, &one, 0, &one, &to, 1),
        INVALID_VALUE);
}
