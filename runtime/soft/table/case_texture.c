/*
 * An instruction on a texture or a surface: each thread executes it once, at its own place.
 */
#include "case_texture.h"

#include "table_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the kernel ---- */

static void case_texture_put_vector(struct table_text *text, const char *name, unsigned count) {
    if (count == 1) {
        table_put(text, "%%%s0", name);
        return;
    }
    table_put(text, "{");
    for (unsigned i = 0; i < count; i++) table_put(text, "%s%%%s%u", i > 0 ? ", " : "", name, i);
    table_put(text, "}");
}

/* {layer, x}, {x, y}, {x, y, z, z}, ... */
static void case_texture_put_place(struct table_text *text, const struct texture *t) {
    unsigned count = t->coordinates;
    table_put(text, "[%%object, ");
    if (count == 1) {
        table_put(text, "{%%c0}");
    } else {
        table_put(text, "{");
        for (unsigned i = 0; i < (count == 3 ? 4 : count); i++) {
            table_put(text, "%s%%c%u", i > 0 ? ", " : "", i < count ? i : count - 1);
        }
        table_put(text, "}");
    }
    table_put(text, "]");
}

static bool is_wide(const struct texture *t) {
    return strcmp(t->type + 1, "64") == 0;
}

/* The registers hold what the type says; a byte is in one of 16 bits. */
static const char *case_texture_register_of(const struct texture *t) {
    return strcmp(t->type, "b8") == 0 || strcmp(t->type, "b16") == 0 ? "b16"
           : is_wide(t)                                              ? "b64"
                                                                     : "b32";
}

static char *case_texture_write_kernel(const struct texture *t, const char *spelling) {
    struct table_text text = {0};
    const char *kind = case_texture_register_of(t);
    table_put(&text,
              ".version 8.6\n.target sm_90\n.address_size 64\n"
              ".visible .entry k(.param .u64 data)\n{\n"
              ".reg .u64 %%data, %%object, %%p, %%wide;\n.reg .u32 %%me, %%n, %%b;\n"
              ".reg .b32 %%c<8>;\n.reg .%s %%r<4>;\n.reg .pred %%out;\n"
              "ld.param.u64 %%data, [data];\ncvta.to.global.u64 %%data, %%data;\n"
              "mov.u32 %%me, %%tid.x;\nmov.u32 %%b, %%ctaid.x;\nmad.lo.u32 %%me, %%b, 64, %%me;\n"
              "ld.global.u32 %%b, [%%data+12];\nadd.u32 %%me, %%me, %%b;\n"
              "ld.global.u32 %%n, [%%data+8];\nsetp.ge.u32 %%out, %%me, %%n;\n@%%out ret;\n"
              "ld.global.u64 %%object, [%%data];\nmad.wide.u32 %%p, %%me, 96, %%data;\n",
              kind);
    for (unsigned i = 0; i < COORDINATES; i++) {
        table_put(&text, "ld.global.b32 %%c%u, [%%p+%u];\n", i, 96 + 4 * i);
    }
    for (unsigned i = 0; i < RESULTS; i++) {
        table_put(&text, "ld.global.%s %%r%u, [%%p+%u];\n", kind, i, 128 + 8 * i);
    }
    table_put(&text, "%s ", spelling);
    bool stores = strcmp(t->name, "sust") == 0 || strcmp(t->name, "sured") == 0;
    if (stores) {
        case_texture_put_place(&text, t);
        table_put(&text, ", ");
        case_texture_put_vector(&text, "r", t->results);
    } else if (t->name[strlen(t->name) - 1] == 'q') {
        table_put(&text, "%%r0, [%%object]");
    } else {
        case_texture_put_vector(&text, "r", t->results);
        table_put(&text, ", ");
        case_texture_put_place(&text, t);
        if (strstr(spelling, ".level.") != NULL) table_put(&text, ", %%c%u", t->coordinates);
    }
    table_put(&text, ";\n");
    for (unsigned i = 0; i < RESULTS; i++) {
        table_put(&text, "cvt.u64.%c%s %%wide, %%r%u;\nst.global.u64 [%%p+%u], %%wide;\n", 'u',
                  kind + 1, i, 160 + 8 * i);
    }
    table_put(&text, "ret;\n}\n");
    return table_text_end(&text);
}

/* ---- objects ---- */

