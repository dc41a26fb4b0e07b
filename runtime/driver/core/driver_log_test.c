/*
 * The driver's own log in messages of failures, whatever the driver writes.
 */
#include "core/libcuda_state.h"
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

TestSuite(driver_log, .fini = test_end);

enum { ROOM = 1 << 17, POISON = 0xa5 };

/* What a GPU's driver notes in its log, and what the soft device does. */
static void fail_once(void) {
    const struct tol_driver_table *driver = tol_driver_functions(test_driver());
    CUdeviceptr block = 0;
    cr_assert(driver->cuMemAlloc_v2(&block, 0) != CUDA_SUCCESS);
    if (!tol_driver_has(test_driver(), TOL_FEATURE_TENSOR_MAP)) return;
    cr_assert(driver->cuTensorMapEncodeTiled(NULL, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, NULL, NULL,
                                             NULL, NULL, NULL, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                             (CUtensorMapSwizzle)0, (CUtensorMapL2promotion)0,
                                             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS);
}

static void fill_log(void) {
    MUST(tol_context_bind(test_context()));
    for (int i = 0; i < 1000; i++) fail_once();
}

struct dump {
    CUresult result;
    size_t told, bytes, written; /* the last byte that the driver changed is buffer[written - 1] */
};

static struct dump dump(char *buffer, CUlogIterator *from, size_t told) {
    struct dump d = {.told = told, .bytes = told, .written = ROOM};
    memset(buffer, POISON, ROOM);
    d.result = tol_driver_functions(test_driver())->cuLogsDumpToMemory(from, buffer, &d.bytes, 0);
    while (d.written > 0 && (unsigned char)buffer[d.written - 1] == POISON) d.written--;
    return d;
}

/* Of all buffers that are too small the one whose end is passed by most. */
static struct dump worst_of_small(char *buffer, bool from_begin) {
    struct dump worst = dump(buffer, NULL, 256);
    for (size_t told = 256; told < 16384; told += 61) {
        CUlogIterator first = 0;
        const struct dump d = dump(buffer, from_begin ? &first : NULL, told);
        if ((long)(d.written - told) > (long)(worst.written - worst.told)) worst = d;
    }
    return worst;
}

Test(driver_log, the_whole_log_has_room) {
    test_context();
    if (!tol_driver_has(test_driver(), TOL_FEATURE_LOGS)) cr_skip("the driver has no log");
    char *buffer = malloc(ROOM);
    cr_assert(buffer != NULL);
    fill_log();
    for (int from_begin = 0; from_begin < 2; from_begin++) {
        const struct dump small = worst_of_small(buffer, from_begin == 1);
        cr_log_info("driver_log: told %zu, result %d with %zu bytes, wrote %zu", small.told,
                    (int)small.result, small.bytes, small.written);
        CUlogIterator first = 0;
        const struct dump d = dump(buffer, from_begin == 1 ? &first : NULL, TOL_LOG_BYTES);
        cr_log_info("driver_log: told %zu, result %d with %zu bytes, wrote %zu", d.told,
                    (int)d.result, d.bytes, d.written);
        cr_assert(d.result == CUDA_SUCCESS && d.written > 0 && d.written <= TOL_LOG_BYTES);
    }
    free(buffer);
}

static CUresult CUDAAPI write_past(CUlogIterator *iterator, char *buffer, size_t *bytes,
                                   unsigned flags) {
    (void)iterator, (void)flags;
    memset(buffer, 'x', *bytes + TOL_LOG_SLACK_BYTES);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI tell_too_much(CUlogIterator *iterator, char *buffer, size_t *bytes,
                                      unsigned flags) {
    (void)iterator, (void)buffer, (void)flags;
    *bytes += 1;
    return CUDA_SUCCESS;
}

/* A failure whose message asks for the log. */
static void fail_in_context(void) {
    static const char text[] = ".version 6.0\n.target sm_70\n.address_size 64\nnonsense\n";
    struct tol_module *module = NULL;
    cr_assert(tol_module_load(test_context(), text, sizeof text, NULL, &module) != TOL_OK);
}

Test(driver_log, a_driver_that_writes_past_its_end_changes_nothing_else) {
    struct tol_context *context = test_context();
    if (!tol_driver_has(test_driver(), TOL_FEATURE_LOGS)) cr_skip("the driver has no log");
    struct tol_driver *driver = test_driver();
    driver->table.cuLogsDumpToMemory = write_past;
    fail_in_context();
    cr_assert(strstr(tol_message(), "the driver's log: xxx") != NULL, "%s", tol_message());
    MUST(tol_context_memory(context, NULL, NULL)); /* this thread is in no host function */
    driver->table.cuLogsDumpToMemory = tell_too_much;
    fail_in_context();
    cr_assert(strstr(tol_message(), "the driver's log") == NULL, "%s", tol_message());
}

Test(driver_log, a_full_log_ends_with_the_latest_failure) {
    struct tol_context *context = test_context();
    if (!tol_driver_has(test_driver(), TOL_FEATURE_LOGS)) cr_skip("the driver has no log");
    fill_log();
    fail_in_context();
    /* A GPU's driver need not log what its JIT refused. */
    cr_assert(test_on_gpu() || strstr(tol_message(), "the driver's log: ") != NULL, "%s",
              tol_message());
    MUST(tol_context_memory(context, NULL, NULL));
}
