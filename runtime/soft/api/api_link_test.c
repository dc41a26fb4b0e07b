/*
 * Linking: texts that need each other become one image.
 */
#include "base/file_text.h"
#include "test/test_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

/* One text stores into what another one defines; a local name is in both. */
static const char *const user = HEAD ".extern .global .u32 answer;\n"
                                     ".global .u32 own = 1;\n"
                                     ".visible .entry store(.param .u32 value) {\n"
                                     "    .reg .u32 %v;\n    .reg .u64 %a;\n"
                                     "    ld.param.u32 %v, [value];\n"
                                     "    mov.u64 %a, answer;\n"
                                     "    st.global.u32 [%a], %v;\n"
                                     "    ret;\n}\n";
static const char *const definer = HEAD ".visible .global .align 4 .u32 answer = 6;\n"
                                        ".global .u32 own = 2;\n"
                                        ".visible .entry nothing() { ret; }\n";

static CUresult add(CUlinkState state, const char *text) {
    return cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text, strlen(text) + 1,
                            "text", 0, NULL, NULL);
}

static CUlinkState begin(void) {
    CUlinkState state = NULL;
    api_context(0);
    OK(cuLinkCreate_v2(0, NULL, NULL, &state));
    return state;
}

static char errors[512];

static CUlinkState begin_with_log(void) {
    CUlinkState state = NULL;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    static void *values[2];
    values[0] = errors;
    values[1] = (void *)sizeof errors;
    api_context(0);
    OK(cuLinkCreate_v2(2, options, values, &state));
    return state;
}

#define LIBRARY_USER                                                                               \
    HEAD ".extern .func (.param .b32 r) doubled(.param .b32 x);\n"                                 \
         ".extern .func (.param .b32 r) tripled(.param .b32 x);\n"                                 \
         ".visible .entry k(.param .u64 to) {\n"                                                   \
         "    .reg .u32 %v;\n    .reg .u64 %a;\n    .param .b32 x;\n    .param .b32 r;\n"          \
         "    ld.param.u64 %a, [to];\n    st.param.b32 [x], 7;\n"                                  \
         "    call (r), doubled, (x);\n    ld.param.b32 %v, [r];\n    st.param.b32 [x], %v;\n"     \
         "    call (r), tripled, (x);\n    ld.param.b32 %v, [r];\n    st.global.u32 [%a], %v;\n"   \
         "    ret;\n}\n"

/* From members of a library, one of which has machine code alone and is not needed. */
Test(api_link, functions_of_a_library_are_called) {
    CUlinkState state = begin();
    void *image = NULL;
    CUmodule module = NULL;
    CUfunction k = NULL;
    CUdeviceptr word = 0;
    OK(add(state, LIBRARY_USER));
    OK(cuLinkAddFile_v2(state, CU_JIT_INPUT_LIBRARY, "fixtures/fatbin/members.a", 0, NULL, NULL));
    OK(cuLinkComplete(state, &image, NULL));
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(state));
    OK(cuModuleGetFunction(&k, module, "k"));
    OK(cuMemAlloc_v2(&word, 4));
    void *parameters[] = {&word};
    OK(cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    cr_assert(api_read(word) == 42);
}

/* A library like libcudadevrt.a: the member of its name has machine code alone. */
static size_t make_device_runtime(char *library, size_t room) {
    enum { MAGIC = 8, HEADER = 60, NAMES = 24 };
    char *machine = NULL;
    size_t bytes = 0;
    OK(soft_file_text("fixtures/fatbin/machine.a", &machine, &bytes));
    /* After the symbol index. */
    const char *member = memmem(machine, bytes, "machine.o/      ", 16);
    cr_assert(member != NULL && bytes + HEADER + NAMES < room);
    bytes -= (size_t)(member - machine);
    memcpy(library, machine, MAGIC);
    snprintf(library + MAGIC, HEADER + NAMES + 1, "%-48s%-10d`\n%-23s\n", "//", NAMES,
             "cuda_device_runtime.o/");
    memcpy(library + MAGIC + HEADER + NAMES, member, bytes);
    memcpy(library + MAGIC + HEADER + NAMES, "/0              ", 16);
    free(machine);
    return MAGIC + HEADER + NAMES + bytes;
}