struct made {
    CUarray array;
    CUmipmappedArray levels;
    CUdeviceptr memory;
    uint64_t object;
    bool is_surface;
};

static CUresult copy_array(struct case_device *device, struct texture *t, CUarray array, bool in,
                           uint8_t *bytes) {
    CUDA_MEMCPY3D copy = {
        .WidthInBytes = row_bytes(t),
        .Height = t->size[1] > 0 ? t->size[1] : 1,
        .Depth = t->size[2] > 0 ? t->size[2] : 1,
    };
    copy.srcPitch = copy.dstPitch = row_bytes(t);
    copy.srcHeight = copy.dstHeight = copy.Height;
    copy.srcMemoryType = in ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
    copy.dstMemoryType = in ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
    if (in) {
        copy.srcHost = bytes;
        copy.dstArray = array;
    } else {
        copy.srcArray = array;
        copy.dstHost = bytes;
    }
    return device->cuMemcpy3D_v2(&copy);
}

/* Each level has half the width and height of the one before. */
static bool make_levels(struct case_device *device, struct case_line *line, struct texture *t,
                        struct made *made, const CUDA_ARRAY3D_DESCRIPTOR *how, unsigned levels,
                        CUDA_RESOURCE_DESC *resource) {
    const size_t width = t->size[0], height = t->size[1];
    CUresult code = device->cuMipmappedArrayCreate(&made->levels, how, levels);
    if (code != CUDA_SUCCESS) return case_fail(line, "levels", code);
    for (unsigned i = 0; i < levels && code == CUDA_SUCCESS; i++) {
        CUarray level = NULL;
        t->size[0] = width >> i > 0 ? width >> i : 1;
        t->size[1] = height >> i > 0 || height == 0 ? height >> i : 1;
        case_texture_fill(line, t, i);
        code = device->cuMipmappedArrayGetLevel(&level, made->levels, i);
        if (code == CUDA_SUCCESS) code = copy_array(device, t, level, true, t->texels);
    }
    t->size[0] = width;
    t->size[1] = height;
    resource->res.mipmap.hMipmappedArray = made->levels;
    return code == CUDA_SUCCESS || case_fail(line, "level", code);
}

static bool make_array(struct case_device *device, struct case_line *line, struct texture *t,
                       struct made *made, CUDA_RESOURCE_DESC *resource) {
    CUDA_ARRAY3D_DESCRIPTOR how = {.Width = t->size[0],
                                   .Height = t->size[1],
                                   .Depth = t->size[2],
                                   .Format = t->format->number,
                                   .NumChannels = t->channels};
    if (t->layered) how.Flags |= CUDA_ARRAY3D_LAYERED;
    if (t->cube) how.Flags |= CUDA_ARRAY3D_CUBEMAP;
    if (made->is_surface) how.Flags |= CUDA_ARRAY3D_SURFACE_LDST;
    if (strcmp(t->name, "tld4") == 0) how.Flags |= CUDA_ARRAY3D_TEXTURE_GATHER;
    long long levels = 0;
    if (case_numbers(case_value(line, "levels"), &levels, 1) > 0) {
        resource->resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
        return make_levels(device, line, t, made, &how, (unsigned)levels, resource);
    }
    CUresult code = device->cuArray3DCreate_v2(&made->array, &how);
    if (code != CUDA_SUCCESS) return case_fail(line, "array", code);
    code = copy_array(device, t, made->array, true, t->texels);
    if (code != CUDA_SUCCESS) return case_fail(line, "copy to array", code);
    resource->resType = CU_RESOURCE_TYPE_ARRAY;
    resource->res.array.hArray = made->array;
    return true;
}

