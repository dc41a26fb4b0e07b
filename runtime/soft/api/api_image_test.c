/*
 * Fat binaries and cubins: the selected PTX, and the message if there is none.
 */
#include "base/file_text.h"
#include "test/test_api.h"
#include "test/test_soft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *image_of(const char *name, size_t *bytes) {
    char path[200];
    char *image = NULL;
    snprintf(path, sizeof path, "fixtures/fatbin/%s", name);
    OK(soft_file_text(path, &image, bytes));
    return image;
}

/* Runs the kernel of a module: 21 must become 42. */
static void run(CUmodule module) {
    CUfunction twice = NULL;
    CUdeviceptr word = 0;
    int value = 21;
    OK(cuModuleGetFunction(&twice, module, "twice"));
    OK(cuMemAlloc_v2(&word, sizeof value));
    OK(cuMemcpyHtoD_v2(word, &value, sizeof value));
    void *arguments[] = {&word};
    OK(cuLaunchKernel(twice, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    OK(cuMemcpyDtoH_v2(&value, word, sizeof value));
    cr_assert_eq(value, 42);
    OK(cuMemFree_v2(word));
}

static const char *const whole[] = {"plain.fatbin", "lz4.fatbin", "zstd.fatbin"};
enum { WHOLE = sizeof whole / sizeof whole[0] };

Test(api_image, ptx_of_a_fat_binary_is_loaded_however_it_is_packed) {
    api_context(0);
    for (int i = 0; i < WHOLE; i++) {
        char path[200];
        char *image = image_of(whole[i], NULL);
        /* As a program that nvcc has compiled has it: a wrapper that points to the container. */
        const struct {
            int magic, version;
            const void *data, *other;
        } wrapper = {0x466243b1, 1, image, NULL};
        const void *const images[] = {image, &wrapper};
        CUmodule module = NULL;
        for (int w = 0; w < 2; w++) {
            OK(cuModuleLoadData(&module, images[w]));
            run(module);
            OK(cuModuleUnload(module));
            OK(cuModuleLoadFatBinary(&module, images[w]));
            run(module);
            OK(cuModuleUnload(module));
        }
        snprintf(path, sizeof path, "fixtures/fatbin/%s", whole[i]);
        OK(cuModuleLoad(&module, path));
        run(module);
        free(image);
    }
}

Test(api_image, a_library_of_a_fat_binary_outlives_the_image) {
    CUlibrary library = NULL;
    CUmodule module = NULL;
    api_context(0);
    char *image = image_of("zstd.fatbin", NULL);
    OK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    free(image);
    OK(cuLibraryGetModule(&module, library));
    run(module);
    OK(cuLibraryUnload(library));
    OK(cuLibraryLoadFromFile(&library, "fixtures/fatbin/lz4.fatbin", NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetModule(&module, library));
    run(module);
}

Test(api_image, fat_binaries_are_linked) {
    CUlinkState state = NULL;
    CUmodule module = NULL;
    void *linked = NULL;
    size_t bytes = 0;
    api_context(0);
    char *image = image_of("lz4.fatbin", &bytes);
    OK(cuLinkCreate_v2(0, NULL, NULL, &state));
    OK(cuLinkAddData_v2(state, CU_JIT_INPUT_FATBINARY, image, bytes, "lz4", 0, NULL, NULL));
    OK(cuLinkComplete(state, &linked, &bytes));
    OK(cuModuleLoadData(&module, linked));
    run(module);
    OK(cuLinkDestroy(state));
    free(image);
}

/* Loads an image on a device of a compute capability, in a process of its own, since options are
 * read once a process. Returns its exit status: 0 if the result is the expected one, and the text
 * is in the log. */
static int load_on(const char *compute, const char *image, CUresult expected, const char *text) {
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        char log[700] = "", info[700] = "";
        CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                                  CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                                  CU_JIT_LOG_VERBOSE};
        void *values[] = {log, (void *)sizeof log, info, (void *)sizeof info, (void *)1};
        CUmodule module = NULL;
        CUcontext context = NULL;
        setenv("TOLLENS_SOFT_COMPUTE", compute, 1);
        if (cuInit(0) != CUDA_SUCCESS) _exit(1);
        if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) _exit(1);
        if (cuCtxSetCurrent(context) != CUDA_SUCCESS) _exit(1);
        if (cuModuleLoadDataEx(&module, image, 5, options, values) != expected) _exit(2);
        const char *found = expected == CUDA_SUCCESS ? info : log;
        if (strstr(found, text) == NULL) {
            fprintf(stderr, "%s\n", found);
            _exit(3);
        }
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

/* The text with the newest target that the device has; its own is compute_75. */
Test(api_image, the_best_text_for_the_device_is_taken) {
    static const struct {
        const char *compute, *text;
        CUresult result;
    } cases[] = {{"90", "sm_80", CUDA_SUCCESS},
                 {"121", "sm_120", CUDA_SUCCESS},
                 {"110", "sm_80", CUDA_SUCCESS},
                 {"86", "sm_80", CUDA_SUCCESS},
                 {"75", "sm_75", CUDA_SUCCESS},
                 {"70", "compute capability 7.0", CUDA_ERROR_NO_BINARY_FOR_GPU}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *image =
            image_of(cases[i].result == CUDA_SUCCESS ? "plain.fatbin" : "newer.fatbin", NULL);
        const int status = load_on(cases[i].compute, image, cases[i].result, cases[i].text);
        cr_assert(status == 0, "compute capability %s: %x", cases[i].compute, (unsigned)status);
        free(image);
    }
}

/* Makes machine code for a device of all PTX below compute_120. */
static void leave_newest_ptx(char *image, unsigned architecture) {
    enum { CONTAINER_BYTES = 16, PTX = 1, MACHINE = 2 };
    uint64_t bytes;
    memcpy(&bytes, image + 8, sizeof bytes);
    char *end = image + CONTAINER_BYTES + bytes;
    for (char *entry = image + CONTAINER_BYTES; entry < end;) {
        uint32_t sizes[2], of;
        memcpy(sizes, entry + 4, sizeof sizes);
        memcpy(&of, entry + 28, sizeof of);
        if (entry[0] == PTX && of < 120) {
            entry[0] = MACHINE;
            memcpy(entry + 28, &architecture, sizeof architecture);
        }
        entry += sizes[0] + sizes[1];
    }
}

/* As in wheels: machine code for many devices, PTX for the newest alone. The file itself has
 * machine code for sm_75 and sm_80. */
Test(api_image, newer_ptx_stands_in_for_machine_code_that_the_device_would_run) {
    static const struct {
        const char *compute, *text;
        CUresult result;
        unsigned machine;
    } cases[] = {{"90", "sm_120", CUDA_SUCCESS, 90},
                 {"90", "compute capability 9.0", CUDA_ERROR_NO_BINARY_FOR_GPU, 89},
                 {"89", "sm_120", CUDA_SUCCESS, 86},
                 {"70", "compute capability 7.0", CUDA_ERROR_NO_BINARY_FOR_GPU, 90},
                 {"120", "sm_120", CUDA_SUCCESS, 89}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *image = image_of("plain.fatbin", NULL);
        leave_newest_ptx(image, cases[i].machine);
        const int status = load_on(cases[i].compute, image, cases[i].result, cases[i].text);
        cr_assert(status == 0, "%s, machine code for %u: %x", cases[i].compute, cases[i].machine,
                  (unsigned)status);
        free(image);
    }
}

/* A library keeps what stands in, and so does a link; the kernel's attribute tells its target. */
Test(api_image, what_stands_in_runs_from_libraries_and_links_as_well) {
    CUlibrary library = NULL;
    CUlinkState state = NULL;
    CUmodule module = NULL;
    CUfunction twice = NULL;
    void *linked = NULL;
    size_t bytes = 0;
    int version = 0;
    api_context(0);
    char *image = image_of("plain.fatbin", &bytes);
    leave_newest_ptx(image, 90);
    OK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetModule(&module, library));
    run(module);
    OK(cuModuleGetFunction(&twice, module, "twice"));
    OK(cuFuncGetAttribute(&version, CU_FUNC_ATTRIBUTE_PTX_VERSION, twice));
    cr_assert_eq(version, 120);
    OK(cuLibraryUnload(library));
    OK(cuLinkCreate_v2(0, NULL, NULL, &state));
    OK(cuLinkAddData_v2(state, CU_JIT_INPUT_FATBINARY, image, bytes, "plain", 0, NULL, NULL));
    OK(cuLinkComplete(state, &linked, &bytes));
    OK(cuModuleLoadData(&module, linked));
    run(module);
    OK(cuLinkDestroy(state));
    free(image);
}

static const char *refused(const char *name, CUresult expected) {
    static char log[700];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module = NULL;
    char *image = image_of(name, NULL);
    log[0] = '\0';
    REFUSED(cuModuleLoadDataEx(&module, image, 2, options, values), expected);
    free(image);
    return log;
}

Test(api_image, machine_code_alone_is_refused_with_what_helps) {
    api_context(0);
    const char *said = refused("machine.fatbin", CUDA_ERROR_NO_BINARY_FOR_GPU);
    cr_assert(strstr(said, "the fat binary has machine code for sm_80, sm_90 and no PTX") == said,
              "%s", said);
    cr_assert(strstr(said, "-gencode arch=compute_80,code=compute_80") != NULL, "%s", said);
    said = refused("sm_86.cubin", CUDA_ERROR_NO_BINARY_FOR_GPU);
    cr_assert(strstr(said, "the image, a cubin, has machine code for sm_86 and no PTX") == said,
              "%s", said);
    cr_assert(strstr(said, "--toolchain") != NULL, "%s", said);
    said = refused("newer.fatbin", CUDA_ERROR_NO_BINARY_FOR_GPU);
    cr_assert_str_eq(said, "the fat binary has PTX for compute_100, and this device is of compute "
                           "capability 9.0 (--compute selects another)\n");
}

/* Truncated anywhere, and with each byte of the headers changed: refused, or another text is used;
 * nothing past the file is read, which ASan would detect. */
Test(api_image, damaged_files_are_refused, .timeout = 120) {
    api_context(0);
    for (int i = 0; i < WHOLE; i++) {
        size_t bytes = 0;
        char path[] = "/tmp/tollens-fatbin-XXXXXX";
        char *image = image_of(whole[i], &bytes);
        const int file = mkstemp(path);
        cr_assert(file >= 0 && freopen("/dev/null", "w", stderr) != NULL);
        for (size_t cut = 0; cut < bytes; cut += cut < 200 ? 1 : 97) {
            CUmodule module = NULL;
            cr_assert(ftruncate(file, 0) == 0 && pwrite(file, image, cut, 0) == (ssize_t)cut);
            REFUSED(cuModuleLoad(&module, path), CUDA_ERROR_INVALID_IMAGE);
        }
        for (size_t at = 0; at < 16 + 64; at++) {
            CUmodule module = NULL;
            const char kept = image[at];
            image[at] = (char)(kept ^ 0x55);
            cr_assert(pwrite(file, image, bytes, 0) == (ssize_t)bytes);
            if (cuModuleLoad(&module, path) == CUDA_SUCCESS) run(module);
            image[at] = kept;
        }
        close(file);
        unlink(path);
        free(image);
    }
}

Test(api_image, what_no_device_can_link_is_named) {
    CUlinkState state = NULL;
    static const char text[64] = "no library";
    api_context(0);
    OK(cuLinkCreate_v2(0, NULL, NULL, &state));
    test_capture(stderr);
    REFUSED(
        cuLinkAddData_v2(state, CU_JIT_INPUT_NVVM, (void *)text, sizeof text, NULL, 0, NULL, NULL),
        CUDA_ERROR_NOT_SUPPORTED);
    cr_assert(strstr(test_captured(stderr), "LTO-IR") != NULL);
    REFUSED(cuLinkAddData_v2(state, CU_JIT_INPUT_LIBRARY, (void *)text, sizeof text, NULL, 0, NULL,
                             NULL),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
    cr_assert(strstr(test_captured(stderr), "neither a fat binary nor a cubin") != NULL);
    OK(cuLinkDestroy(state));
}
