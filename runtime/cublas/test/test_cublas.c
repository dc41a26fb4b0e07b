/*
 * The library, numbers and memory of a test. Each test runs in a process of its own.
 */
#include "test_cublas.h"

#include "number.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *test_handle;
static void *test_library_13;
static unsigned test_random = 1;
static struct test_numbers test_made[256];
static size_t test_made_count;
static int test_computed, test_refused; /* by other libraries */

void *test_cublas_open(const char *name) {
    char own[PATH_MAX], path[PATH_MAX + 64];
    const char *folder = getenv("TOLLENS_CUBLAS_FOLDER");
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    cr_assert(slash != NULL, "%s", own);
    *slash = '\0';
    snprintf(path, sizeof path, "%s/%s", folder != NULL ? folder : own, name);
    void *library = dlopen(path, RTLD_NOW);
    cr_assert(library != NULL, "%s", dlerror());
    return library;
}

bool test_is_other(void) {
    return getenv("TOLLENS_CUBLAS_FOLDER") != NULL;
}

bool test_is_computed(int status) {
    const bool is_refused = test_is_other() && status == CUBLAS_STATUS_NOT_SUPPORTED;
    if (!is_refused) OK(status);
    *(is_refused ? &test_refused : &test_computed) += 1;
    return !is_refused;
}

void test_ours_only(const char *promise) {
    if (!test_is_other()) return;
    fprintf(stderr, "not of the libraries in TOLLENS_CUBLAS_FOLDER: only ours promise %s\n",
            promise);
    cr_skip_test("only our libraries promise %s", promise);
}

test_function test_cublas_find(void *library, const char *name) {
    void *address = dlsym(library, name);
    test_function function = NULL;
    cr_assert(address != NULL, "%s", dlerror());
    memcpy(&function, &address, sizeof function);
    return function;
}

test_function test_cublas(const char *name) {
    return test_cublas_find(test_library_13, name);
}

void test_cublas_begin(void) {
    struct tol_context *context = test_context();
    if (test_library() != NULL) setenv("TOLLENS_LIBCUDA", test_library(), 1);
    MUST(tol_context_bind(context));
    test_library_13 = test_cublas_open("libcublas.so.13");
    OK(test_cublas("cublasCreate_v2")(&test_handle));
}

void test_free(void) {
    for (size_t i = 0; i < test_made_count; i++) {
        free(test_made[i].host);
        tol_buffer_destroy(test_made[i].buffer);
    }
    test_made_count = 0;
}

void test_cublas_end(void) {
    test_free();
    if (test_handle != NULL) OK(test_cublas("cublasDestroy_v2")(test_handle));
    if (test_refused > 0) {
        fprintf(stderr, "%d problems were computed, and %d refused as not supported\n",
                test_computed, test_refused);
        cr_assert(test_computed > 0);
    }
    test_end();
}

/* ---- numbers ---- */

size_t test_bytes(int type) {
    static const size_t bytes[] = {
        [CUDA_R_32F] = 4, [CUDA_R_64F] = 8,  [CUDA_R_16F] = 2, [CUDA_R_8I] = 1,
        [CUDA_C_32F] = 8, [CUDA_C_64F] = 16, [CUDA_R_32I] = 4, [CUDA_R_16BF] = 2};
    return bytes[type];
}

void test_store(int type, struct test_number number, void *to) {
    const float pair[2] = {(float)number.real, (float)number.imaginary};
    const double wide[2] = {number.real, number.imaginary};
    const int32_t whole = isnan(number.real) ? 99 : (int32_t)number.real;
    const int8_t narrow = (int8_t)whole;
    const uint16_t half = type == CUDA_R_16F ? kn_f16_of(pair[0]) : kn_bf16_of(pair[0]);
    const void *from = type == CUDA_R_32F || type == CUDA_C_32F   ? (const void *)pair
                       : type == CUDA_R_64F || type == CUDA_C_64F ? (const void *)wide
                       : type == CUDA_R_32I                       ? (const void *)&whole
                       : type == CUDA_R_8I                        ? (const void *)&narrow
                                                                  : (const void *)&half;
    memcpy(to, from, test_bytes(type));
}

