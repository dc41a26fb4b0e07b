/*
 * The runtime with drivers of each version from CUDA 12.0 to 13.0. The soft device simulates each,
 * without the functions and the PTX that came later.
 *
 * Each has a separate process, because a driver reads its options once.
 */
#include "test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A version, and the newest PTX it accepts and the oldest it does not, by the release notes of PTX
 * ISA 9.0. What no version has is written in no text: 9.9. */
struct release {
    int driver;
    const char *ptx, *newer;
};

static const struct release releases[] = {
    {12000, "8.0", "8.1"}, {12010, "8.1", "8.2"}, {12020, "8.2", "8.3"}, {12030, "8.3", "8.4"},
    {12040, "8.4", "8.5"}, {12050, "8.5", "8.6"}, {12060, "8.5", "8.6"}, {12070, "8.6", "8.7"},
    {12080, "8.7", "8.8"}, {12090, "8.8", "9.0"}, {13000, "9.0", "9.9"},
};
enum { RELEASES = sizeof releases / sizeof releases[0], WORDS = 256 };

/* A call that must succeed. If it fails, the message goes to the parent and the scenario ends. */
#define LIVE(call)                                                                                 \
    do {                                                                                           \
        if ((call) != TOL_OK) return snprintf(said, bytes, "%s: %s", #call, tol_message()), false; \
    } while (0)
#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) return snprintf(said, bytes, "%s is false", #condition), false;          \
    } while (0)

static size_t write_ptx(const char *version, char *text, size_t bytes) {
    return (size_t)snprintf(text, bytes,
                            ".version %s\n.target sm_90\n.address_size 64\n"
                            ".visible .entry add(.param .u64 words, .param .u32 by) {\n"
                            "  .reg .b32 %%i<3>; .reg .b64 %%p<3>;\n"
                            "  griddepcontrol.wait;\n" /* it is launched programmatically, too */
                            "  ld.param.u64 %%p0, [words];\n"
                            "  ld.param.u32 %%i0, [by];\n"
                            "  mov.u32 %%i1, %%tid.x;\n"
                            "  mul.wide.u32 %%p1, %%i1, 4;\n"
                            "  add.u64 %%p0, %%p0, %%p1;\n"
                            "  ld.global.u32 %%i1, [%%p0];\n"
                            "  add.u32 %%i1, %%i1, %%i0;\n"
                            "  st.global.u32 [%%p0], %%i1;\n"
                            "  ret;\n}\n",
                            version);
}

/* The PTX that the version accepts, and that which it does not. */
static bool load(struct tol_context *context, const struct release *release,
                 struct tol_module **module, char *said, size_t bytes) {
    char text[1024];
    size_t length = write_ptx(release->newer, text, sizeof text);
    HOLDS(tol_module_load(context, text, length, NULL, module) == TOL_INVALID_MODULE);
    HOLDS(tol_message_cuda() == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    HOLDS(strstr(tol_message(), release->newer) != NULL);
    length = write_ptx(release->ptx, text, sizeof text);
    LIVE(tol_module_load(context, text, length, NULL, module));
    return true;
}

/* Adds to the words by a launch and by a graph. */
static bool add(struct tol_context *context, struct tol_module *module, CUdeviceptr words,
                char *said, size_t bytes) {
    struct tol_stream *stream = NULL;
    struct tol_kernel *kernel = NULL;
    struct tol_batch *batch = NULL;
    const struct tol_launch_shape shape = tol_launch_linear(WORDS, WORDS);
    LIVE(tol_stream_create(context, NULL, &stream));
    LIVE(tol_module_kernel(module, "add", &kernel));
    LIVE(tol_launch(stream, kernel, shape, TOL_ARGUMENTS(words, 1u)));
    LIVE(tol_launch_programmatic(stream, kernel, shape, TOL_ARGUMENTS(words, 10u)));
    /* Without the kernel's parameters, of which CUDA 12.4 tells, an argument too many is not seen;
     * the driver takes what it needs. */
    const tol_status wrong = tol_launch(stream, kernel, shape, TOL_ARGUMENTS(words, 0u, 0u));
    const bool has_info = tol_driver_has(tol_context_driver(context), TOL_FEATURE_PARAM_INFO);
    HOLDS(wrong == (has_info ? TOL_WRONG_ARGUMENTS : TOL_OK));
    LIVE(tol_batch_create(context, NULL, &batch));
    for (int i = 0; i < 3; i++) {
        LIVE(tol_batch_add(batch, kernel, shape, TOL_ARGUMENTS(words, 100u)));
    }
    LIVE(tol_batch_launch(batch, stream));
    LIVE(tol_stream_synchronize(stream));
    tol_batch_destroy(batch);
    tol_stream_destroy(stream);
    return true;
}

/* A block of a pool, on pages of its own and on the driver's pool. */
static bool take(struct tol_context *context, enum tol_pool_source source, char *said,
                 size_t bytes) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    struct tol_block block;
    tol_pool_default(tol_context_device(context), &options);
    options.source = source;
    LIVE(tol_pool_create(context, &options, &pool));
    LIVE(tol_pool_allocate(pool, 1 << 20, NULL, &block));
    LIVE(tol_pool_free(pool, block, NULL));
    tol_pool_destroy(pool);
    return true;
}