/* Each block stores, and all read what the next block stored, twice. */
#define GRID_USER                                                                                  \
    HEAD ".extern .func (.param .b64 h) cudaCGGetIntrinsicHandle(.param .b32 s);\n"                \
         ".extern .func (.param .b32 e) cudaCGSynchronize(.param .b64 h, .param .b32 f);\n"        \
         ".visible .entry k(.param .u64 to, .param .u32 scope) {\n"                                \
         "    .reg .u32 %v, %w, %n, %e;\n    .reg .u64 %a, %b, %h;\n    .reg .pred %p;\n"          \
         "    .param .b32 s;\n    .param .b64 h;\n    .param .b32 f;\n    .param .b32 e;\n"        \
         "    ld.param.u64 %a, [to];\n    ld.param.b32 %w, [scope];\n    st.param.b32 [s], %w;\n"  \
         "    call (h), cudaCGGetIntrinsicHandle, (s);\n    ld.param.b64 %h, [h];\n"               \
         "    mov.u32 %v, %ctaid.x;\n    mov.u32 %n, %nctaid.x;\n"                                 \
         "    mad.wide.u32 %b, %v, 4, %a;\n    add.u32 %w, %v, 1;\n    rem.u32 %n, %w, %n;\n"      \
         "    mad.wide.u32 %a, %n, 4, %a;\n    st.global.u32 [%b], %w;\n"                          \
         "    st.param.b64 [h], %h;\n    st.param.b32 [f], 0;\n"                                   \
         "    call (e), cudaCGSynchronize, (h, f);\n    ld.param.b32 %e, [e];\n"                   \
         "    ld.global.u32 %w, [%a];\n    call (e), cudaCGSynchronize, (h, f);\n"                 \
         "    mad.lo.u32 %w, %e, 1000, %w;\n    st.global.u32 [%b], %w;\n    ret;\n}\n"

static CUfunction link_grid_user(void) {
    static char library[8192];
    CUlinkState state = begin();
    CUmodule module = NULL;
    CUfunction k = NULL;
    void *image = NULL;
    const size_t bytes = make_device_runtime(library, sizeof library);
    OK(add(state, GRID_USER));
    for (int i = 0; i < 2; i++) { /* who adds it again may */
        OK(cuLinkAddData_v2(state, CU_JIT_INPUT_LIBRARY, library, bytes, NULL, 0, NULL, NULL));
    }
    OK(cuLinkComplete(state, &image, NULL));
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(state));
    OK(cuModuleGetFunction(&k, module, "k"));
    return k;
}

Test(api_link, the_device_runtime_has_the_barrier_of_a_grid) {
    enum { BLOCKS = 5, THREADS = 40 };
    const CUfunction k = link_grid_user();
    CUdeviceptr words = 0;
    unsigned scope = 1;
    void *parameters[] = {&words, &scope};
    OK(cuMemAlloc_v2(&words, 4 * BLOCKS));
    OK(cuLaunchCooperativeKernel(k, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, parameters));
    OK(cuCtxSynchronize());
    for (unsigned i = 0; i < BLOCKS; i++) {
        const unsigned word = api_read(words + 4 * i);
        cr_assert(word == (i + 1) % BLOCKS + 1, "block %u: %u", i, word);
    }
    /* Another scope, and a launch that is not cooperative, have no handle. */
    scope = 2;
    OK(cuLaunchCooperativeKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, parameters));
    cr_assert(api_read(words) == 1001);
    scope = 1;
    OK(cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    cr_assert(api_read(words) == 1001);
}