struct test_number test_load(int type, const void *from) {
    float pair[2] = {0, 0};
    double wide[2] = {0, 0};
    int32_t whole = 0;
    int8_t narrow = 0;
    uint16_t half = 0;
    switch (type) {
    case CUDA_R_32F:
    case CUDA_C_32F:
        memcpy(pair, from, test_bytes(type));
        return (struct test_number){pair[0], pair[1]};
    case CUDA_R_64F:
    case CUDA_C_64F:
        memcpy(wide, from, test_bytes(type));
        return (struct test_number){wide[0], wide[1]};
    case CUDA_R_32I:
        memcpy(&whole, from, sizeof whole);
        return (struct test_number){whole, 0};
    case CUDA_R_8I:
        memcpy(&narrow, from, sizeof narrow);
        return (struct test_number){narrow, 0};
    default:
        memcpy(&half, from, sizeof half);
        return (struct test_number){type == CUDA_R_16F ? kn_f16_value(half) : kn_bf16_value(half),
                                    0};
    }
}

struct test_number test_times(struct test_number a, struct test_number b) {
    return (struct test_number){a.real * b.real - a.imaginary * b.imaginary,
                                a.real * b.imaginary + a.imaginary * b.real};
}

static double test_next(void) {
    test_random = test_random * 1103515245u + 12345u;
    return (double)(int)((test_random >> 16) % 7) - 3;
}

struct test_numbers test_draw(int type, size_t count) {
    struct test_numbers numbers = {.type = type, .count = count > 0 ? count : 1};
    const bool is_complex = type == CUDA_C_32F || type == CUDA_C_64F;
    cr_assert(test_made_count < sizeof test_made / sizeof test_made[0]);
    numbers.host = malloc(numbers.count * test_bytes(type));
    cr_assert(numbers.host != NULL);
    for (size_t i = 0; i < numbers.count; i++) {
        const double real = test_next();
        test_set(&numbers, i, (struct test_number){real, is_complex ? test_next() : 0});
    }
    MUST(tol_buffer_create(test_context(), numbers.count, test_bytes(type), &numbers.buffer));
    test_send(&numbers);
    test_made[test_made_count++] = numbers;
    return numbers;
}

void test_set(struct test_numbers *numbers, size_t at, struct test_number number) {
    test_store(numbers->type, number, numbers->host + at * test_bytes(numbers->type));
}

void test_spoil(struct test_numbers *numbers, size_t at) {
    test_set(numbers, at, (struct test_number){NAN, NAN});
}

struct test_number test_get(const struct test_numbers *numbers, size_t at) {
    return test_load(numbers->type, numbers->host + at * test_bytes(numbers->type));
}

void test_send(struct test_numbers *numbers) {
    MUST(tol_buffer_write(numbers->buffer, numbers->host,
                          numbers->count * test_bytes(numbers->type)));
}

void test_fetch(struct test_numbers *numbers) {
    MUST(tol_context_synchronize(test_context(), 60000));
    MUST(tol_buffer_read(numbers->buffer, numbers->host,
                         numbers->count * test_bytes(numbers->type)));
}

void *test_address(const struct test_numbers *numbers, size_t at) {
    return (void *)(uintptr_t)(tol_buffer_address(numbers->buffer) +
                               at * test_bytes(numbers->type));
}

const void *test_scalar(int pointer_mode, int type, struct test_number number) {
    struct test_numbers one = test_draw(type, 1);
    test_set(&one, 0, number);
    test_send(&one);
    return pointer_mode == CUBLAS_POINTER_MODE_DEVICE ? test_address(&one, 0) : one.host;
}

void test_set_pointer_mode(int mode) {
    OK(test_cublas("cublasSetPointerMode_v2")(test_handle, mode));
}