static bool case_texture_make_memory(struct case_device *device, struct case_line *line,
                                     struct texture *t, struct made *made,
                                     CUDA_RESOURCE_DESC *resource) {
    struct table_device *driver = &device->driver;
    CUresult code = driver->cuMemAlloc_v2(&made->memory, ARRAY_MAX);
    size_t pitch = t->pitched ? PITCH : row_bytes(t);
    for (size_t i = 0; i < rows_of(t) && code == CUDA_SUCCESS; i++) {
        code = driver->cuMemcpyHtoD_v2(made->memory + i * pitch, t->texels + i * row_bytes(t),
                                       row_bytes(t));
    }
    if (code != CUDA_SUCCESS) return case_fail(line, "copy to memory", code);
    if (t->pitched) {
        resource->resType = CU_RESOURCE_TYPE_PITCH2D;
        resource->res.pitch2D.devPtr = made->memory;
        resource->res.pitch2D.format = t->format->number;
        resource->res.pitch2D.numChannels = t->channels;
        resource->res.pitch2D.width = t->size[0];
        resource->res.pitch2D.height = t->size[1];
        resource->res.pitch2D.pitchInBytes = PITCH;
    } else {
        resource->resType = CU_RESOURCE_TYPE_LINEAR;
        resource->res.linear.devPtr = made->memory;
        resource->res.linear.format = t->format->number;
        resource->res.linear.numChannels = t->channels;
        resource->res.linear.sizeInBytes = row_bytes(t);
    }
    return true;
}

static int case_texture_mode_of(const char *name, size_t length) {
    static const char *const modes[] = {"wrap", "clamp", "mirror", "border"};
    for (int i = 0; i < 4; i++) {
        if (strlen(modes[i]) == length && strncmp(name, modes[i], length) == 0) return i;
    }
    return CU_TR_ADDRESS_MODE_CLAMP;
}

static bool case_texture_make(struct case_device *device, struct case_line *line, struct texture *t,
                              struct made *made) {
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC how;
    memset(&resource, 0, sizeof resource);
    memset(&how, 0, sizeof how);
    made->is_surface = strncmp(t->name, "su", 2) == 0;
    t->in_memory = case_has(line, "memory");
    t->pitched = case_has(line, "pitched");
    bool ok = t->in_memory || t->pitched
                  ? case_texture_make_memory(device, line, t, made, &resource)
                  : make_array(device, line, t, made, &resource);
    if (!ok) return false;
    CUsurfObject object = 0;
    CUresult code;
    if (made->is_surface) {
        code = device->cuSurfObjectCreate(&object, &resource);
        made->object = object;
        return code == CUDA_SUCCESS || case_fail(line, "surface", code);
    }
    const char *modes = case_value(line, "mode");
    for (int i = 0; i < 3; i++) {
        size_t length = modes != NULL ? strcspn(modes, ",") : 0;
        how.addressMode[i] =
            case_texture_mode_of(modes != NULL ? modes : "clamp", modes != NULL ? length : 5);
        if (modes != NULL && modes[length] == ',') modes += length + 1;
    }
    how.filterMode = case_has(line, "linear") ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT;
    if (case_has(line, "normalized")) how.flags |= CU_TRSF_NORMALIZED_COORDINATES;
    if (case_has(line, "integer")) how.flags |= CU_TRSF_READ_AS_INTEGER;
    if (case_has(line, "srgb")) how.flags |= CU_TRSF_SRGB;
    if (case_has(line, "seamless")) how.flags |= CU_TRSF_SEAMLESS_CUBEMAP;
    if (case_has(line, "untrimmed")) how.flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
    if (case_has(line, "mixes")) how.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
    if (made->levels != NULL) how.maxMipmapLevelClamp = 100;
    for (int i = 0; i < 4; i++) how.borderColor[i] = 0.25f + (float)i;
    code = device->cuTexObjectCreate(&object, &resource, &how, NULL);
    made->object = object;
    return code == CUDA_SUCCESS || case_fail(line, "texture", code);
}

static void case_texture_unmake(struct case_device *device, const struct made *made) {
    if (made->object != 0 && made->is_surface) device->cuSurfObjectDestroy(made->object);
    if (made->object != 0 && !made->is_surface) device->cuTexObjectDestroy(made->object);
    if (made->levels != NULL) device->cuMipmappedArrayDestroy(made->levels);
    if (made->array != NULL) device->cuArrayDestroy(made->array);
    if (made->memory != 0) device->driver.cuMemFree_v2(made->memory);
}

/* ---- running ---- */

/* A thread's part of the data: 96 bytes. */
struct thread {
    uint32_t place[COORDINATES];
    uint64_t values[RESULTS], results[RESULTS];
};