/* Of input C, a void function declared with a result. */
Test(api_link, a_result_that_is_not_given_is_zero) {
    CUlinkState state = begin();
    void *image = NULL;
    CUmodule module = NULL;
    CUfunction k = NULL;
    CUdeviceptr word = 0;
    OK(add(state, HEAD ".extern .func (.param .b64 r) consume(.param .b32 x);\n"
                       ".visible .entry k(.param .u64 to) {\n"
                       "    .reg .u64 %v, %a;\n    ld.param.u64 %a, [to];\n"
                       "    { .param .b32 x;\n    .param .b64 r;\n    st.param.b64 [r], -1;\n"
                       "    st.param.b32 [x], 7;\n    call (r), consume, (x);\n"
                       "    ld.param.b64 %v, [r]; }\n"
                       "    add.u64 %v, %v, 3;\n    st.global.u64 [%a], %v;\n    ret;\n}\n"));
    OK(add(state, HEAD ".visible .func consume(.param .b32 x) { ret; }\n"));
    OK(cuLinkComplete(state, &image, NULL));
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(state));
    OK(cuModuleGetFunction(&k, module, "k"));
    OK(cuMemAlloc_v2(&word, 8));
    void *parameters[] = {&word};
    OK(cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    cr_assert(api_read(word) == 3 && api_read(word + 4) == 0);
    /* Within one text it is an error. */
    REFUSED(cuModuleLoadData(&module, HEAD ".visible .func consume(.param .b32 x) { ret; }\n"
                                           ".visible .entry k() {\n"
                                           "    .param .b32 x;\n    .param .b32 r;\n"
                                           "    st.param.b32 [x], 7;\n"
                                           "    call (r), consume, (x);\n    ret;\n}\n"),
            CUDA_ERROR_INVALID_PTX);
}

Test(api_link, what_one_text_declares_another_defines) {
    CUlinkState state = begin();
    void *image = NULL;
    size_t bytes = 0;
    CUmodule module = NULL;
    CUfunction store = NULL, nothing = NULL;
    CUdeviceptr answer = 0;
    unsigned value = 42;
    OK(add(state, user));
    OK(add(state, definer));
    OK(cuLinkComplete(state, &image, &bytes));
    cr_assert(image != NULL && bytes > strlen(user) + strlen(definer));
    /* The image is the program's to keep. */
    void *kept = malloc(bytes);
    memcpy(kept, image, bytes);
    OK(cuLinkDestroy(state));
    OK(cuModuleLoadData(&module, kept));
    free(kept);
    OK(cuModuleGetFunction(&store, module, "store"));
    OK(cuModuleGetFunction(&nothing, module, "nothing"));
    OK(cuModuleGetGlobal_v2(&answer, NULL, module, "answer"));
    cr_assert_eq(api_read(answer), 6);
    void *parameters[] = {&value};
    OK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    cr_assert_eq(api_read(answer), 42);
}

/* A function, its table of addresses and a shared variable of one text, used by another. */
Test(api_link, functions_of_another_text_are_called) {
    static const char *const library = HEAD ".visible .shared .align 4 .b8 pad[64];\n"
                                            ".visible .func (.reg .u32 %r) twice(.reg .u32 %v) {\n"
                                            "    .reg .u32 %s;\n"
                                            "    st.shared.u32 [pad+60], %v;\n"
                                            "    ld.shared.u32 %s, [pad+60];\n"
                                            "    add.u32 %r, %v, %s;\n    ret;\n}\n"
                                            ".visible .global .u64 table[1] = {twice};\n";
    static const char *const caller =
        HEAD ".extern .func (.reg .u32 %r) twice(.reg .u32 %v);\n"
             ".extern .global .u64 table[1];\n"
             ".visible .entry both(.param .u64 to) {\n"
             "    .reg .u32 %v;\n    .reg .u64 %a, %f;\n"
             "    prototype: .callprototype (.reg .u32 _) _ (.reg .u32 _);\n"
             "    call (%v), twice, (21);\n"
             "    mov.u64 %f, table;\n    ld.global.u64 %f, [%f];\n"
             "    call (%v), %f, (%v), prototype;\n"
             "    ld.param.u64 %a, [to];\n"
             "    st.global.u32 [%a], %v;\n    ret;\n}\n";
    CUlinkState state = begin_with_log();
    void *image = NULL;
    CUmodule module = NULL;
    CUfunction both = NULL;
    CUdeviceptr to = 0;
    OK(add(state, caller));
    OK(add(state, library));
    CUresult completed = cuLinkComplete(state, &image, NULL);
    cr_assert(completed == CUDA_SUCCESS, "%s", errors);
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(state));
    OK(cuModuleGetFunction(&both, module, "both"));
    OK(cuMemAlloc_v2(&to, 4));
    void *parameters[] = {&to};
    OK(cuLaunchKernel(both, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    cr_assert_eq(api_read(to), 84);
}

Test(api_link, the_order_of_texts_does_not_matter) {
    CUlinkState state = begin();
    void *image = NULL;
    CUmodule module = NULL;
    OK(add(state, definer));
    OK(add(state, user));
    OK(cuLinkComplete(state, &image, NULL));
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(state));
}

