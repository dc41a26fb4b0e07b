/*
 * Telling images apart, and loading them.
 */
#include "image.h"

#include "handle_set.h"
#include "base/options.h"
#include "base/report.h"
#include "lower/container.h"
#include "lower/fatbin.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Whether a text begins as PTX may: with a directive, a comment or a line of the preprocessor. The
 * reader reports later errors; for other texts a driver says only that they are no image.
 */
static bool begins_as_ptx(const char *text) {
    text += strspn(text, " \t\r\n\v\f");
    return *text == '.' || *text == '/' || *text == '#';
}

enum soft_image_kind soft_image_kind(const void *image) {
    static const unsigned char elf[4] = {0x7f, 'E', 'L', 'F'};
    const unsigned char *bytes = image;
    if (soft_container_is(image)) return SOFT_IMAGE_CONTAINER;
    if (soft_fatbin_is(image)) return SOFT_IMAGE_FATBIN;
    /* Text shorter than four bytes ends before the comparison does. */
    int i = 0;
    while (i < 4 && bytes[i] == elf[i]) i++;
    if (i < 4) return begins_as_ptx(image) ? SOFT_IMAGE_TEXT : SOFT_IMAGE_NONE;
    /* An ELF header continues with its class, 64 bits, and the byte order, little-endian. */
    return bytes[4] == 2 && bytes[5] == 1 ? SOFT_IMAGE_CUBIN : SOFT_IMAGE_NONE;
}

/* Adds a module to its context's list and registers its handles. */
static bool image_add_handles(struct soft_context *context, struct soft_module *module) {
    bool ok = soft_handle_add(SOFT_HANDLE_MODULE, module);
    for (struct soft_function *f = module->functions; f != NULL && ok; f = f->next) {
        ok = soft_handle_add(SOFT_HANDLE_FUNCTION, f);
    }
    if (ok) {
        module->next = context->modules;
        context->modules = module;
    }
    return ok;
}

static void image_remove_handles(struct soft_module *module) {
    soft_handle_remove(SOFT_HANDLE_MODULE, module);
    for (struct soft_function *f = module->functions; f != NULL; f = f->next) {
        soft_handle_remove(SOFT_HANDLE_FUNCTION, f);
    }
}

/* A cubin is an ELF file, whose header may be truncated. */
static CUresult refuse_cubin(const void *image, const struct soft_jit *jit) {
    char says[SOFT_FATBIN_SAYS];
    if (jit->image_bytes < SOFT_CUBIN_BYTES) {
        soft_jit_fail(jit, "the image is a cubin that is cut off\n");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    soft_fatbin_refuse_cubin(image, says);
    soft_jit_fail(jit, says);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

static CUresult container_sources(const void *image, size_t most, const struct soft_jit *jit,
                                  struct soft_source **sources, unsigned *count) {
    *sources = soft_container_sources(image, most, count);
    if (*sources != NULL) return CUDA_SUCCESS;
    soft_jit_fail(jit, "the image, PTX in a container of Tollens, is damaged or cut off\n");
    return CUDA_ERROR_INVALID_IMAGE;
}

/* The sources and their texts are one allocation, so that one free releases both. */
static CUresult fatbin_sources(const void *image, const struct soft_jit *jit,
                               struct soft_source **sources, unsigned *count) {
    static atomic_bool told;
    char says[SOFT_FATBIN_SAYS];
    size_t length = 0;
    int result = CUDA_SUCCESS;
    bool stands_in = false;
    const int capability = soft_options()->compute_capability;
    char *text =
        soft_fatbin_ptx(image, jit->image_bytes, capability, &length, &result, &stands_in, says);
    if (text == NULL) {
        soft_jit_fail(jit, says);
        return (CUresult)result;
    }
    if (stands_in && !atomic_exchange(&told, true)) soft_log_print(says);
    result = CUDA_SUCCESS;
    const struct soft_source plain = {
        .name = jit->name, .text = text, .length = length, .stands_in = stands_in};
    struct soft_source *inner = NULL;
    if (length > 0 && soft_container_is(text)) {
        result = (int)container_sources(text, length, jit, &inner, count);
    }
    if (result == CUDA_SUCCESS) {
        *sources = malloc(*count * sizeof **sources + length + 1);
        if (*sources == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        char *copy = (char *)(*sources + *count);
        memcpy(copy, text, length + 1);
        for (unsigned i = 0; i < *count; i++) {
            (*sources)[i] = inner != NULL ? inner[i] : plain;
            (*sources)[i].text = copy + ((*sources)[i].text - text);
        }
    }
    free(inner);
    free(text);
    return (CUresult)result;
}

CUresult soft_image_sources(const void *image, const struct soft_jit *jit,
                            struct soft_source **sources, unsigned *count) {
    *sources = NULL;
    *count = 1;
    switch (soft_image_kind(image)) {
    case SOFT_IMAGE_CUBIN:
        return refuse_cubin(image, jit);
    case SOFT_IMAGE_FATBIN:
        return fatbin_sources(image, jit, sources, count);
    case SOFT_IMAGE_NONE:
        soft_jit_fail(jit, "the image is not PTX, which begins with a directive or a comment\n");
        return CUDA_ERROR_INVALID_IMAGE;
    case SOFT_IMAGE_CONTAINER:
        return container_sources(image, jit->image_bytes, jit, sources, count);
    default:
        *sources = malloc(sizeof **sources);
        if (*sources == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
        **sources = (struct soft_source){.name = jit->name, .text = image, .length = strlen(image)};
        return CUDA_SUCCESS;
    }
}

CUresult soft_image_load(struct soft_context *context, const void *image,
                         const struct soft_jit *jit, struct soft_module **result) {
    struct soft_source *sources = NULL;
    struct soft_module *module = NULL;
    unsigned count = 0;
    CUresult loaded = soft_image_sources(image, jit, &sources, &count);
    if (loaded == CUDA_SUCCESS) {
        loaded = soft_jit_load(sources, count, &context->reach, jit, &module);
    }
    free(sources);
    if (loaded != CUDA_SUCCESS) return loaded;
    pthread_mutex_lock(&soft_lock);
    bool added = image_add_handles(context, module);
    if (!added) image_remove_handles(module);
    pthread_mutex_unlock(&soft_lock);
    if (!added) {
        soft_module_release(module);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *result = module;
    return CUDA_SUCCESS;
}

void soft_image_unload(struct soft_context *context, struct soft_module *module) {
    pthread_mutex_lock(&soft_lock);
    struct soft_module **link = &context->modules;
    while (*link != NULL && *link != module) link = &(*link)->next;
    if (*link == module) *link = module->next;
    image_remove_handles(module);
    pthread_mutex_unlock(&soft_lock);
    /* Unfinished launches hold their own references. */
    soft_module_release(module);
}