static void say_results(struct case_line *line, const struct texture *t,
                        const struct thread *threads) {
    /* Only the differences between threads are printed: repeated results appear once. */
    int digits = is_wide(t) ? 16 : 8;
    unsigned same = 0;
    for (unsigned i = 0; i < t->threads; i++) {
        const uint64_t *results = threads[i].results;
        bool again =
            i > 0 && memcmp(results, threads[i - 1].results, sizeof threads[i].results) == 0;
        if (again) {
            same++;
            continue;
        }
        if (same > 0) case_say(line, "*%u", same + 1);
        same = 0;
        for (unsigned r = 0; r < t->results; r++) {
            uint64_t mask = digits == 16 ? ~0ull : 0xffffffffu;
            uint64_t value = results[r] & mask;
            if (value == 0) {
                case_say(line, "%c0", r == 0 ? ' ' : ',');
            } else {
                case_say(line, "%c%0*llx", r == 0 ? ' ' : ',', digits, (unsigned long long)value);
            }
        }
    }
    if (same > 0) case_say(line, "*%u", same + 1);
}

static void say_array(struct case_line *line, const struct texture *t) {
    size_t bytes = row_bytes(t) * rows_of(t), each = texel_bytes(t);
    for (size_t i = 0; i < bytes; i += each) {
        if (memcmp(t->texels + i, t->after + i, each) == 0) continue;
        case_say(line, " @%zu ", i / each);
        for (size_t k = 0; k < each; k++) {
            if (k > 0 && k % t->format->bytes == 0) case_say(line, ",");
            size_t at = k / t->format->bytes * t->format->bytes + t->format->bytes - 1 -
                        k % t->format->bytes;
            case_say(line, "%02x", t->after[i + at]);
        }
    }
    if (line->length == 0) case_say(line, "nothing written");
}

static void case_texture_run(struct case_device *device, struct case_line *line, struct texture *t,
                             const struct made *made, CUfunction function) {
    static struct {
        uint64_t object;
        uint32_t count, first, unused[20];
        struct thread threads[THREADS_MAX];
    } data;
    _Static_assert(offsetof(__typeof__(data), threads) == 96 && sizeof(struct thread) == 96,
                   "the kernels use these offsets");
    struct table_device *driver = &device->driver;
    CUdeviceptr memory = 0;
    data.object = made->object;
    data.count = t->threads;
    for (unsigned i = 0; i < t->threads; i++) {
        memcpy(data.threads[i].place, t->place[i], sizeof t->place[i]);
        memcpy(data.threads[i].values, t->values[i], sizeof t->values[i]);
        memset(data.threads[i].results, 0, sizeof data.threads[i].results);
    }
    CUresult code = driver->cuMemAlloc_v2(&memory, sizeof data);
    if (code == CUDA_SUCCESS) code = driver->cuMemcpyHtoD_v2(memory, &data, sizeof data);
    if (code != CUDA_SUCCESS) {
        case_fail(line, "copy", code);
        return;
    }
    /* Stores to one place must happen in order. */
    bool stores = strcmp(t->name, "sust") == 0;
    for (uint32_t i = 0; i < (stores ? t->threads : 1); i++) {
        unsigned blocks = stores ? 1 : (t->threads + 63) / 64;
        code = driver->cuMemcpyHtoD_v2(memory + 12, &i, sizeof i);
        if (code != CUDA_SUCCESS) {
            case_fail(line, "copy", code);
            return;
        }
        if (!case_launch(device, line, function, blocks, stores ? 1 : 64, 0, memory, NULL)) {
            return;
        }
    }
    code = driver->cuMemcpyDtoH_v2(&data, memory, sizeof data);
    driver->cuMemFree_v2(memory);
    if (code != CUDA_SUCCESS) {
        case_fail(line, "copy back", code);
        return;
    }
    if (strcmp(t->name, "sust") == 0 || strcmp(t->name, "sured") == 0) {
        code = copy_array(device, t, made->array, false, t->after);
        if (code != CUDA_SUCCESS) {
            case_fail(line, "copy from array", code);
            return;
        }
        say_array(line, t);
        return;
    }
    say_results(line, t, data.threads);
}

void case_texture(struct case_device *device, struct case_line *line) {
    static struct texture texture;
    struct made made = {0};
    if (!case_texture_read(line, &texture)) {
        case_say(line, "not a case");
        return;
    }
    char *text = case_texture_write_kernel(&texture, line->word[0]);
    CUfunction function = case_load(device, line, text);
    free(text);
    if (function != NULL && case_texture_make(device, line, &texture, &made)) {
        case_texture_run(device, line, &texture, &made, function);
    }
    if (!line->lost) case_texture_unmake(device, &made);
}