Test(api_link, an_image_can_be_linked_again) {
    static const char *const third = HEAD ".extern .global .u32 answer;\n"
                                          ".visible .entry load(.param .u64 to) {\n"
                                          "    .reg .u32 %v;\n    .reg .u64 %a;\n"
                                          "    mov.u64 %a, answer;\n"
                                          "    ld.global.u32 %v, [%a];\n"
                                          "    ld.param.u64 %a, [to];\n"
                                          "    st.global.u32 [%a], %v;\n"
                                          "    ret;\n}\n";
    CUlinkState first = begin(), second = NULL;
    void *image = NULL, *whole = NULL;
    size_t bytes = 0;
    CUmodule module = NULL;
    CUfunction load = NULL;
    CUdeviceptr to = 0;
    OK(add(first, user));
    OK(add(first, definer));
    OK(cuLinkComplete(first, &image, &bytes));
    OK(cuLinkCreate_v2(0, NULL, NULL, &second));
    OK(cuLinkAddData_v2(second, CU_JIT_INPUT_CUBIN, image, bytes, NULL, 0, NULL, NULL));
    OK(add(second, third));
    OK(cuLinkComplete(second, &whole, NULL));
    OK(cuModuleLoadData(&module, whole));
    OK(cuModuleGetFunction(&load, module, "load"));
    OK(cuMemAlloc_v2(&to, 4));
    void *parameters[] = {&to};
    OK(cuLaunchKernel(load, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    cr_assert_eq(api_read(to), 6);
    OK(cuLinkDestroy(first));
    OK(cuLinkDestroy(second));
}

Test(api_link, files_are_added) {
    char name[] = "/tmp/api-link-XXXXXX";
    CUlinkState state = begin();
    void *image = NULL;
    int file = mkstemp(name);
    cr_assert(file >= 0 && write(file, definer, strlen(definer)) == (ssize_t)strlen(definer));
    close(file);
    OK(cuLinkAddFile_v2(state, CU_JIT_INPUT_PTX, name, 0, NULL, NULL));
    remove(name);
    REFUSED(cuLinkAddFile_v2(state, CU_JIT_INPUT_PTX, name, 0, NULL, NULL),
            CUDA_ERROR_FILE_NOT_FOUND);
    REFUSED(cuLinkAddFile_v2(state, CU_JIT_INPUT_PTX, NULL, 0, NULL, NULL),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuLinkComplete(state, &image, NULL));
    OK(cuLinkDestroy(state));
}

/* ---- what does not fit together ---- */

Test(api_link, a_name_that_two_texts_define_is_refused) {
    CUlinkState state = begin_with_log();
    void *image = NULL;
    OK(add(state, definer));
    OK(add(state, definer));
    REFUSED(cuLinkComplete(state, &image, NULL), CUDA_ERROR_INVALID_PTX);
    cr_assert(strstr(errors, "answer") != NULL || strstr(errors, "nothing") != NULL, "%s", errors);
    cr_assert(strstr(errors, "more than one linked input") != NULL, "%s", errors);
    OK(cuLinkDestroy(state));
}

Test(api_link, a_name_that_is_something_else_is_refused) {
    CUlinkState state = begin_with_log();
    void *image = NULL;
    OK(add(state, user));
    OK(add(state, HEAD ".visible .const .u32 answer = 6;\n"));
    REFUSED(cuLinkComplete(state, &image, NULL), CUDA_ERROR_INVALID_PTX);
    cr_assert(strstr(errors, "answer") != NULL, "%s", errors);
    OK(cuLinkDestroy(state));
}

Test(api_link, a_name_that_nobody_defines_is_refused) {
    CUlinkState state = begin_with_log();
    void *image = NULL;
    OK(add(state, user));
    cr_assert(cuLinkComplete(state, &image, NULL) != CUDA_SUCCESS);
    cr_assert(strstr(errors, "answer") != NULL, "%s", errors);
    OK(cuLinkDestroy(state));
}

/* Of several texts the log says which is meant, by the name that it was added with. */
Test(api_link, messages_name_the_text) {
    static char bad[] = HEAD ".entry k() { frobnicate; }\n";
    CUlinkState state = begin_with_log();
    void *image = NULL;
    REFUSED(
        cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, bad, sizeof bad, "some/bad.ptx", 0, NULL, NULL),
        CUDA_ERROR_INVALID_PTX);
    cr_assert(strstr(errors, "some/bad.ptx:4:14: error: ") == errors, "%s", errors);
    REFUSED(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, bad, sizeof bad, NULL, 0, NULL, NULL),
            CUDA_ERROR_INVALID_PTX);
    cr_assert(strstr(errors, "ptx:4:14: error: ") == errors, "%s", errors);
    char *text = strdup(user), name[] = "user";
    OK(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, text, strlen(text), name, 0, NULL, NULL));
    free(text);
    name[0] = '!'; /* both were copied */
    cr_assert(cuLinkComplete(state, &image, NULL) != CUDA_SUCCESS);
    cr_assert(strncmp(errors, "user:", 5) == 0, "%s", errors);
    OK(cuLinkDestroy(state));
}

