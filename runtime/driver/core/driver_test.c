/*
 * Opening drivers, good and bad.
 */
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

TestSuite(driver, .fini = test_end);

Test(driver, opens_and_tells_its_version) {
    struct tol_driver *driver = test_driver();
    const char *path = test_library();
    int version = 0;
    if (path == NULL) path = getenv("TOLLENS_LIBCUDA");
    if (path == NULL || path[0] == '\0') path = "libcuda.so";
    cr_assert_eq(tol_driver_functions(driver)->cuDriverGetVersion(&version), CUDA_SUCCESS);
    cr_assert_eq(tol_driver_version(driver), version);
    cr_assert(tol_driver_has(driver, TOL_FEATURE_CORE));
    cr_assert(!tol_driver_has(driver, TOL_FEATURE_COUNT));
    cr_assert_eq(strncmp(tol_driver_path(driver), path, strlen(path)), 0, "%s",
                 tol_driver_path(driver));
}

/* The soft device, on a machine with a GPU as well: it can report any version. */
static tol_status open_version(const char *version, struct tol_driver **driver) {
    setenv("TOLLENS_DEVICE", "soft", 1);
    setenv("TOLLENS_SOFT_DRIVER_VERSION", version, 1);
    return tol_driver_open(test_library(), driver);
}

Test(driver, one_that_is_too_old_is_refused_with_both_versions) {
    struct tol_driver *driver = NULL;
    MUST_FAIL(open_version("11080", &driver), TOL_DRIVER_TOO_OLD, "supports CUDA 11.8;");
    cr_assert(strstr(tol_message(), "CUDA 12.0 (driver 525.60) or newer is required") != NULL, "%s",
              tol_message());
    cr_assert(strstr(tol_message(), test_library()) != NULL, "%s", tol_message());
    cr_assert(driver == NULL);
}

Test(driver, the_oldest_that_is_not_is_accepted) {
    struct tol_driver *driver = NULL;
    MUST(open_version("12000", &driver));
    cr_assert_eq(tol_driver_version(driver), 12000);
    tol_driver_close(driver);
}

Test(driver, every_core_function_is_in_the_table) {
    const struct tol_driver *driver = test_driver();
    const struct tol_driver_table *table = tol_driver_functions(driver);
    int missing[TOL_FEATURE_COUNT] = {0};
#define TOL_DRIVER_FN(feature, name, parameters, names)                                            \
    missing[TOL_FEATURE_##feature] += table->name == NULL;                                         \
    cr_assert_str_eq(tol_driver_function_name(TOL_DRIVER_INDEX_##name), #name);
#include "tollens/driver.def"
    cr_assert_eq(missing[TOL_FEATURE_CORE], 0);
    for (int i = 0; i < TOL_FEATURE_COUNT; i++) {
        cr_assert_eq(tol_driver_has(driver, (tol_feature)i), missing[i] == 0, "feature %d", i);
    }
    cr_assert(tol_driver_function_name(TOL_DRIVER_FUNCTIONS) == NULL);
}

Test(driver, a_missing_library_is_a_status) {
    struct tol_driver *driver = NULL;
    MUST_FAIL(tol_driver_open("/nowhere/libcuda.so.1", &driver), TOL_NO_LIBRARY, "/nowhere");
    cr_assert(driver == NULL);
}

Test(driver, a_library_that_is_no_driver_is_refused_by_the_missing_name) {
    struct tol_driver *driver = NULL;
    MUST_FAIL(tol_driver_open("libm.so.6", &driver), TOL_NO_SYMBOL, "cuInit");
}

Test(driver, the_environment_names_the_library) {
    struct tol_driver *driver = NULL;
    setenv("TOLLENS_LIBCUDA", "/from/the/environment.so", 1);
    MUST_FAIL(tol_driver_open(NULL, &driver), TOL_NO_LIBRARY, "/from/the/environment.so");
}

Test(driver, without_a_path_the_platforms_names_are_tried_in_order) {
    struct tol_driver *driver = NULL;
    setenv("TOLLENS_LIBCUDA", "", 1);
    tol_status status = tol_driver_open(NULL, &driver);
    if (status == TOL_OK || status == TOL_NO_DEVICE) {
        tol_driver_close(driver);
        cr_skip_test("this machine has a libcuda");
    }
    if (status != TOL_NO_LIBRARY) cr_skip_test("this machine's libcuda is: %s", tol_message());
    const char *first = strstr(tol_message(), "libcuda.so.1");
    cr_assert(first != NULL && strstr(first + 1, "libcuda.so") != NULL, "%s", tol_message());
}

Test(driver, opening_twice_gives_two_that_both_work) {
    struct tol_driver *one = NULL, *other = NULL;
    (void)test_driver();
    MUST(tol_driver_open(test_library(), &one));
    MUST(tol_driver_open(test_library(), &other));
    tol_driver_close(one);
    int count = 0;
    MUST(tol_device_count(other, &count));
    tol_driver_close(other);
    cr_assert(count >= 1);
}

Test(driver, closing_null_is_a_no_op) {
    tol_driver_close(NULL);
}

Test(driver, a_context_keeps_its_driver) {
    struct tol_driver *driver = NULL;
    struct tol_context *context = NULL;
    (void)test_driver(); /* skips where there is no GPU */
    MUST(tol_driver_open(test_library(), &driver));
    MUST(tol_context_create(driver, 0, &context));
    tol_driver_close(driver);
    MUST(tol_context_memory(context, NULL, NULL));
    cr_assert(tol_driver_version(tol_context_driver(context)) >= TOL_DRIVER_VERSION_MIN);
    tol_context_destroy(context);
}
