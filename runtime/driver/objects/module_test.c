/*
 * Modules: what loads, what is refused and how, and both caches.
 */
#include "test/test_device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

TestSuite(module, .fini = test_end);

static const char small[] = ".version 6.0\n"
                            ".target sm_70\n"
                            ".address_size 64\n"
                            ".global .align 4 .u32 counter = 41;\n"
                            ".visible .entry nothing()\n"
                            "{\n"
                            "    ret;\n"
                            "}\n";

Test(module, text_need_not_end_in_a_nul) {
    struct tol_module *module = NULL;
    struct tol_kernel *kernel = NULL;
    size_t bytes = sizeof small - 1;
    char *exact = malloc(bytes); /* nothing follows it: a sanitizer detects a read past the end */
    memcpy(exact, small, bytes);
    MUST(tol_module_load(test_context(), exact, bytes, NULL, &module));
    free(exact);
    MUST(tol_module_kernel(module, "nothing", &kernel));
    cr_assert_str_eq(tol_kernel_properties(kernel).name, "nothing");
    tol_module_destroy(module);
}

Test(module, a_nul_at_the_end_is_none_of_the_text) {
    struct tol_module *module = NULL;
    MUST(tol_module_load(test_context(), small, sizeof small, NULL, &module));
    tol_module_destroy(module);
}

Test(module, a_nul_inside_is_refused_with_its_place) {
    struct tol_module *module = NULL;
    char text[sizeof small];
    memcpy(text, small, sizeof small);
    text[30] = '\0';
    MUST_FAIL(tol_module_load(test_context(), text, sizeof text, NULL, &module),
              TOL_INVALID_ARGUMENT, "byte 30");
    cr_assert(module == NULL);
}

Test(module, what_is_no_module_is_refused_with_the_jits_words) {
    struct tol_module *module = NULL;
    static const char *const bad[] = {
        "this is not valid PTX",
        (".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n"
         "    bogus.u32 %r1;\n}\n"),
        ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n    ret;\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        MUST_FAIL(tol_module_load(test_context(), bad[i], strlen(bad[i]), NULL, &module),
                  TOL_INVALID_MODULE, "JIT's log");
        cr_assert(module == NULL);
        /* After its heading, whatever else the driver logged. */
        const char *heading = "the JIT's log:\n", *log = strstr(tol_message(), heading);
        cr_assert(log != NULL && log[strlen(heading)] != '\0' && log[strlen(heading)] != ';', "%s",
                  tol_message());
    }
    MUST_FAIL(tol_module_load(test_context(), "", 0, NULL, &module), TOL_INVALID_ARGUMENT, "empty");
    MUST_FAIL(tol_module_load(test_context(), NULL, 5, NULL, &module), TOL_INVALID_ARGUMENT,
              "empty");
    MUST_FAIL(tol_module_load(test_context(), "\0\0\0", 3, NULL, &module), TOL_INVALID_ARGUMENT,
              "empty");
    MUST_FAIL(tol_module_load(NULL, small, sizeof small, NULL, &module), TOL_INVALID_ARGUMENT,
              "NULL");
    MUST(tol_context_check(test_context()));
}

Test(module, machine_code_that_is_none_is_refused) {
    struct tol_module *module = NULL;
    static const char elf[64] = "\x7f"
                                "ELF and then nothing that makes sense";
    tol_status status = tol_module_load(test_context(), elf, sizeof elf, NULL, &module);
    cr_assert(status == TOL_INVALID_MODULE, "%s: %s", tol_status_name(status), tol_message());
}

Test(module, a_missing_kernel_is_not_found_by_name) {
    struct tol_module *module = NULL;
    struct tol_kernel *kernel = NULL;
    MUST(tol_module_load(test_context(), small, sizeof small, NULL, &module));
    MUST_FAIL(tol_module_kernel(module, "something", &kernel), TOL_NOT_FOUND, "something");
    cr_assert(kernel == NULL && tol_message_cuda() == CUDA_ERROR_NOT_FOUND);
    MUST_FAIL(tol_module_kernel(module, "", &kernel), TOL_NOT_FOUND, "kernel is empty");
    MUST_FAIL(tol_module_kernel(module, NULL, &kernel), TOL_INVALID_ARGUMENT, "NULL");
    tol_module_destroy(module);
}

Test(module, the_same_image_is_the_same_module) {
    struct tol_module *one = NULL, *other = NULL, *tuned = NULL, *own = NULL;
    struct tol_kernel *kernel = NULL, *again = NULL;
    MUST(tol_module_load(test_context(), small, sizeof small, NULL, &one));
    MUST(tol_module_load(test_context(), small, sizeof small - 1, NULL, &other));
    cr_assert(one == other);
    MUST(tol_module_load(test_context(), small, sizeof small,
                         &(struct tol_module_options){.max_registers = 32}, &tuned));
    cr_assert(tuned != one, "other options are another module");
    MUST(tol_module_load(test_context(), small, sizeof small,
                         &(struct tol_module_options){.unshared = true}, &own));
    cr_assert(own != one);
    tol_module_destroy(one);
    MUST(tol_module_kernel(other, "nothing", &kernel));
    MUST(tol_module_kernel(other, "nothing", &again));
    cr_assert(kernel == again);
    tol_module_destroy(other);
    tol_module_destroy(tuned);
    tol_module_destroy(own);
}

