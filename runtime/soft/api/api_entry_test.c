/*
 * Functions by name, and the names of errors.
 */
#include "driver/call.h"
#include "entries.h"
#include "since.h"
#include "test/test_api.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Calls cuGetProcAddress as a program of some CUDA version does. */
static void *ask(const char *symbol, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult *status) {
    void *function = &function;
    *status = -1;
    OK(cuGetProcAddress_v2(symbol, &function, version, flags, status));
    return function;
}

static void *same(void (*function)(void)) {
    void *pointer = NULL;
    memcpy(&pointer, &function, sizeof pointer);
    return pointer;
}

Test(api_entry, every_function_is_found_by_its_base_name_and_version) {
    for (int i = 0; i < SOFT_CALLS; i++) {
        const struct soft_entry *entry = &soft_entries[i];
        CUdriverProcAddressQueryResult status = 0;
        void *function = ask(entry->base, entry->version, 0, &status);
        cr_assert(function == same(entry->function), "%s of %d", entry->name, entry->version);
        cr_assert_eq(status, CU_GET_PROC_ADDRESS_SUCCESS);
        function = ask(entry->base, entry->version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status);
        cr_assert(function == same(entry->function), "%s", entry->name);
        function = ask(entry->base, entry->version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                       &status);
        void *own = entry->own != NULL ? same(entry->own) : same(entry->function);
        cr_assert(function == own, "%s for per-thread streams", entry->name);
    }
}

/* A base name's variants are the name and the name with _v2, _v3 ...; the newer CUDA has the higher
 * one. */
Test(api_entry, names_are_their_base_with_a_number) {
    for (int i = 0; i < SOFT_CALLS; i++) {
        const struct soft_entry *entry = &soft_entries[i];
        size_t length = strlen(entry->base);
        cr_assert(strncmp(entry->name, entry->base, length) == 0, "%s", entry->name);
        const char *rest = entry->name + length;
        bool number = strncmp(rest, "_v", 2) == 0 && isdigit((unsigned char)rest[2]) && !rest[3];
        cr_assert(rest[0] == '\0' || number, "%s", entry->name);
        cr_assert(entry->version >= 2000 && entry->version <= 13000, "%s", entry->name);
        for (int j = 0; j < SOFT_CALLS; j++) {
            const struct soft_entry *other = &soft_entries[j];
            if (i == j || strcmp(entry->base, other->base) != 0) continue;
            bool newer = strcmp(entry->name, other->name) > 0;
            cr_assert((entry->version > other->version) == newer, "%s", entry->name);
        }
    }
}

Test(api_entry, all_that_the_runtime_calls_is_there) {
    static const char *const names[] = {
#define TOL_DRIVER_FN(feature, name, parameters, names) #name,
#include "tollens/driver.def"
    };
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        bool found = false;
        for (int i = 0; i < SOFT_CALLS; i++) found |= strcmp(soft_entries[i].name, names[n]) == 0;
        cr_assert(found, "%s is not exported", names[n]);
    }
}

