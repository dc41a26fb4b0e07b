/*
 * The soft device in place of a driver: only on request, and never silently.
 *
 * Where there is a driver, nothing falls back, and these tests skip but for the last two.
 */
#include "test/test_device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TestSuite(fallback, .fini = test_end);

/* What is written to stderr from here on. */
static FILE *catch_stderr(void) {
    FILE *file = tmpfile();
    cr_assert(file != NULL);
    fflush(stderr);
    cr_assert(dup2(fileno(file), STDERR_FILENO) == STDERR_FILENO);
    return file;
}

static size_t caught(FILE *file, char *text, size_t bytes) {
    fflush(stderr);
    ssize_t length = pread(fileno(file), text, bytes - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    size_t lines = 0;
    for (const char *c = text; *c != '\0'; c++) lines += *c == '\n';
    return lines;
}

/* Skips where there is a driver library; without calling the runtime. */
static void without_a_driver(void) {
    unsetenv("TOLLENS_LIBCUDA");
    unsetenv("TOLLENS_FALLBACK");
    if (dlopen("libcuda.so.1", RTLD_NOW) != NULL || dlopen("libcuda.so", RTLD_NOW) != NULL) {
        cr_skip_test("this machine has a libcuda");
    }
}

static struct tol_driver *must_be_soft(const struct tol_driver_options *options) {
    struct tol_driver *driver = NULL;
    struct tol_device device;
    MUST(tol_driver_open_with(options, &driver));
    cr_assert(tol_driver_is_soft(driver));
    MUST(tol_device_read(driver, 0, &device));
    cr_assert(device.soft);
    return driver;
}

Test(fallback, is_off_unless_asked_for) {
    struct tol_driver *driver = NULL;
    char text[4096];
    without_a_driver();
    FILE *file = catch_stderr();
    MUST_FAIL(tol_driver_open_with(NULL, &driver), TOL_NO_LIBRARY, "libcuda.so.1");
    setenv("TOLLENS_FALLBACK", "", 1);
    MUST_FAIL(tol_driver_open(NULL, &driver), TOL_NO_LIBRARY, "libcuda.so.1");
    setenv("TOLLENS_FALLBACK", "hard", 1);
    MUST_FAIL(tol_driver_open(NULL, &driver), TOL_NO_LIBRARY, "libcuda.so.1");
    cr_assert(driver == NULL);
    cr_assert_eq(caught(file, text, sizeof text), 0, "%s", text);
    fclose(file);
}

Test(fallback, where_it_is_allowed_the_soft_device_is_opened_and_said_once) {
    const struct tol_driver_options options = {.allow_soft = true};
    char text[4096];
    without_a_driver();
    FILE *file = catch_stderr();
    struct tol_driver *one = must_be_soft(&options), *other = must_be_soft(&options);
    cr_assert_eq(caught(file, text, sizeof text), 1, "%s", text);
    cr_assert(strstr(text, "tollens: using the soft device ") == text, "%s", text);
    cr_assert(strstr(text, tol_driver_path(one)) != NULL, "%s", text);
    cr_assert(strstr(text, "libcuda.so.1") != NULL, "the reason: %s", text);
    tol_driver_close(one);
    tol_driver_close(other);
    fclose(file);
}

Test(fallback, the_environment_allows_it_to_a_program_that_does_not) {
    char text[4096];
    without_a_driver();
    setenv("TOLLENS_FALLBACK", "soft", 1);
    FILE *file = catch_stderr();
    struct tol_driver *driver = NULL;
    MUST(tol_driver_open(NULL, &driver));
    cr_assert(tol_driver_is_soft(driver));
    cr_assert_eq(caught(file, text, sizeof text), 1, "%s", text);
    tol_driver_close(driver);
    fclose(file);
}

Test(fallback, where_both_are_missing_both_are_named) {
    const struct tol_driver_options options = {.allow_soft = true, .soft_path = "/nowhere/soft.so"};
    struct tol_driver *driver = NULL;
    char text[4096];
    without_a_driver();
    FILE *file = catch_stderr();
    MUST_FAIL(tol_driver_open_with(&options, &driver), TOL_NO_LIBRARY, "/nowhere/soft.so");
    cr_assert(strstr(tol_message(), "libcuda.so.1") != NULL, "%s", tol_message());
    const struct tol_driver_options wrong = {.allow_soft = true, .soft_path = "libm.so.6"};
    MUST_FAIL(tol_driver_open_with(&wrong, &driver), TOL_NO_SYMBOL, "libm.so.6");
    cr_assert(driver == NULL);
    cr_assert_eq(caught(file, text, sizeof text), 0, "%s", text);
    fclose(file);
}

Test(fallback, a_library_that_was_named_is_not_replaced) {
    const struct tol_driver_options options = {.path = "/nowhere/libcuda.so", .allow_soft = true};
    struct tol_driver *driver = NULL;
    setenv("TOLLENS_FALLBACK", "soft", 1);
    MUST_FAIL(tol_driver_open_with(&options, &driver), TOL_NO_LIBRARY, "/nowhere/libcuda.so");
    setenv("TOLLENS_LIBCUDA", "/elsewhere/libcuda.so", 1);
    MUST_FAIL(tol_driver_open(NULL, &driver), TOL_NO_LIBRARY, "/elsewhere/libcuda.so");
    const struct tol_driver_options allowed = {.allow_soft = true};
    MUST_FAIL(tol_driver_open_with(&allowed, &driver), TOL_NO_LIBRARY, "/elsewhere/libcuda.so");
    cr_assert(driver == NULL);
    MUST_FAIL(tol_driver_open_with(&allowed, NULL), TOL_INVALID_ARGUMENT, "result is NULL");
}

Test(fallback, a_driver_that_was_chosen_says_which_it_is) {
    struct tol_device device;
    cr_assert_eq(tol_driver_is_soft(test_driver()), !test_on_gpu());
    MUST(tol_device_read(test_driver(), 0, &device));
    cr_assert_eq(device.soft, !test_on_gpu());
    cr_assert_eq(tol_context_device(test_context())->soft, !test_on_gpu());
}
