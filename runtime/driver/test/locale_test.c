/*
 * A program may set a locale whose decimal point is a comma: what machines read and write does not
 * change by it.
 */
#include "core/c_locale.h"
#include "test/test_device.h"

#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Compiles the locale from the sources of Debian's package locales, and sets it. */
static void begin(void) {
    char folder[] = "/tmp/tollens_locale_XXXXXX", command[128];
    if (access("/usr/share/i18n/locales/de_DE", R_OK) != 0) {
        cr_skip_test("not run here: the package locales, of ci/setup check, is missing");
    }
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null",
             folder);
    (void)system(command); /* its exit code counts warnings */
    setenv("LOCPATH", folder, 1);
    cr_assert(setlocale(LC_ALL, "de_DE.UTF-8") != NULL);
    snprintf(command, sizeof command, "rm -r %s", folder);
    (void)system(command);
    cr_assert(strtod("1,5", NULL) == 1.5, "this locale has a decimal comma");
}
TestSuite(decimal_comma, .init = begin, .fini = test_end);

static void expect_json(const char *text) {
    json_error_t error;
    json_t *value = json_loads(text, 0, &error);
    cr_assert(value != NULL, "%s at %d: %.60s", error.text, error.position,
              text + (error.position > 30 ? error.position - 30 : 0));
    json_decref(value);
}

Test(decimal_comma, a_pools_snapshot_and_trace_are_json) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    struct tol_block block;
    char *text = NULL;
    tol_pool_default(tol_context_device(test_context()), &options);
    options.trace_events = 100;
    options.time_one_in = 1;
    options.trim_above = 2.5;
    options.trim_to = 1.5;
    MUST(tol_pool_create(test_context(), &options, &pool));
    MUST(tol_pool_allocate(pool, 3000000, NULL, &block));
    MUST(tol_pool_free(pool, block, NULL));
    MUST(tol_pool_snapshot(pool, &text));
    cr_assert(strstr(text, "\"trim_above\": 2.5,") != NULL, "%s", text);
    expect_json(text);
    free(text);
    MUST(tol_pool_chrome_trace(pool, &text));
    expect_json(text);
    free(text);
    tol_pool_destroy(pool);
    /* The thread's locale is again what it was. */
    cr_assert(strtod("1,5", NULL) == 1.5);
}

Test(decimal_comma, a_trace_of_calls_is_json) {
    char *text = NULL;
    size_t bytes = 0;
    MUST(tol_trace_install(test_driver(), NULL, NULL));
    MUST(tol_context_synchronize(test_context(), 0));
    FILE *file = open_memstream(&text, &bytes);
    MUST(tol_trace_write(file, "p", false));
    fclose(file);
    tol_trace_remove(test_driver());
    cr_assert(strstr(text, "\"dur\":") != NULL);
    expect_json(text);
    free(text);
}

Test(decimal_comma, a_constant_of_ptx_keeps_its_fraction) {
    static const char text[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                               ".visible .entry k(.param .u64 out) {\n"
                               " .reg .f64 %fd0; .reg .b64 %rd0;\n"
                               " ld.param.u64 %rd0, [out];\n mov.f64 %fd0, 1.5;\n"
                               " st.global.f64 [%rd0], %fd0;\n ret;\n}\n";
    struct tol_module *module = NULL;
    struct tol_kernel *kernel = NULL;
    struct tol_buffer *buffer = NULL;
    struct tol_stream *stream = NULL;
    double number = 0;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_module_load(test_context(), text, sizeof text - 1, NULL, &module));
    MUST(tol_module_kernel(module, "k", &kernel));
    MUST(tol_buffer_create(test_context(), 1, 8, &buffer));
    MUST(tol_launch(stream, kernel, tol_launch_linear(1, 1),
                    TOL_ARGUMENTS(tol_buffer_address(buffer))));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(buffer, &number, sizeof number));
    cr_assert(number == 1.5, "%g", number);
    tol_buffer_destroy(buffer);
    tol_module_destroy(module);
    tol_stream_destroy(stream);
}