Test(api_entry, versions_choose_between_variants) {
    CUdriverProcAddressQueryResult status = 0;
    cr_assert(ask("cuCtxCreate", 3020, 0, &status) == (void *)(uintptr_t)cuCtxCreate_v2);
    cr_assert(ask("cuCtxCreate", 11030, 0, &status) == (void *)(uintptr_t)cuCtxCreate_v2);
    cr_assert(ask("cuCtxCreate", 11040, 0, &status) == (void *)(uintptr_t)cuCtxCreate_v3);
    cr_assert(ask("cuCtxCreate", 13000, 0, &status) == (void *)(uintptr_t)cuCtxCreate_v4);
    /* The 32-bit calls of CUDA 3.1 are there, and not modelled. */
    cr_assert(ask("cuMemAlloc", 3010, 0, &status) != NULL);
    cr_assert(ask("cuMemAlloc", 3010, 0, &status) != ask("cuMemAlloc", 3020, 0, &status));
    cr_assert(ask("cuMemAlloc", 1000, 0, &status) == NULL);
    cr_assert_eq(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

/* What came with a newer CUDA than the driver's is not found by any version it accepts. */
Test(api_entry, an_older_driver_offers_older_functions) {
    CUdriverProcAddressQueryResult status = 0;
    void *function = NULL;
    int version = 0;
    setenv("TOLLENS_SOFT_DRIVER_VERSION", "12000", 1);
    OK(cuDriverGetVersion(&version));
    cr_assert_eq(version, 12000);
    cr_assert(ask("cuCtxCreate", 12000, 0, &status) == (void *)(uintptr_t)cuCtxCreate_v3);
    REFUSED(cuGetProcAddress_v2("cuCtxCreate", &function, 12050, 0, NULL),
            CUDA_ERROR_INVALID_VALUE);
    cr_assert(ask("cuLogsCurrent", 12000, 0, &status) == NULL);
    cr_assert_eq(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

/* CuPy 14's cub is PTX 9.2, of CUDA 13.2. Each driver takes what its CUDA made, and no newer. */
Test(api_entry, a_newer_driver_takes_newer_ptx) {
    static const struct {
        const char *driver, *ptx;
        CUresult result;
    } cases[] = {{"13000", "9.0", CUDA_SUCCESS},
                 {"13000", "9.1", CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
                 {"13010", "9.1", CUDA_SUCCESS},
                 {"13010", "9.2", CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
                 {"13020", "9.2", CUDA_SUCCESS},
                 {"13020", "9.3", CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
                 {"13030", "9.1", CUDA_ERROR_UNSUPPORTED_PTX_VERSION}};
    char text[128];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pid_t child = fork(); /* a process reads its options once */
        if (child == 0) {
            CUmodule module = NULL;
            setenv("TOLLENS_SOFT_DRIVER_VERSION", cases[i].driver, 1);
            api_context(0);
            snprintf(text, sizeof text, ".version %s\n.target sm_80\n.address_size 64\n",
                     cases[i].ptx);
            _exit(cuModuleLoadData(&module, text) == cases[i].result ? 0 : 1);
        }
        int status = -1;
        cr_assert(waitpid(child, &status, 0) == child && status == 0, "PTX %s, driver %s",
                  cases[i].ptx, cases[i].driver);
    }
}

/* What the runtime, which uses dlsym, finds in a driver of each version. */
Test(api_entry, an_older_drivers_library_lacks_newer_names) {
    static const int versions[] = {11000, 11080, 12000, 12010, 12020, 12030, 12040,
                                   12050, 12060, 12070, 12080, 12090, 13000, 13020};
    char path[4096], version[16], own[128];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    cr_assert(length > 0);
    path[length] = '\0';
    strcpy(strrchr(path, '/'), "/libtollens-soft.so");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert(library != NULL, "%s", dlerror());
    if (!SOFT_HIDES_NAMES) cr_skip_test("needs indirect functions");
    for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++) {
        snprintf(version, sizeof version, "%d", versions[v]);
        setenv("TOLLENS_SOFT_DRIVER_VERSION", version, 1);
        for (int i = 0; i < SOFT_CALLS; i++) {
            const struct soft_entry *entry = &soft_entries[i];
            bool there = entry->version <= versions[v];
            cr_assert_eq(dlsym(library, entry->name) != NULL, there, "%s of %d in %d", entry->name,
                         entry->version, versions[v]);
            snprintf(own, sizeof own, "%s%s", entry->name, entry->suffix);
            cr_assert_eq(dlsym(library, own) != NULL, there, "%s of %d in %d", own, entry->version,
                         versions[v]);
        }
    }
    /* Values that options.c rejects: the default applies. */
    static const char *const wrong[] = {"", "12", "12.0", "14000", "newest", "-12000"};
    for (size_t w = 0; w < sizeof wrong / sizeof wrong[0]; w++) {
        setenv("TOLLENS_SOFT_DRIVER_VERSION", wrong[w], 1);
        cr_assert(dlsym(library, "cuCtxGetDevice_v2") != NULL, "%s", wrong[w]);
    }
}

/* A program may look for a name of before CUDA 4 by dlsym: where the arguments are still the same,
 * it is there. */
Test(api_entry, old_names_do_what_the_new_ones_do) {
    CUcontext context = NULL, popped = NULL;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUdeviceptr word = 0;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode culprit = (CUgraphNode)&culprit;
    CUgraphExecUpdateResult what = CU_GRAPH_EXEC_UPDATE_ERROR;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    unsigned own[4];
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuCtxPopCurrent(&popped));
    cr_assert(popped == context);
    OK(cuCtxPushCurrent(context));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc_v2(&word, 8));
    OK(cuMemHostRegister(own, sizeof own, 0));
    REFUSED(cuMemHostRegister(own, sizeof own, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    OK(cuStreamWriteValue32(stream, word, 3, 0));
    OK(cuStreamWaitValue32(stream, word, 3, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue64(stream, word, 4, 0));
    OK(cuStreamWaitValue64(stream, word, 4, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamBatchMemOp(stream, 0, NULL, 0));
    OK(cuStreamSynchronize(stream));
    cr_assert_eq(api_read(word), 4);
    OK(cuStreamBeginCapture(stream));
    OK(cuMemsetD8Async(word, 1, 4, stream));
    OK(cuStreamGetCaptureInfo(stream, &status, &id));
    cr_assert(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id != 0);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiate(&exec, graph, NULL, NULL, 0));
    OK(cuGraphExecUpdate(exec, graph, &culprit, &what));
    cr_assert(culprit == NULL && what == CU_GRAPH_EXEC_UPDATE_SUCCESS);
    REFUSED(cuGraphExecUpdate(exec, graph, &culprit, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventCreate(&event, 0));
    OK(cuEventDestroy(event));
    REFUSED(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamDestroy(stream));
    REFUSED(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxDestroy(context));
    REFUSED(cuCtxDestroy(context), CUDA_ERROR_INVALID_CONTEXT);
}

Test(api_entry, old_names_count_the_uses_of_a_context) {
    CUcontext context = NULL, attached = NULL, other = NULL, primary = NULL;
    OK(cuInit(0));
    REFUSED(cuCtxAttach(&attached, 0), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxCreate_v2(&context, 0, 0));
    REFUSED(cuCtxAttach(&attached, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuCtxAttach(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxAttach(&attached, 0));
    cr_assert(attached == context);
    OK(cuCtxDetach(context));
    OK(cuCtxCreate_v2(&other, 0, 0));
    REFUSED(cuCtxDetach(context), CUDA_ERROR_INVALID_CONTEXT); /* another is current */
    OK(cuCtxDetach(other));
    OK(cuCtxGetCurrent(&attached));
    cr_assert(attached == context);
    OK(cuCtxDetach(context)); /* the last use */
    OK(cuCtxGetCurrent(&attached));
    cr_assert(attached == NULL);
    REFUSED(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    OK(cuCtxSetCurrent(primary));
    REFUSED(cuCtxDetach(primary), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuCtxDetach(NULL), CUDA_ERROR_INVALID_VALUE);
}

Test(api_entry, old_names_link_texts) {
    static char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                        ".visible .entry k() { ret; }\n";
    CUlinkState link = NULL;
    CUmodule module = NULL;
    void *image = NULL;
    api_context(0);
    OK(cuLinkCreate(0, NULL, NULL, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, ptx, sizeof ptx, "k", 0, NULL, NULL));
    REFUSED(cuLinkAddFile(link, CU_JIT_INPUT_PTX, "/nonexistent", 0, NULL, NULL),
            CUDA_ERROR_FILE_NOT_FOUND);
    OK(cuLinkComplete(link, &image, NULL));
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(link));
}

Test(api_entry, what_is_not_there_gives_NULL_and_says_why) {
    CUdriverProcAddressQueryResult status = 0;
    void *function = NULL;
    static const char *const unknown[] = {"cuNothing", "", "cuMemAlloc_v2", "cumemalloc", "main"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        cr_assert(ask(unknown[i], 13000, 0, &status) == NULL, "%s", unknown[i]);
        cr_assert_eq(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "%s", unknown[i]);
    }
    cr_assert(ask("cuLogsCurrent", 12080, 0, &status) == NULL);
    cr_assert_eq(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    OK(cuGetProcAddress("cuInit", &function, 11030, 0));
    cr_assert(function == (void *)(uintptr_t)cuInit);
    OK(cuGetProcAddress_v2("cuInit", &function, 11030, 0, NULL));
}

Test(api_entry, bad_questions_are_refused) {
    void *function = NULL;
    REFUSED(cuGetProcAddress_v2(NULL, &function, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGetProcAddress_v2("cuInit", NULL, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGetProcAddress_v2("cuInit", &function, 13000, 3, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGetProcAddress_v2("cuInit", &function, 13000, 4, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGetProcAddress_v2("cuInit", &function, 13010, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}

Test(api_entry, undocumented_tables_are_not_found) {
    const void *table = &table;
    CUuuid id = {{0}};
    REFUSED(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
    cr_assert(table == NULL);
    REFUSED(cuGetExportTable(NULL, &id), CUDA_ERROR_INVALID_VALUE);
}

Test(api_entry, the_first_question_for_a_table_names_the_flag_to_use) {
    const void *table = NULL;
    CUuuid id = {{0}};
    char text[4096] = "";
    size_t bytes = sizeof text;
    REFUSED(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
    OK(cuLogsDumpToMemory(NULL, text, &bytes, 0));
    const char *first = strstr(text, "-cudart shared");
    cr_assert(first != NULL && strstr(first + 1, "-cudart shared") == NULL, "%s", text);
}

Test(api_entry, every_error_has_a_name_and_a_text) {
    static const struct {
        CUresult code;
        const char *name;
    } results[] = {
#define CUDA_RESULT(code, value) {code, #code},
#include "tollens/cuda_result.def"
#undef CUDA_RESULT
    };
    const char *name = NULL, *text = NULL;
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        OK(cuGetErrorName(results[i].code, &name));
        cr_assert_str_eq(name, results[i].name);
        OK(cuGetErrorString(results[i].code, &text));
        cr_assert(text != NULL && strlen(text) > 3, "%s", name);
    }
    OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    cr_assert_str_eq(text, "out of memory");
    static const int unknown[] = {-1, 6000, 9, 998};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        name = text = "";
        REFUSED(cuGetErrorName((CUresult)unknown[i], &name), CUDA_ERROR_INVALID_VALUE);
        REFUSED(cuGetErrorString((CUresult)unknown[i], &text), CUDA_ERROR_INVALID_VALUE);
        cr_assert(name == NULL && text == NULL, "%d", unknown[i]);
    }
    REFUSED(cuGetErrorName(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGetErrorString(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
}
