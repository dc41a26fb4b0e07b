/*
 * Containers: what a reader of cubins sees, the way there and back, every way that the device loads
 * one, and damage.
 */
#include "container.h"

#include "test/test_api.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
static const char storing[] = HEAD ".visible .entry store(.param .u64 to) {\n"
                                   "  .reg .b64 %a;\n  ld.param.u64 %a, [to];\n"
                                   "  st.global.u32 [%a], 7;\n  ret;\n}\n";
static const char *const texts[] = {"// one\n", "", storing};
enum { TEXTS = 3 };

static char *container_of(const char *const *list, unsigned count, size_t *bytes) {
    struct soft_source sources[TEXTS] = {{.text = ""}};
    for (unsigned i = 0; i < count; i++) {
        sources[i] =
            (struct soft_source){.text = list[i], .length = strlen(list[i]), .linked = i == 1};
    }
    char *image = soft_container_make(sources, count, 90, bytes);
    cr_assert(image != NULL);
    return image;
}

Test(container, texts_come_back) {
    size_t bytes = 0;
    unsigned count = 0;
    char *image = container_of(texts, TEXTS, &bytes);
    cr_assert(soft_container_is(image));
    cr_assert(soft_container_bytes(image, bytes) == bytes);
    cr_assert(soft_container_bytes(image, SIZE_MAX) == bytes);
    struct soft_source *sources = soft_container_sources(image, bytes, &count);
    cr_assert(sources != NULL && count == TEXTS);
    for (unsigned i = 0; i < TEXTS; i++) {
        cr_assert_str_eq(sources[i].text, texts[i]);
        cr_assert(sources[i].length == strlen(texts[i]));
        cr_assert(sources[i].linked == (i == 1) && sources[i].is_compiled);
    }
    free(sources);
    free(image);
}

Test(container, a_reader_of_cubins_sees_an_elf_file_for_cuda) {
    Elf64_Ehdr header;
    Elf64_Shdr names, text;
    size_t bytes = 0;
    char *image = container_of(&texts[2], 1, &bytes);
    memcpy(&header, image, sizeof header);
    cr_assert(memcmp(header.e_ident, ELFMAG, SELFMAG) == 0);
    cr_assert(header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == 190);
    cr_assert((header.e_flags & 0xff) == 90 && header.e_type == ET_EXEC);
    cr_assert(header.e_shoff + header.e_shnum * sizeof text == bytes);
    memcpy(&names, image + header.e_shoff + header.e_shstrndx * sizeof names, sizeof names);
    memcpy(&text, image + header.e_shoff + sizeof text, sizeof text);
    cr_assert_str_eq(image + names.sh_offset + names.sh_name, ".shstrtab");
    cr_assert_str_eq(image + names.sh_offset + text.sh_name, ".tollens.ptx");
    cr_assert_str_eq(image + text.sh_offset, storing);
    free(image);
}

Test(container, none_is_made_of_too_few_or_too_many_texts) {
    const struct soft_source source = {.text = ""};
    size_t bytes = 0;
    cr_assert(soft_container_make(&source, 0, 90, &bytes) == NULL);
    cr_assert(soft_container_make(&source, SOFT_CONTAINER_TEXTS_MAX + 1, 90, &bytes) == NULL);
}

/* A copy that ends where the file does, for the sanitizers. */
static void container_try(const char *image, size_t bytes) {
    char *copy = malloc(bytes > 0 ? bytes : 1);
    unsigned count = 0;
    cr_assert(copy != NULL);
    memcpy(copy, image, bytes);
    struct soft_source *sources =
        bytes >= EI_NIDENT ? soft_container_sources(copy, bytes, &count) : NULL;
    for (unsigned i = 0; i < count && sources != NULL; i++) {
        cr_assert(sources[i].text >= copy && sources[i].length < bytes);
        cr_assert(strlen(sources[i].text) == sources[i].length);
    }
    free(sources);
    free(copy);
}

Test(container, damage_is_refused_and_nothing_is_read_past_the_end) {
    size_t bytes = 0;
    unsigned count = 0;
    char *image = container_of(texts, TEXTS, &bytes);
    for (size_t length = 0; length < bytes; length++) {
        container_try(image, length);
        if (length >= EI_NIDENT) {
            cr_assert(soft_container_sources(image, length, &count) == NULL, "%zu bytes", length);
        }
    }
    for (size_t at = 0; at < bytes; at++) {
        for (int bit = 0; bit < 8; bit++) {
            image[at] = (char)(image[at] ^ 1 << bit);
            container_try(image, bytes);
            image[at] = (char)(image[at] ^ 1 << bit);
        }
    }
    /* Each byte tells it from a cubin. */
    for (int at = 0; at < EI_NIDENT; at++) {
        image[at]++;
        cr_assert(!soft_container_is(image));
        image[at]--;
    }
    free(image);
}