Test(module, variables_can_be_read_and_written) {
    struct tol_module *module = NULL;
    struct tol_buffer *counter = NULL, *missing = NULL;
    unsigned value = 0;
    MUST(tol_module_load(test_context(), small, sizeof small, NULL, &module));
    MUST(tol_module_global(module, "counter", &counter));
    cr_assert(tol_buffer_bytes(counter) == sizeof value);
    MUST(tol_buffer_read(counter, &value, sizeof value));
    cr_assert(value == 41);
    value = 42;
    MUST(tol_buffer_write(counter, &value, sizeof value));
    MUST_FAIL(tol_module_global(module, "nowhere", &missing), TOL_NOT_FOUND, "nowhere");
    MUST_FAIL(tol_module_global(module, "", &missing), TOL_NOT_FOUND, "variable is empty");
    tol_module_destroy(module); /* the view keeps it */
    value = 0;
    MUST(tol_buffer_read(counter, &value, sizeof value));
    cr_assert(value == 42);
    tol_buffer_destroy(counter);
}

Test(module, a_kernel_knows_its_parameters) {
    struct tol_kernel_properties fill = tol_kernel_properties(test_kernel("fill"));
    cr_assert(fill.block_threads_max >= 512 && fill.registers_per_thread > 0);
    if (!tol_driver_has(test_driver(), TOL_FEATURE_PARAM_INFO)) {
        cr_assert(fill.parameter_count == -1);
        return;
    }
    cr_assert(fill.parameter_count == 3, "%d", fill.parameter_count);
    cr_assert(fill.parameter_bytes_total == 24, "%u", fill.parameter_bytes_total);
    cr_assert(tol_kernel_properties(test_kernel("histogram")).shared_static_bytes == 1024);
}

Test(module, more_shared_memory_must_be_allowed_first) {
    struct tol_kernel *fill = test_kernel("fill");
    unsigned most = (unsigned)tol_context_device(test_context())->shared_bytes_per_block_optin;
    MUST(tol_kernel_allow_shared(fill, most));
    cr_assert(tol_kernel_properties(fill).shared_dynamic_bytes_max == most);
    MUST_FAIL(tol_kernel_allow_shared(fill, most + 1), TOL_OVER_LIMIT, "fill");
    MUST_FAIL(tol_kernel_allow_shared(NULL, 0), TOL_INVALID_ARGUMENT, "NULL");
}

enum { THREADS = 8, LOOKUPS = 200 };

static void *look_up(void *module) {
    struct tol_kernel *first = NULL;
    for (int i = 0; i < LOOKUPS; i++) {
        struct tol_kernel *kernel = NULL;
        if (tol_module_kernel(module, "nothing", &kernel) != TOL_OK) return NULL;
        if (first == NULL) first = kernel;
        if (kernel != first) return NULL;
    }
    return first;
}

Test(module, lookups_from_many_threads_find_one_kernel) {
    struct tol_module *module = NULL;
    pthread_t threads[THREADS];
    void *found[THREADS];
    MUST(tol_module_load(test_context(), small, sizeof small, NULL, &module));
    for (int i = 0; i < THREADS; i++) {
        cr_assert(pthread_create(&threads[i], NULL, look_up, module) == 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], &found[i]);
    for (int i = 0; i < THREADS; i++) cr_assert(found[i] != NULL && found[i] == found[0]);
    tol_module_destroy(module);
}

static void *load_and_drop(void *context) {
    for (int i = 0; i < 20; i++) {
        struct tol_module *module = NULL;
        struct tol_kernel *kernel = NULL;
        if (tol_module_load(context, small, sizeof small, NULL, &module) != TOL_OK ||
            tol_module_kernel(module, "nothing", &kernel) != TOL_OK) {
            return NULL;
        }
        tol_module_destroy(module);
    }
    return context;
}

Test(module, loading_from_many_threads_shares_and_ends_cleanly) {
    pthread_t threads[THREADS];
    void *result = NULL;
    for (int i = 0; i < THREADS; i++) {
        cr_assert(pthread_create(&threads[i], NULL, load_and_drop, test_context()) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        cr_assert(result == test_context());
    }
}

/* The last reference goes while a kernel of the module runs: unloading waits for it (D-26). */
Test(module, unloading_waits_for_work_in_flight, .timeout = 60) {
    enum { COUNT = 1 << 18, TURNS = 4 }; /* a slow machine under valgrind must meet the deadline */
    char *text = test_ptx("kernels/fill.ptx");
    struct tol_module *module = NULL;
    struct tol_kernel *fill = NULL;
    struct tol_stream *stream = NULL;
    struct tol_buffer *buffer = NULL;
    unsigned *values = malloc(COUNT * sizeof *values);
    unsigned long long count = COUNT;
    MUST(tol_module_load(test_context(), text, strlen(text), NULL, &module));
    MUST(tol_module_kernel(module, "fill", &fill));
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), COUNT, 4, &buffer));
    for (unsigned turn = 1; turn <= TURNS; turn++) {
        MUST(tol_launch(stream, fill, tol_launch_linear(COUNT, 256),
                        TOL_ARGUMENTS(tol_buffer_address(buffer), turn, count)));
    }
    tol_module_destroy(module);
    MUST(tol_stream_query(stream));
    MUST(tol_buffer_read(buffer, values, COUNT * sizeof *values));
    for (int i = 0; i < COUNT; i++) cr_assert(values[i] == TURNS);
    free(values);
    free(text);
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
}