static bool run_scenario(const struct release *release, char *said, size_t bytes) {
    struct tol_driver *driver = NULL;
    struct tol_context *context = NULL;
    struct tol_module *module = NULL;
    struct tol_buffer *buffer = NULL;
    uint32_t words[WORDS];
    LIVE(tol_driver_open(test_library(), &driver));
    HOLDS(tol_driver_version(driver) == release->driver);
    HOLDS(tol_driver_has(driver, TOL_FEATURE_PARAM_INFO) == (release->driver >= 12040));
    HOLDS(tol_driver_has(driver, TOL_FEATURE_LOGS) == (release->driver >= 12090));
    HOLDS(tol_driver_has(driver, TOL_FEATURE_GRAPH) && tol_driver_has(driver, TOL_FEATURE_VMM));
    LIVE(tol_context_create(driver, 0, &context));
    if (!load(context, release, &module, said, bytes)) return false;
    for (uint32_t i = 0; i < WORDS; i++) words[i] = i;
    LIVE(tol_buffer_create(context, WORDS, sizeof *words, &buffer));
    LIVE(tol_buffer_write(buffer, words, sizeof words));
    if (!add(context, module, tol_buffer_address(buffer), said, bytes)) return false;
    LIVE(tol_buffer_read(buffer, words, sizeof words));
    for (uint32_t i = 0; i < WORDS; i++) HOLDS(words[i] == i + 311);
    if (!take(context, TOL_POOL_MAPPED, said, bytes)) return false;
    if (!take(context, TOL_POOL_DRIVER, said, bytes)) return false;
    tol_buffer_destroy(buffer);
    tol_module_destroy(module);
    tol_context_destroy(context);
    tol_driver_close(driver);
    return true;
}

/* In a process of its own; what went wrong comes through a pipe. */
static void live_alone(const struct release *release) {
    char said[2048] = "", version[16];
    int ends[2], how = 0;
    cr_assert_eq(pipe(ends), 0);
    const pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0) {
        alarm(60);
        snprintf(version, sizeof version, "%d", release->driver);
        setenv("TOLLENS_DEVICE", "soft", 1);
        setenv("TOLLENS_SOFT_DRIVER_VERSION", version, 1);
        const bool passed = run_scenario(release, said, sizeof said);
        const ssize_t length = (ssize_t)strlen(said);
        _exit(write(ends[1], said, (size_t)length) == length && passed ? 0 : 1);
    }
    close(ends[1]);
    const ssize_t length = read(ends[0], said, sizeof said - 1);
    said[length > 0 ? length : 0] = '\0';
    close(ends[0]);
    cr_assert_eq(waitpid(child, &how, 0), child);
    cr_assert(WIFEXITED(how) && WEXITSTATUS(how) == 0, "%d: %s (wait status %d)", release->driver,
              said, how);
}

Test(versions, each_driver_from_12_0_to_13_0_serves_a_program, .timeout = 700) {
    for (size_t i = 0; i < RELEASES; i++) live_alone(&releases[i]);
}
