/*
 * What the runtime's tests share: a device to run on, kernels to run, and assertions that show the
 * runtime's message.
 *
 * The same tests run on both drivers: TOLLENS_DEVICE=cuda takes the platform's libcuda, anything
 * else the soft device beside the test program. Without a GPU the former skips, with the reason.
 */
#ifndef TOLLENS_TEST_DEVICE_H
#define TOLLENS_TEST_DEVICE_H

#include "tollens/tollens.h"

#include <criterion/criterion.h>

/* The driver library to open; NULL for the platform's own. */
const char *test_library(void);

/* Whether the tests run on a real GPU. */
bool test_on_gpu(void);

/* A driver, or the test is skipped. A context on device 0 of it. Closed by test_end. */
struct tol_driver *test_driver(void);
struct tol_context *test_context(void);
void test_end(void);

/* The path of a file under fixtures, in a static buffer; the test fails without it. */
const char *test_fixture_path(const char *name);

/* A file under fixtures, followed by a NUL; the test fails without it. Free it. */
char *test_fixture(const char *name, size_t *bytes);

/* The text of a file under fixtures/ptx, NUL-terminated; the test fails without it. Free it. */
char *test_ptx(const char *name);

/* A kernel of fixtures/ptx/kernels/NAME.ptx, in a module that test_end destroys. */
struct tol_kernel *test_kernel(const char *name);

/* Whether to run the next trial of a table of shapes whose rows all go the same way through the
 * code. All are run, unless TOLLENS_TEST_ONE_IN says 7, say: then the first of a test and one of
 * every seven, as ci/check and tools that are slow want it. TOLLENS_TEST_SEED (0) says which of the
 * seven, so that seven seeds in a row take all. A prime meets every column of a table. */
bool test_takes_trial(void);

/* The call must succeed; on failure its message is shown. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        tol_status must_status = (call);                                                           \
        cr_assert(must_status == TOL_OK, "%s: %s: %s", #call, tol_status_name(must_status),        \
                  tol_message());                                                                  \
    } while (0)

/* The call must fail with this status, and say text in its message. */
#define MUST_FAIL(call, expected, text)                                                            \
    do {                                                                                           \
        tol_status must_status = (call);                                                           \
        cr_assert(must_status == (expected), "%s: %s, not %s: %s", #call,                          \
                  tol_status_name(must_status), tol_status_name(expected), tol_message());         \
        cr_assert(strstr(tol_message(), text) != NULL, "%s: the message lacks \"%s\": %s", #call,  \
                  text, tol_message());                                                            \
    } while (0)

#endif
