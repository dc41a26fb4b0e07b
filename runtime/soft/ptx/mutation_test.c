/*
 * Texts with a mistake at any place: the loader always returns a module, or one of its codes and a
 * log. Fuzzers try more texts (tools/fuzz), and ci/check those that they found; this test mutates
 * the current fixtures.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

TestSuite(mutation, .init = test_soft_open, .fini = test_soft_close);

enum { TEXT_MAX = 6000, CHANGES = 24 };

static uint32_t state = 1;
static size_t loaded, refused;

/* Marsaglia's xorshift: the same numbers on every machine. */
static uint32_t number(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % below;
}

static void try_text(const char *text, const char *name) {
    char log[256] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module = NULL;
    CUresult result = cuModuleLoadDataEx(&module, text, 2, options, values);
    if (result == CUDA_SUCCESS) {
        cr_assert_eq(cuModuleUnload(module), CUDA_SUCCESS);
        loaded++;
        return;
    }
    bool known = result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_INVALID_IMAGE ||
                 result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    cr_assert(known, "%s: %d\n%s", name, (int)result, text);
    cr_assert(log[0] != '\0', "%s: refused without a word\n%s", name, text);
    refused++;
}

/* Cuts, doubles, swaps or overwrites a piece. */
static void change(char *text, size_t length, const char *name) {
    static const char *const words[] = {"{", "}",     "(",    ";", "%r1", "[", "0x", ".reg ", ",",
                                        ":", ".b128", "<99>", "@", "\"",  "=", ".",  "/*",    "-"};
    char *copy = malloc(2 * length + 16);
    cr_assert(copy != NULL);
    size_t at = number((uint32_t)length), bytes = 1 + number(12);
    if (bytes > length - at) bytes = length - at;
    memcpy(copy, text, length + 1);
    switch (number(5)) {
    case 0: /* it ends here */
        copy[at] = '\0';
        break;
    case 1: /* a piece is gone */
        memmove(copy + at, copy + at + bytes, length + 1 - at - bytes);
        break;
    case 2: /* a piece occurs twice */
        memmove(copy + at + bytes, copy + at, length + 1 - at);
        break;
    case 3: /* another byte */
        copy[at] = (char)(1 + number(255));
        break;
    default: { /* a word too much */
        const char *word = words[number(sizeof words / sizeof words[0])];
        size_t more = strlen(word);
        memmove(copy + at + more, copy + at, length + 1 - at);
        memcpy(copy + at, word, more);
        break;
    }
    }
    try_text(copy, name);
    free(copy);
}

static void change_all(const char *name, const char *text) {
    size_t length = strlen(text);
    if (length > TEXT_MAX) return;
    char *copy = strdup(text);
    for (int i = 0; i < CHANGES && copy != NULL; i++) change(copy, length, name);
    free(copy);
}

Test(mutation, changed_texts_are_loaded_or_refused) {
    test_each_fixture("bad", change_all);
    test_each_fixture("kernels", change_all);
    test_each_fixture("handwritten", change_all);
    cr_assert(loaded > 20 && refused > 1000, "%zu %zu", loaded, refused);
}

Test(mutation, a_body_may_be_empty) {
    try_text(".version 8.0\n.target sm_90\n.address_size 64\n.entry k() { }\n.func f() {}", "");
    cr_assert_eq(loaded, 1);
    uint32_t out[1] = {7};
    TEST_RUN(".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 out) {}", 1, 64,
             out);
    cr_assert_eq(out[0], 7);
}

Test(mutation, bytes_that_are_no_text) {
    char bytes[64];
    for (int i = 0; i < 2000; i++) {
        size_t length = number(sizeof bytes - 1);
        for (size_t j = 0; j < length; j++) bytes[j] = (char)(2 + number(254));
        bytes[length] = '\0';
        if (bytes[0] == '\x7f') continue; /* an image of machine code, refused otherwise */
        try_text(bytes, "bytes");
    }
    cr_assert_eq(loaded, 0);
}
