/*
 * Linking texts into one image. As in "Module Management" of the CUDA Driver API 13.0.
 *
 * Each text is parsed when it is added, so that its errors are reported there; completing the link
 * loads all of them once, which checks that they fit together.
 */
#include "state/contexts.h"
#include "export.h"
#include "base/file_text.h"
#include "state/handle_set.h"
#include "state/image.h"
#include "state/jit.h"
#include "base/options.h"
#include "lower/container.h"
#include "lower/device_runtime.h"
#include "lower/fatbin.h"
#include "lower/host_object.h"
#include "ptx/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct link {
    struct soft_jit jit; /* the options of cuLinkCreate, whose buffers must outlive this */
    struct soft_source *sources;
    unsigned count;
    void *image;       /* what was completed */
    bool is_toolchain; /* texts of compilers that make machine code elsewhere */
};

EXPORT(cuLinkCreate_v2,
       (unsigned int count, CUjit_option *options, void **values, CUlinkState *state)) {
    struct soft_context *context = NULL;
    struct soft_jit jit;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (state == NULL) return CUDA_ERROR_INVALID_VALUE;
    result = soft_jit_read(count, options, values, &jit);
    if (result != CUDA_SUCCESS) return result;
    struct link *link = calloc(1, sizeof *link);
    if (link == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    link->jit = jit;
    link->jit.is_part = true;
    pthread_mutex_lock(&soft_lock);
    bool added = soft_handle_add(SOFT_HANDLE_LINK, link);
    pthread_mutex_unlock(&soft_lock);
    if (!added) {
        free(link);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *state = (CUlinkState)link;
    return CUDA_SUCCESS;
}

static CUresult link_find(CUlinkState state, struct link **link) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_handle_is(SOFT_HANDLE_LINK, state);
    pthread_mutex_unlock(&soft_lock);
    *link = (struct link *)state;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Keeps a copy of a text, and of its name. */
static CUresult link_keep(struct link *link, const struct soft_source *source) {
    struct soft_source *more = realloc(link->sources, (link->count + 1) * sizeof *link->sources);
    if (more == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    link->sources = more;
    char *copy = calloc(1, source->length + 1);
    char *name = source->name != NULL ? strdup(source->name) : NULL;
    if (copy == NULL || (source->name != NULL && name == NULL)) {
        free(copy);
        free(name);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(copy, source->text, source->length);
    link->sources[link->count++] = (struct soft_source){.name = name,
                                                        .text = copy,
                                                        .length = source->length,
                                                        .linked = true,
                                                        .is_compiled = source->is_compiled,
                                                        .stands_in = source->stands_in};
    return CUDA_SUCCESS;
}

/* Reads a text for its errors alone. */
static CUresult link_check(const struct link *link, const struct soft_source *source) {
    struct soft_diagnostic *diagnostic = calloc(1, sizeof *diagnostic);
    struct soft_arena arena = {0};
    const struct ptx_shares alone = {NULL, 1};
    struct ptx_module ptx;
    if (diagnostic == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    diagnostic->name = source->name;
    diagnostic->text = source->text;
    diagnostic->length = source->length;
    diagnostic->takes_newer = source->is_compiled || source->stands_in;
    CUresult result = CUDA_SUCCESS;
    if (!ptx_read(diagnostic, &arena, &alone, &ptx)) {
        result = (CUresult)diagnostic->result;
        soft_jit_fail(&link->jit, diagnostic->message);
    }
    soft_arena_clear(&arena);
    free(diagnostic);
    return result;
}

static CUresult add_text(struct link *link, const char *text, size_t length, const char *name,
                         bool stands_in) {
    /* The size may include a NUL after the text. */
    const struct soft_source source = {.text = text, .length = strnlen(text, length)};
    char *copy = calloc(1, source.length + 1);
    if (copy == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(copy, source.text, source.length);
    const struct soft_source own = {.name = name,
                                    .text = copy,
                                    .length = source.length,
                                    .is_compiled = link->is_toolchain,
                                    .stands_in = stands_in};
    CUresult result = link_check(link, &own);
    if (result == CUDA_SUCCESS) result = link_keep(link, &own);
    free(copy);
    return result;
}

/* A container adds all its texts. */
static CUresult add_container(struct link *link, const void *image, size_t bytes) {
    unsigned count = 0;
    struct soft_source *sources = soft_container_sources(image, bytes, &count);
    if (sources == NULL) {
        soft_jit_fail(&link->jit, "the input, PTX in a container of Tollens, is damaged\n");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = link_keep(link, &sources[i]);
    }
    free(sources);
    return result;
}

/* The findings in a host object or an archive. */
struct objects {
    struct link *link;
    const char *name;
    unsigned found, added;
    bool is_device_runtime;
    char says[SOFT_FATBIN_SAYS], member[128]; /* of the first that has no PTX for this device */
};

static int link_add_object(void *data, const char *member, const void *image, size_t bytes) {
    struct objects *objects = data;
    char says[SOFT_FATBIN_SAYS], name[512];
    size_t length = 0;
    int result = CUDA_SUCCESS;
    bool stands_in = false;
    char *text = soft_fatbin_ptx(image, bytes, soft_options()->compute_capability, &length, &result,
                                 &stands_in, says);
    objects->found++;
    objects->is_device_runtime |= strcmp(member, SOFT_DEVICE_RUNTIME_MEMBER) == 0;
    if (text != NULL) {
        const char *file = objects->name != NULL ? objects->name : "input";
        snprintf(name, sizeof name, member[0] != '\0' ? "%s(%s)" : "%s", file, member);
        result = length > 0 && soft_container_is(text)
                     ? (int)add_container(objects->link, text, length)
                     : (int)add_text(objects->link, text, length, name, stands_in);
        objects->added++;
        free(text);
    } else if (result == CUDA_ERROR_NO_BINARY_FOR_GPU) {
        /* It may not be needed: completing the link reports missing symbols. */
        if (objects->says[0] == '\0') {
            memcpy(objects->says, says, sizeof says);
            snprintf(objects->member, sizeof objects->member, "%s", member);
        }
        result = CUDA_SUCCESS;
    } else {
        soft_jit_fail(&objects->link->jit, says);
    }
    return result;
}

/* The PTX of all fat binaries in it. */
static CUresult add_objects(struct link *link, const void *data, size_t bytes, const char *name) {
    struct objects objects = {.link = link, .name = name};
    char says[SOFT_FATBIN_SAYS + 200];
    CUresult result = (CUresult)soft_host_object_walk(data, bytes, link_add_object, &objects);
    if (result == CUDA_ERROR_INVALID_IMAGE && objects.found == 0) {
        soft_jit_fail(&link->jit, "the object or library is damaged or cut off\n");
    }
    if (result != CUDA_SUCCESS || objects.added > 0) return result;
    if (objects.is_device_runtime) {
        return add_text(link, soft_device_runtime, strlen(soft_device_runtime), name, false);
    }
    if (objects.found == 0) {
        snprintf(says, sizeof says, "the object or library has no device code\n");
    } else {
        snprintf(says, sizeof says, "%s%s%s", objects.member, objects.member[0] != '\0' ? ": " : "",
                 objects.says);
    }
    soft_jit_fail(&link->jit, says);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* The best PTX of a fat binary; objects and libraries may be one. */
static CUresult add_binary(struct link *link, const void *data, size_t bytes, const char *name) {
    enum { MAGIC_BYTES = 16 };
    struct soft_jit jit = link->jit;
    struct soft_source *sources = NULL;
    unsigned count = 0;
    if (bytes >= MAGIC_BYTES && soft_container_is(data)) return add_container(link, data, bytes);
    if (soft_host_object_is(data, bytes)) return add_objects(link, data, bytes, name);
    jit.image_bytes = bytes;
    const enum soft_image_kind kind =
        bytes >= MAGIC_BYTES ? soft_image_kind(data) : SOFT_IMAGE_NONE;
    if (kind != SOFT_IMAGE_FATBIN && kind != SOFT_IMAGE_CUBIN) {
        soft_jit_fail(&jit,
                      "the input is neither a fat binary nor a cubin, nor an object or a library "
                      "of a host compiler (ELF of 64 bits, ar)\n");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    CUresult result = soft_image_sources(data, &jit, &sources, &count);
    if (result == CUDA_SUCCESS) {
        for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
            result = add_text(link, sources[i].text, sources[i].length, name, sources[i].stands_in);
        }
    }
    free(sources);
    return result;
}

static CUresult link_add(struct link *link, CUjitInputType type, const void *data, size_t bytes,
                         const char *name) {
    switch (type) {
    case CU_JIT_INPUT_PTX:
        return add_text(link, data, bytes, name, false);
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_INPUT_FATBINARY:
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY:
        return add_binary(link, data, bytes, name);
    case CU_JIT_INPUT_NVVM:
        soft_jit_fail(&link->jit, "the input is LTO-IR (NVVM), which only NVIDIA's compiler reads; "
                                  "link PTX instead\n");
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The names of CUDA 5.5 take the same. */
EXPORT(cuLinkCreate,
       (unsigned int count, CUjit_option *options, void **values, CUlinkState *state)) {
    return soft_cuLinkCreate_v2(count, options, values, state);
}

/* Options of one input are checked; its logs are those of cuLinkCreate. */
static CUresult check_input(CUlinkState state, unsigned count, const CUjit_option *options,
                            void **values, struct link **link) {
    struct soft_jit jit;
    CUresult result = link_find(state, link);
    if (result == CUDA_SUCCESS) result = soft_jit_read(count, options, values, &jit);
    if (result == CUDA_SUCCESS && (*link)->image != NULL) result = CUDA_ERROR_INVALID_VALUE;
    return result;
}

EXPORT(cuLinkAddData_v2,
       (CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
        unsigned int count, CUjit_option *options, void **values)) {
    struct link *link = NULL;
    CUresult result = check_input(state, count, options, values, &link);
    if (result != CUDA_SUCCESS) return result;
    if (data == NULL || size == 0) return CUDA_ERROR_INVALID_VALUE;
    return link_add(link, type, data, size, name);
}

EXPORT(cuLinkAddFile_v2, (CUlinkState state, CUjitInputType type, const char *path,
                          unsigned int count, CUjit_option *options, void **values)) {
    struct link *link = NULL;
    char *text = NULL;
    CUresult result = check_input(state, count, options, values, &link);
    if (result != CUDA_SUCCESS) return result;
    if (path == NULL) return CUDA_ERROR_INVALID_VALUE;
    size_t bytes = 0;
    result = soft_file_text(path, &text, &bytes);
    if (result == CUDA_SUCCESS) result = link_add(link, type, text, bytes, path);
    free(text);
    return result;
}

EXPORT(cuLinkAddData,
       (CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
        unsigned int count, CUjit_option *options, void **values)) {
    return soft_cuLinkAddData_v2(state, type, data, size, name, count, options, values);
}

EXPORT(cuLinkAddFile, (CUlinkState state, CUjitInputType type, const char *path, unsigned int count,
                       CUjit_option *options, void **values)) {
    return soft_cuLinkAddFile_v2(state, type, path, count, options, values);
}

static CUresult link_complete(struct link *link, void **image, size_t *size) {
    struct soft_module *module = NULL;
    const struct soft_reach nowhere = {.device = 0, .slot = SOFT_SLOT_NONE};
    if (image == NULL || link->count == 0 || link->image != NULL) return CUDA_ERROR_INVALID_VALUE;
    struct soft_jit whole = link->jit;
    whole.is_part = false;
    CUresult result = soft_jit_load(link->sources, link->count, &nowhere, &whole, &module);
    if (result != CUDA_SUCCESS) return result;
    soft_module_release(module);
    size_t bytes = 0;
    const unsigned capability = (unsigned)soft_options()->compute_capability;
    link->image = soft_container_make(link->sources, link->count, capability, &bytes);
    if (link->image == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *image = link->image;
    if (size != NULL) *size = bytes;
    return CUDA_SUCCESS;
}

EXPORT(cuLinkComplete, (CUlinkState state, void **image, size_t *size)) {
    struct link *link = NULL;
    const CUresult result = link_find(state, &link);
    return result == CUDA_SUCCESS ? link_complete(link, image, size) : result;
}

static void link_free(struct link *link) {
    for (unsigned i = 0; i < link->count; i++) {
        free((char *)(uintptr_t)link->sources[i].name);
        free((char *)(uintptr_t)link->sources[i].text);
    }
    free(link->sources);
    free(link->image);
    free(link);
}

EXPORT(cuLinkDestroy, (CUlinkState state)) {
    struct link *link = NULL;
    CUresult result = link_find(state, &link);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    soft_handle_remove(SOFT_HANDLE_LINK, link);
    pthread_mutex_unlock(&soft_lock);
    link_free(link);
    return CUDA_SUCCESS;
}

/* ---- for the nvJitLink of runtime/soft/toolchain, which has no context and no handles ------- */

/* A link whose errors go to a log that outlives it; NULL without memory. */
SOFT_VISIBLE void *tollens_soft_link_create(char *log, size_t bytes);
void *tollens_soft_link_create(char *log, size_t bytes) {
    /* The texts' variables are placed, perhaps before cuInit. */
    struct link *link = soft_space_open() ? calloc(1, sizeof *link) : NULL;
    if (link == NULL) return NULL;
    link->is_toolchain = true;
    link->jit = (struct soft_jit){.image_bytes = SIZE_MAX, .is_part = true};
    link->jit.errors = (struct soft_jit_log){.buffer = log, .bytes = bytes};
    return link;
}

/* Adds a CUjitInputType, and returns a CUresult; the data is copied. */
SOFT_VISIBLE int tollens_soft_link_add(void *link, int type, const void *data, size_t bytes,
                                       const char *name);
int tollens_soft_link_add(void *link, int type, const void *data, size_t bytes, const char *name) {
    return (int)link_add(link, (CUjitInputType)type, data, bytes, name);
}

/* The container, which the link owns. Returns a CUresult. */
SOFT_VISIBLE int tollens_soft_link_complete(void *link, void **image, size_t *bytes);
int tollens_soft_link_complete(void *link, void **image, size_t *bytes) {
    return (int)link_complete(link, image, bytes);
}

SOFT_VISIBLE void tollens_soft_link_free(void *link);
void tollens_soft_link_free(void *link) {
    link_free(link);
}
