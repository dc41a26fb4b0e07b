/*
 * Modules: what is loaded, what is refused, and the messages.
 */
#include "test/test_api.h"
#include "test/test_soft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

static const char *const two = HEAD ".global .u32 counter = 5;\n"
                                    ".const .align 16 .b8 table[48];\n"
                                    ".shared .align 4 .b8 room[64];\n"
                                    ".visible .entry one(.param .u32 n) { ret; }\n"
                                    ".entry other() { ret; }\n";

Test(api_module, its_parts_are_found_by_name) {
    CUmodule module = NULL, same = NULL;
    CUfunction function = NULL, all[3] = {NULL, NULL, NULL};
    CUdeviceptr address = 0;
    size_t bytes = 0;
    unsigned count = 0;
    const char *name = NULL;
    api_context(0);
    OK(cuModuleLoadData(&module, two));
    OK(cuModuleGetFunction(&function, module, "other"));
    OK(cuFuncGetName(&name, function));
    cr_assert_str_eq(name, "other");
    OK(cuFuncGetModule(&same, function));
    cr_assert(same == module);
    OK(cuModuleGetFunctionCount(&count, module));
    cr_assert_eq(count, 2);
    OK(cuModuleEnumerateFunctions(all, 3, module));
    cr_assert(all[0] != NULL && all[1] != NULL && all[2] == NULL && all[0] != all[1]);
    OK(cuModuleGetGlobal_v2(&address, &bytes, module, "counter"));
    cr_assert_eq(bytes, 4);
    cr_assert_eq(api_read(address), 5);
    OK(cuModuleGetGlobal_v2(&address, NULL, module, "table"));
    OK(cuModuleGetGlobal_v2(NULL, &bytes, module, "table"));
    cr_assert_eq(bytes, 48);
    REFUSED(cuModuleGetGlobal_v2(NULL, NULL, module, "table"), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuModuleGetGlobal_v2(&address, &bytes, module, "room"), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuModuleGetGlobal_v2(&address, &bytes, module, "one"), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuModuleGetGlobal_v2(&address, &bytes, module, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuModuleGetFunction(&function, module, "counter"), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuModuleGetFunction(&function, module, "on"), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuModuleGetFunction(NULL, module, "one"), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuModuleGetFunction(&function, module, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuModuleGetFunction(&function, module, ""), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuModuleGetGlobal_v2(&address, &bytes, module, ""), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuModuleGetFunctionCount(NULL, module), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuModuleEnumerateFunctions(all, 0, module), CUDA_ERROR_INVALID_VALUE);
}

Test(api_module, handles_end_with_it) {
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUdeviceptr address = 0;
    unsigned count = 0;
    api_context(0);
    OK(cuModuleLoadData(&module, two));
    OK(cuModuleGetFunction(&function, module, "other"));
    OK(cuModuleGetGlobal_v2(&address, NULL, module, "counter"));
    OK(cuModuleUnload(module));
    REFUSED(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuModuleUnload(NULL), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuModuleGetFunctionCount(&count, module), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
            CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuMemsetD32_v2(address, 1, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
}

Test(api_module, a_kernel_that_runs_outlives_its_module) {
    CUdeviceptr flag_address = 0, value = 0;
    CUmodule module = NULL;
    CUfunction hold = NULL;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuMemAlloc_v2(&value, 4));
    OK(cuModuleLoadData(&module, api_kernels));
    OK(cuModuleGetFunction(&hold, module, "hold"));
    void *parameters[] = {&flag_address};
    OK(cuLaunchKernel(hold, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    REFUSED(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    OK(cuModuleUnload(module));
    *flag = 1;
    OK(cuCtxSynchronize());
}

Test(api_module, files_are_loaded) {
    char name[] = "/tmp/api-module-XXXXXX";
    CUmodule module = NULL;
    int file = mkstemp(name);
    cr_assert(file >= 0 && write(file, two, strlen(two)) == (ssize_t)strlen(two));
    close(file);
    api_context(0);
    OK(cuModuleLoad(&module, name));
    OK(cuModuleUnload(module));
    remove(name);
    REFUSED(cuModuleLoad(&module, name), CUDA_ERROR_FILE_NOT_FOUND);
    REFUSED(cuModuleLoad(&module, "/tmp"), CUDA_ERROR_FILE_NOT_FOUND);
    REFUSED(cuModuleLoad(&module, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuModuleLoad(NULL, name), CUDA_ERROR_INVALID_VALUE);
}

Test(api_module, what_is_wrong_with_a_file_is_told_with_its_name) {
    static const char bad[] = HEAD ".entry k() { frobnicate; }\n";
    char name[] = "/tmp/api-module-XXXXXX", place[64];
    CUmodule module = NULL;
    int file = mkstemp(name);
    cr_assert(file >= 0 && write(file, bad, strlen(bad)) == (ssize_t)strlen(bad));
    close(file);
    api_context(0);
    test_capture(stderr);
    REFUSED(cuModuleLoad(&module, name), CUDA_ERROR_INVALID_PTX);
    remove(name);
    snprintf(place, sizeof place, "tollens-soft: %s:4:14: error: ", name);
    const char *told = test_captured(stderr);
    cr_assert(strncmp(told, place, strlen(place)) == 0, "%s", told);
}

Test(api_module, machine_code_is_refused_for_what_it_is) {
    /* A cubin's header, and fat binaries without an entry. */
    static const unsigned char empty[64] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};
    static const struct {
        int magic, version;
        const void *data, *other;
    } wrapper = {0x466243b1, 1, empty, NULL};
    static const unsigned char cubin[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0};
    const void *const binaries[3] = {cubin, empty, &wrapper};
    CUmodule module = NULL;
    char log[700] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    api_context(0);
    for (int i = 0; i < 3; i++) {
        REFUSED(cuModuleLoadData(&module, binaries[i]), CUDA_ERROR_NO_BINARY_FOR_GPU);
        REFUSED(cuModuleLoadFatBinary(&module, binaries[i]), CUDA_ERROR_NO_BINARY_FOR_GPU);
        values[1] = (void *)sizeof log;
        REFUSED(cuModuleLoadDataEx(&module, binaries[i], 2, options, values),
                CUDA_ERROR_NO_BINARY_FOR_GPU);
        cr_assert(strstr(log, i == 0 ? "machine code" : "no code at all") != NULL, "%s", log);
    }
    REFUSED(cuModuleLoadFatBinary(&module, two), CUDA_ERROR_INVALID_IMAGE);
    REFUSED(cuModuleLoadFatBinary(&module, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuModuleLoadData(NULL, two), CUDA_ERROR_INVALID_VALUE);
    /* Shorter than any magic number, or than a header, and nothing after it. */
    static const char *const shorts[] = {"",        "\177",        "\177E",    "P",
                                         "\177ELF", "\177ELF\002", "nonsense", " \n"};
    for (size_t i = 0; i < sizeof shorts / sizeof shorts[0]; i++) {
        REFUSED(cuModuleLoadData(&module, shorts[i]), CUDA_ERROR_INVALID_IMAGE);
    }
    values[1] = (void *)sizeof log;
    REFUSED(cuModuleLoadDataEx(&module, "nonsense", 2, options, values), CUDA_ERROR_INVALID_IMAGE);
    cr_assert(strstr(log, "not PTX") != NULL, "%s", log);
    /* What begins as PTX does is judged by its reader. */
    static const char *const wrong[] = {".", "// nothing", " \t\n.version 7.0", "/* nothing */ x",
                                        "#line 1\nx"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        REFUSED(cuModuleLoadData(&module, wrong[i]), CUDA_ERROR_INVALID_PTX);
    }
}

/* ---- options ---- */

struct logs {
    char info[512], errors[512];
    size_t info_bytes, error_bytes;
};

static CUresult load_with_logs(const char *ptx, bool verbose, struct logs *logs, size_t room) {
    CUmodule module = NULL;
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_LOG_VERBOSE};
    void *values[] = {logs->info, (void *)room, logs->errors, (void *)room,
                      (void *)(uintptr_t)verbose};
    memset(logs, '#', sizeof *logs);
    CUresult result = cuModuleLoadDataEx(&module, ptx, 5, options, values);
    logs->info_bytes = (size_t)values[1];
    logs->error_bytes = (size_t)values[3];
    return result;
}

Test(api_module, logs_say_what_went_wrong_and_how_long_they_are) {
    static const char *const bad = HEAD ".entry k() {\n    frobnicate.b32 %r1, %r2;\n}\n";
    struct logs logs;
    api_context(0);
    REFUSED(load_with_logs(bad, false, &logs, 512), CUDA_ERROR_INVALID_PTX);
    cr_assert(strstr(logs.errors, "ptx:5") != NULL, "%s", logs.errors);
    cr_assert(strstr(logs.errors, "frobnicate") != NULL, "%s", logs.errors);
    cr_assert_eq(logs.error_bytes, strlen(logs.errors) + 1);
    cr_assert(logs.info[0] == '\0' && logs.info_bytes == 0);
    /* Cut to the room there is, and terminated. */
    REFUSED(load_with_logs(bad, false, &logs, 10), CUDA_ERROR_INVALID_PTX);
    cr_assert(strlen(logs.errors) == 9 && logs.error_bytes == 10 && logs.errors[10] == '#');
    REFUSED(load_with_logs(bad, false, &logs, 0), CUDA_ERROR_INVALID_PTX);
    cr_assert(logs.errors[0] == '#' && logs.error_bytes == 0);
}

Test(api_module, a_verbose_loading_tells_of_each_kernel) {
    struct logs logs;
    api_context(0);
    OK(load_with_logs(two, true, &logs, 512));
    cr_assert(strstr(logs.info, "'one'") != NULL && strstr(logs.info, "'other'") != NULL, "%s",
              logs.info);
    cr_assert(strstr(logs.info, "registers") != NULL, "%s", logs.info);
    cr_assert_eq(logs.info_bytes, strlen(logs.info) + 1);
    cr_assert(logs.errors[0] == '\0' && logs.error_bytes == 0);
    OK(load_with_logs(two, false, &logs, 512));
    cr_assert(logs.info[0] == '\0' && logs.info_bytes == 0);
}

static CUresult load_with(CUjit_option option, uintptr_t value) {
    CUmodule module = NULL;
    void *values[] = {(void *)value};
    CUresult result = cuModuleLoadDataEx(&module, two, 1, &option, values);
    if (result == CUDA_SUCCESS) OK(cuModuleUnload(module));
    return result;
}

Test(api_module, options_are_known_or_refused) {
    CUmodule module = NULL;
    CUjit_option option = CU_JIT_MAX_REGISTERS;
    void *value = NULL;
    api_context(0);
    static const struct {
        int option;
        uintptr_t good, bad;
    } rows[] = {
        {CU_JIT_OPTIMIZATION_LEVEL, 0, 5},
        {CU_JIT_FALLBACK_STRATEGY, 1, 2},
        {CU_JIT_GENERATE_DEBUG_INFO, 1, 2},
        {CU_JIT_GENERATE_LINE_INFO, 1, 7},
        {CU_JIT_LOG_VERBOSE, 1, 2},
        {CU_JIT_CACHE_MODE, 2, 3},
        {CU_JIT_TARGET, 70, 71},
        {CU_JIT_TARGET, 90 | 0x10000, 123},
        {CU_JIT_FTZ, 1, 2},
        {CU_JIT_GLOBAL_SYMBOL_COUNT, 0, 1},
        {CU_JIT_LTO, 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CUjit_option o = (CUjit_option)rows[i].option;
        OK(load_with(o, rows[i].good));
        REFUSED(load_with(o, rows[i].bad), CUDA_ERROR_INVALID_VALUE);
    }
    OK(load_with(CU_JIT_MAX_REGISTERS, 32));
    OK(load_with(CU_JIT_THREADS_PER_BLOCK, 256));
    OK(load_with(CU_JIT_TARGET_FROM_CUCONTEXT, 0));
    OK(load_with((CUjit_option)CU_JIT_MAX_THREADS_PER_BLOCK, 256));
    REFUSED(load_with((CUjit_option)CU_JIT_NUM_OPTIONS, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(load_with((CUjit_option)-1, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(load_with((CUjit_option)1000, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuModuleLoadDataEx(&module, two, 1, NULL, &value), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuModuleLoadDataEx(&module, two, 1, &option, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuModuleLoadDataEx(&module, two, 0, NULL, NULL));
}

Test(api_module, the_time_it_took_is_told) {
    CUmodule module = NULL;
    CUjit_option option = CU_JIT_WALL_TIME;
    float ms = -1;
    void *value = NULL;
    api_context(0);
    OK(cuModuleLoadDataEx(&module, two, 1, &option, &value));
    memcpy(&ms, &value, sizeof ms);
    cr_assert(ms > 0 && ms < 60000, "%g", (double)ms);
}

Test(api_module, the_target_must_be_one_the_device_can_be) {
    CUmodule module = NULL;
    setenv("TOLLENS_SOFT_COMPUTE", "80", 1);
    api_context(0);
    OK(load_with(CU_JIT_TARGET, 75));
    REFUSED(load_with(CU_JIT_TARGET, 90), CUDA_ERROR_NO_BINARY_FOR_GPU);
    REFUSED(cuModuleLoadData(&module, ".version 8.0\n.target sm_90\n.entry k() { ret; }\n"),
            CUDA_ERROR_INVALID_PTX);
    OK(cuModuleLoadData(&module, ".version 8.0\n.target sm_80\n.entry k() { ret; }\n"));
}

Test(api_module, loading_is_eager) {
    CUmoduleLoadingMode mode = 0;
    CUfunctionLoadingState state = 9;
    REFUSED(cuModuleGetLoadingMode(&mode), CUDA_ERROR_NOT_INITIALIZED);
    api_context(0);
    OK(cuModuleGetLoadingMode(&mode));
    cr_assert_eq(mode, CU_MODULE_EAGER_LOADING);
    REFUSED(cuModuleGetLoadingMode(NULL), CUDA_ERROR_INVALID_VALUE);
    CUfunction function = api_function(two, "one");
    OK(cuFuncIsLoaded(&state, function));
    cr_assert_eq(state, CU_FUNCTION_LOADING_STATE_LOADED);
    OK(cuFuncLoad(function));
    REFUSED(cuFuncLoad(NULL), CUDA_ERROR_INVALID_HANDLE);
}

/* ---- functions ---- */

Test(api_module, functions_have_attributes_and_parameters) {
    static const char *const ptx =
        HEAD ".visible .entry k(.param .u8 a, .param .u64 b, .param .align 16 .b8 c[20]) .maxntid "
             "96\n{\n    .shared .align 4 .b8 room[256];\n    .reg .u64 %a;\n"
             "    mov.u64 %a, room;\n    ret;\n}\n";
    int value = 0;
    size_t offset = 0, size = 0;
    api_context(0);
    CUfunction function = api_function(ptx, "k");
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    cr_assert_eq(value, 96);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
    cr_assert_eq(value, 256);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, function));
    cr_assert_eq(value, 70);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function));
    cr_assert_eq(value, 90);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, function));
    cr_assert_eq(value, -1);
    OK(cuFuncGetAttribute(&value, (CUfunction_attribute)CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                          function));
    cr_assert_eq(value, 0);
    REFUSED(cuFuncGetAttribute(&value, (CUfunction_attribute)CU_FUNC_ATTRIBUTE_MAX, function),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuFuncGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, function),
            CUDA_ERROR_INVALID_VALUE);
    static const size_t expected[3][2] = {{0, 1}, {8, 8}, {16, 20}};
    for (size_t i = 0; i < 3; i++) {
        OK(cuFuncGetParamInfo(function, i, &offset, &size));
        cr_assert(offset == expected[i][0] && size == expected[i][1], "%zu: %zu, %zu", i, offset,
                  size);
    }
    OK(cuFuncGetParamInfo(function, 1, &offset, NULL));
    REFUSED(cuFuncGetParamInfo(function, 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuFuncGetParamInfo(function, 0, NULL, &size), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuFuncGetName(NULL, function), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuFuncGetModule(NULL, function), CUDA_ERROR_INVALID_VALUE);
}

Test(api_module, what_can_be_set_for_a_function_is_checked) {
    int value = 0;
    api_context(0);
    CUfunction function = api_function(two, "one");
    const CUfunction_attribute shared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    const CUfunction_attribute carveout = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    const CUfunction_attribute cluster =
        (CUfunction_attribute)CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
    OK(cuFuncSetAttribute(function, shared, 232448)); /* 227 KiB */
    OK(cuFuncGetAttribute(&value, shared, function));
    cr_assert_eq(value, 232448);
    REFUSED(cuFuncSetAttribute(function, shared, 232449), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuFuncSetAttribute(function, shared, -1), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(function, carveout, 100));
    OK(cuFuncGetAttribute(&value, carveout, function));
    cr_assert_eq(value, 100);
    REFUSED(cuFuncSetAttribute(function, carveout, 101), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 8), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(function, cluster, 0));
    OK(cuFuncSetAttribute(function, cluster, 2));
    OK(cuFuncGetAttribute(&value, cluster, function));
    cr_assert_eq(value, 2);
    REFUSED(cuFuncSetAttribute(function, cluster, 17), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuFuncSetAttribute(function, cluster, -1), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_SHARED));
    REFUSED(cuFuncSetCacheConfig(function, 9), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetSharedMemConfig(function, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
    REFUSED(cuFuncSetSharedMemConfig(function, 9), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuFuncSetCacheConfig(NULL, 0), CUDA_ERROR_INVALID_HANDLE);
}

Test(api_module, the_log_can_be_written_to_a_file) {
    char name[] = "/tmp/api-log-XXXXXX", text[512] = "";
    CUmodule module = NULL;
    int file = mkstemp(name);
    cr_assert(file >= 0);
    close(file);
    api_context(0);
    cr_assert(cuModuleLoadData(&module, ".version 7.0\n.target sm_70\nnonsense\n") != CUDA_SUCCESS);
    OK(cuLogsDumpToFile(NULL, name, 0));
    FILE *log = fopen(name, "r");
    cr_assert(log != NULL && fread(text, 1, sizeof text - 1, log) > 0);
    fclose(log);
    remove(name);
    cr_assert(strstr(text, "nonsense") != NULL, "%s", text);
    REFUSED(cuLogsDumpToFile(NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLogsDumpToFile(NULL, "/nowhere/at/all", 0), CUDA_ERROR_FILE_NOT_FOUND);
}

/* A program that gives no place for the log still shows its user what was wrong. */
Test(api_module, without_a_log_the_reason_is_on_stderr) {
    static const char *const bad = HEAD ".visible .entry k() {\n    st.glob.u32 [0], 1;\n}\n";
    static const char binary[64] = "\177ELF\2\1\1";
    char log[400] = "";
    CUmodule module = NULL;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    api_context(0);
    test_capture(stderr);
    REFUSED(cuModuleLoadDataEx(&module, bad, 2, options, values), CUDA_ERROR_INVALID_PTX);
    cr_assert_str_eq(test_captured(stderr), "", "who has asked for the log has it");
    cr_assert(strstr(log, "ptx:5:7: error: 'st.glob.u32'") == log, "%s", log);
    REFUSED(cuModuleLoadData(&module, bad), CUDA_ERROR_INVALID_PTX);
    const char *told = test_captured(stderr);
    cr_assert(strncmp(told, "tollens-soft: ", 14) == 0 && strcmp(told + 14, log) == 0, "%s", told);
    REFUSED(cuModuleLoadData(&module, binary), CUDA_ERROR_NO_BINARY_FOR_GPU);
    cr_assert(strstr(test_captured(stderr), "a cubin, has machine code") != NULL);
    REFUSED(cuModuleLoadData(&module, "nonsense"), CUDA_ERROR_INVALID_IMAGE);
    cr_assert(strstr(test_captured(stderr), "is not PTX") != NULL);
}
