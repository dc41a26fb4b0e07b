/*
 * Shared by the tests of cuBLAS: a library, opened as a program's loader opens it, on the device
 * that TOLLENS_DEVICE names; numbers of its types; matrices in device memory. On a GPU,
 * TOLLENS_CUBLAS_FOLDER names a folder of other libraries, such as NVIDIA's, for the same tests.
 */
#ifndef TEST_CUBLAS_H
#define TEST_CUBLAS_H

#include "base/cublas_types.h"
#include "test/test_device.h"

/* A suite's .init: opens libcublas.so.13 and makes a handle of it. Its .fini is test_cublas_end. */
void test_cublas_begin(void);
void test_cublas_end(void);
extern void *test_handle;

/* Opens a library by its name, and finds a function of it; both must be there. All functions take
 * integers and pointers only, which are passed alike with and without a prototype. */
void *test_cublas_open(const char *name);
/* Whether TOLLENS_CUBLAS_FOLDER names other libraries. They may refuse problems that ours compute:
 * test_is_computed counts those; test_cublas_end prints how many, and fails if there was no other.
 * test_ours_only ends a test of other libraries here, and prints what they need not keep. */
bool test_is_other(void);
bool test_is_computed(int status);
void test_ours_only(const char *promise);

typedef int (*test_function)(void *, ...);
test_function test_cublas_find(void *library, const char *name);
/* A function of libcublas.so.13. */
test_function test_cublas(const char *name);

/* A real or complex number, and one of a cudaDataType_t in memory. */
struct test_number {
    double real, imaginary;
};
size_t test_bytes(int type);
void test_store(int type, struct test_number number, void *to);
struct test_number test_load(int type, const void *from);
struct test_number test_times(struct test_number a, struct test_number b);

/* Numbers in device and host memory: count of a type, drawn from -3 to 3, whose sums and products
 * are exact. Freed by test_free and test_cublas_end. */
struct test_numbers {
    int type;
    size_t count;
    unsigned char *host;
    struct tol_buffer *buffer;
};
struct test_numbers test_draw(int type, size_t count);
void test_free(void); /* all that were drawn */
/* What no call may read: NaN, or 99 of integers. On the host; test_send copies all of it. */
void test_spoil(struct test_numbers *numbers, size_t at);
void test_set(struct test_numbers *numbers, size_t at, struct test_number number);
struct test_number test_get(const struct test_numbers *numbers, size_t at);
void test_send(struct test_numbers *numbers);
void test_fetch(struct test_numbers *numbers);
void *test_address(const struct test_numbers *numbers, size_t at);

/* A scalar where the pointer mode wants it. */
const void *test_scalar(int pointer_mode, int type, struct test_number number);
void test_set_pointer_mode(int mode);

#define STATUS(call, expected)                                                                     \
    do {                                                                                           \
        const int status_is = (call);                                                              \
        cr_assert(status_is == CUBLAS_STATUS_##expected, "%s is %d, not " #expected, #call,        \
                  status_is);                                                                      \
    } while (0)
#define OK(call) STATUS(call, SUCCESS)

#endif