static void container_run(CUmodule module) {
    CUfunction store = NULL;
    CUdeviceptr word = 0;
    OK(cuModuleGetFunction(&store, module, "store"));
    OK(cuMemAlloc_v2(&word, 4));
    void *arguments[] = {&word};
    OK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    cr_assert(api_read(word) == 7);
    OK(cuMemFree_v2(word));
}

/* A fat binary with the image in place of machine code for sm_80. */
static char *container_fatbin(const char *image, size_t bytes) {
    enum { HEADER = 16, ENTRY = 64, MACHINE = 2, ARCHITECTURE = 80 };
    const uint32_t magic = 0xba55ed50, entry_bytes = ENTRY;
    const uint16_t version = 1, header_bytes = HEADER, kind = MACHINE;
    const uint64_t whole = ENTRY + bytes;
    const uint32_t padded = (uint32_t)bytes, architecture = ARCHITECTURE;
    char *made = calloc(1, HEADER + ENTRY + bytes);
    cr_assert(made != NULL);
    memcpy(made, &magic, 4);
    memcpy(made + 4, &version, 2);
    memcpy(made + 6, &header_bytes, 2);
    memcpy(made + 8, &whole, 8);
    memcpy(made + HEADER, &kind, 2);
    memcpy(made + HEADER + 4, &entry_bytes, 4);
    memcpy(made + HEADER + 8, &padded, 4);
    memcpy(made + HEADER + 28, &architecture, 4);
    memcpy(made + HEADER + ENTRY, image, bytes);
    return made;
}

Test(container, the_device_loads_one_wherever_a_cubin_may_be) {
    static const char *const newer[] = {".version 9.9\n.target sm_70\n.address_size 64\n"
                                        ".visible .entry store() { ret; }\n"};
    size_t bytes = 0;
    CUmodule module = NULL;
    CUlibrary library = NULL;
    CUlinkState state = NULL;
    void *linked = NULL;
    api_context(0);
    char *image = container_of(&texts[2], 1, &bytes);
    char *fatbin = container_fatbin(image, bytes);
    const char *const images[] = {image, fatbin};
    for (int i = 0; i < 2; i++) {
        OK(cuModuleLoadData(&module, images[i]));
        container_run(module);
        OK(cuModuleUnload(module));
        OK(cuModuleLoadFatBinary(&module, images[i]));
        container_run(module);
        OK(cuLibraryLoadData(&library, images[i], NULL, NULL, 0, NULL, NULL, 0));
        OK(cuLibraryGetModule(&module, library));
        container_run(module);
        OK(cuLinkCreate_v2(0, NULL, NULL, &state));
        OK(cuLinkAddData_v2(state, i == 0 ? CU_JIT_INPUT_CUBIN : CU_JIT_INPUT_FATBINARY,
                            (void *)(uintptr_t)images[i], bytes + (i == 0 ? 0 : 80), NULL, 0, NULL,
                            NULL));
        OK(cuLinkComplete(state, &linked, NULL));
        OK(cuModuleLoadData(&module, linked));
        container_run(module);
        OK(cuLinkDestroy(state));
    }
    free(image);
    free(fatbin);
    /* A compiler's PTX may be newer than the driver, as machine code may; a program's may not. */
    image = container_of(newer, 1, &bytes);
    OK(cuModuleLoadData(&module, image));
    REFUSED(cuModuleLoadData(&module, newer[0]), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    free(image);
}

Test(container, a_damaged_one_is_refused_with_a_sentence) {
    size_t bytes = 0;
    char log[200] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module = NULL;
    api_context(0);
    char *image = container_of(&texts[2], 1, &bytes);
    char *fatbin = container_fatbin(image, bytes);
    image[18]++; /* the machine */
    REFUSED(cuModuleLoadDataEx(&module, image, 2, options, values), CUDA_ERROR_INVALID_IMAGE);
    cr_assert(strstr(log, "a container of Tollens, is damaged") != NULL, "%s", log);
    fatbin[80 + 18]++;
    log[0] = '\0';
    values[1] = (void *)sizeof log;
    REFUSED(cuModuleLoadDataEx(&module, fatbin, 2, options, values), CUDA_ERROR_INVALID_IMAGE);
    cr_assert(strstr(log, "a container of Tollens, is damaged") != NULL, "%s", log);
    free(image);
    free(fatbin);
}