Test(api_link, a_bad_text_is_refused_when_it_is_added) {
    CUlinkState state = begin_with_log();
    void *image = NULL;
    REFUSED(add(state, HEAD ".entry k() { frobnicate; }\n"), CUDA_ERROR_INVALID_PTX);
    cr_assert(strstr(errors, "frobnicate") != NULL, "%s", errors);
    REFUSED(cuLinkComplete(state, &image, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(add(state, definer));
    OK(cuLinkComplete(state, &image, NULL));
    OK(cuLinkDestroy(state));
}

/* Of weak definitions one counts, and none beside one that is not weak; of common ones the largest.
 * */
Test(api_link, weak_and_common_definitions_give_way) {
    CUlinkState state = begin();
    void *image = NULL;
    CUmodule module = NULL;
    CUdeviceptr address = 0;
    size_t bytes = 0;
    OK(add(state, HEAD ".weak .global .u32 a = 1;\n.weak .global .u32 b = 1;\n"
                       ".common .global .align 4 .b8 c[8];\n"));
    OK(add(state, HEAD ".visible .global .u32 a = 2;\n.weak .global .u32 b = 2;\n"
                       ".common .global .align 4 .b8 c[32];\n"));
    OK(add(state, HEAD ".weak .global .u32 a = 3;\n.common .global .align 4 .b8 c[16];\n"));
    OK(cuLinkComplete(state, &image, NULL));
    OK(cuModuleLoadData(&module, image));
    OK(cuModuleGetGlobal_v2(&address, &bytes, module, "a"));
    cr_assert_eq(api_read(address), 2);
    OK(cuModuleGetGlobal_v2(&address, &bytes, module, "b"));
    cr_assert_eq(api_read(address), 1);
    OK(cuModuleGetGlobal_v2(&address, &bytes, module, "c"));
    cr_assert_eq(bytes, 32);
    OK(cuLinkDestroy(state));
}

Test(api_link, bad_arguments_are_refused) {
    CUlinkState state = begin(), none = NULL;
    void *image = NULL;
    CUjit_option option = (CUjit_option)99;
    void *value = NULL;
    unsigned char cubin[] = {0x7f, 'E', 'L', 'F', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    char *text = (char *)(uintptr_t)definer;
    REFUSED(cuLinkCreate_v2(0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLinkCreate_v2(1, &option, &value, &none), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, NULL, 4, NULL, 0, NULL, NULL),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, text, 0, NULL, 0, NULL, NULL),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLinkAddData_v2(state, 6, text, 4, NULL, 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLinkAddData_v2(state, CU_JIT_INPUT_CUBIN, cubin, sizeof cubin, NULL, 0, NULL, NULL),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
    REFUSED(cuLinkAddData_v2(state, CU_JIT_INPUT_LIBRARY, cubin, sizeof cubin, NULL, 0, NULL, NULL),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
    REFUSED(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, text, 4, NULL, 1, &option, &value),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLinkComplete(state, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLinkComplete(state, &image, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(add(state, definer));
    OK(cuLinkComplete(state, &image, NULL));
    REFUSED(add(state, user), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLinkComplete(state, &image, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuLinkDestroy(state));
    REFUSED(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(add(state, user), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuLinkDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
}

/* A text that is cut off before a NUL is a text of that length. */
Test(api_link, a_text_may_come_without_a_NUL) {
    CUlinkState state = begin();
    void *image = NULL;
    char *cut = malloc(strlen(definer));
    memcpy(cut, definer, strlen(definer)); /* NOLINT(bugprone-not-null-terminated-result) */
    OK(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, cut, strlen(definer), NULL, 0, NULL, NULL));
    free(cut);
    OK(cuLinkComplete(state, &image, NULL));
    OK(cuLinkDestroy(state));
}

/* Every byte of an image's head is spoilt once: it is refused, and nothing is read that is not
 * there. */
Test(api_link, a_damaged_image_is_refused) {
    CUlinkState state = begin();
    void *image = NULL;
    size_t bytes = 0;
    CUmodule module = NULL;
    OK(add(state, definer));
    OK(cuLinkComplete(state, &image, &bytes));
    unsigned char *spoilt = malloc(bytes);
    for (size_t i = 16; i < 40; i++) {
        memcpy(spoilt, image, bytes);
        spoilt[i] ^= 0x80;
        CUresult result = cuModuleLoadData(&module, spoilt);
        cr_assert(result != CUDA_SUCCESS, "byte %zu", i);
    }
    free(spoilt);
    OK(cuLinkDestroy(state));
}

static CUresult add_file(CUlinkState state, CUjitInputType type, const char *path) {
    errors[0] = '\0';
    return cuLinkAddFile_v2(state, type, path, 0, NULL, NULL);
}

Test(api_link, a_library_without_ptx_says_what_it_has) {
    static const char machine[] = "!<arch>\n";
    CUlinkState state = begin_with_log();
    REFUSED(add_file(state, CU_JIT_INPUT_LIBRARY, "fixtures/fatbin/machine.a"),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
    cr_assert(strstr(errors, "machine.o: the fat binary has machine code for sm_80 and no PTX") !=
                  NULL,
              "%s", errors);
    REFUSED(add_file(state, CU_JIT_INPUT_OBJECT, "fixtures/fatbin/lto.o"),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
    cr_assert(strncmp(errors, "the fat binary has LTO-IR for lto_80 and no PTX", 47) == 0, "%s",
              errors);
    REFUSED(cuLinkAddData_v2(state, CU_JIT_INPUT_LIBRARY, (void *)(uintptr_t)machine, 8, NULL, 0,
                             NULL, NULL),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
    errors[0] = '\0';
    REFUSED(cuLinkAddData_v2(state, CU_JIT_INPUT_LIBRARY,
                             (void *)(uintptr_t) "!<arch>\nfirst.o/        0     ", 30, NULL, 0,
                             NULL, NULL),
            CUDA_ERROR_INVALID_IMAGE);
    cr_assert(strstr(errors, "damaged or cut off") != NULL, "%s", errors);
    OK(cuLinkDestroy(state));
}
