/*
 * A copy of a TMA box. The copied numbers identify their source elements, so the result shows the
 * origin of each element.
 */
#include "case_value.h"
#include "table_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The memory, the tensor's offset in it, and how many bytes after a box are compared. */
enum { MEMORY = 1 << 18, BASE = 1 << 16, GUARD = 128, SHARED_MAX = 220 << 10 };
enum { UNTOUCHED = 0xfe, THREADS = 128, RANK_MAX = 5 };

/* What the kernels read: numbers of bytes are known to them. */
struct data {
    uint8_t unused0[128];
    int32_t at[5];
    uint32_t offset[3];
    uint32_t bytes, barrier; /* of shared memory that is filled and read; where the barrier is */
    uint32_t expected, unused;
    uint64_t from, to; /* of shared memory */
    uint32_t done, unused2;
    uint64_t state; /* of the barrier at last */
};
_Static_assert(offsetof(struct data, at) == 128 && offsetof(struct data, bytes) == 160 &&
                   offsetof(struct data, from) == 176 && offsetof(struct data, done) == 192,
               "the kernels use these offsets");

struct box {
    const struct case_type *type;
    unsigned rank, shared, bytes; /* allocated; of the box */
    bool out, im2col, prefetches, reduces;
    cuuint64_t size[RANK_MAX], stride[RANK_MAX];
    cuuint32_t box[RANK_MAX], step[RANK_MAX];
    int lower[3], upper[3], swizzle, interleave, fill;
    cuuint32_t channels, pixels;
    struct data data;
    CUtensorMap map; /* a parameter of the kernel, since a driver may cache those in memory */
};

static void numbers_of(const struct case_line *line, const char *key, long long *to, unsigned most,
                       long long otherwise) {
    const char *text = case_value(line, key);
    unsigned count = case_numbers(text, to, most);
    for (unsigned i = count; i < most; i++) to[i] = otherwise;
}

static long long case_box_number_of(const struct case_line *line, const char *key,
                                    long long otherwise) {
    long long found = otherwise;
    numbers_of(line, key, &found, 1, otherwise);
    return found;
}

static bool case_box_read_box(const struct case_line *line, struct box *box) {
    long long size[RANK_MAX], stride[RANK_MAX], extent[RANK_MAX], step[RANK_MAX], at[RANK_MAX];
    long long offset[3], lower[3], upper[3];
    memset(box, 0, sizeof *box);
    box->type = case_type_of(line->word[1]);
    box->rank = (unsigned)strtoul(line->word[2], NULL, 10);
    if (box->type == NULL || box->rank < 1 || box->rank > RANK_MAX) return false;
    box->out = line->word[0][0] == 's' || line->word[0][0] == 'r';
    box->reduces = line->word[0][0] == 'r';
    box->prefetches = line->word[0][0] == 'p';
    box->im2col = case_has(line, "im2col");
    numbers_of(line, "size", size, RANK_MAX, 1);
    numbers_of(line, "stride", stride, RANK_MAX, -1);
    numbers_of(line, "box", extent, RANK_MAX, 1);
    numbers_of(line, "step", step, RANK_MAX, 1);
    numbers_of(line, "at", at, RANK_MAX, 0);
    numbers_of(line, "offset", offset, 3, 0);
    numbers_of(line, "lower", lower, 3, 0);
    numbers_of(line, "upper", upper, 3, 0);
    long long next = (size[0] * box->type->bytes + 15) / 16 * 16;
    uint64_t elements = 1, slices = 1;
    for (unsigned i = 0; i < box->rank; i++) {
        box->size[i] = (cuuint64_t)size[i];
        if (i + 1 < box->rank) {
            box->stride[i] = (cuuint64_t)(stride[i] >= 0 ? stride[i] : next);
            next = (long long)box->stride[i] * size[i + 1];
        }
        box->box[i] = (cuuint32_t)extent[i];
        box->step[i] = (cuuint32_t)step[i];
        box->data.at[i] = (int32_t)at[i];
        bool steps = !box->im2col && step[i] > 0 && (i > 0 || case_value(line, "interleave"));
        uint64_t taken = (uint64_t)(steps ? (extent[i] + step[i] - 1) / step[i] : extent[i]);
        elements *= taken;
        if (i + 2 != box->rank) slices *= taken;
    }
    for (unsigned i = 0; i < 3; i++) {
        box->data.offset[i] = (uint32_t)offset[i];
        box->lower[i] = (int)lower[i];
        box->upper[i] = (int)upper[i];
    }
    box->channels = (cuuint32_t)case_box_number_of(line, "channels", 1);
    box->pixels = (cuuint32_t)case_box_number_of(line, "pixels", 1);
    if (box->im2col) {
        elements = (uint64_t)box->channels * box->pixels;
        slices = box->pixels;
    }
    box->swizzle = (int)case_box_number_of(line, "swizzle", 0);
    box->interleave = (int)case_box_number_of(line, "interleave", 0);
    box->fill = (int)case_box_number_of(line, "fill", 0);
    box->bytes = (unsigned)(elements * box->type->bytes);
    /* Enough for many slices, because their layout was unknown when the record was made. */
    unsigned guard = box->interleave != 0 ? 1 << 15 : GUARD;
    box->shared =
        (unsigned)case_box_number_of(line, "shared", (box->bytes + 127) / 128 * 128 + guard);
    unsigned all =
        box->interleave != 0 ? (unsigned)slices * 16 * (unsigned)box->interleave : box->bytes;
    box->data.expected = (uint32_t)case_box_number_of(line, "expect", all);
    return true;
}

static CUresult case_box_encode(struct case_device *device, struct box *box, CUdeviceptr tensor) {
    void *address = (void *)(uintptr_t)tensor;
    CUtensorMap *map = &box->map;
    if (!box->im2col) {
        return device->driver.cuTensorMapEncodeTiled(map, box->type->number, box->rank, address,
                                                     box->size, box->stride, box->box, box->step,
                                                     box->interleave, box->swizzle, 0, box->fill);
    }
    return device->cuTensorMapEncodeIm2col(
        map, box->type->number, box->rank, address, box->size, box->stride, box->lower, box->upper,
        box->channels, box->pixels, box->step, box->interleave, box->swizzle, 0, box->fill);
}

/* ---- the kernel ---- */

static void case_box_put_place(struct table_text *text, const struct box *box) {
    table_put(text, "[%%map, {");
    for (unsigned i = 0; i < box->rank; i++) table_put(text, "%s%%c%u", i > 0 ? ", " : "", i);
    table_put(text, "}]");
}

static void put_offsets(struct table_text *text, const struct box *box) {
    if (!box->im2col) return;
    table_put(text, ", {");
    for (unsigned i = 0; i + 2 < box->rank; i++) table_put(text, "%s%%o%u", i > 0 ? ", " : "", i);
    table_put(text, "}");
}

static void put_copy(struct table_text *text, const struct box *box, const char *operation) {
    const char *kind = box->im2col ? "im2col" : "tile";
    if (box->prefetches) {
        table_put(text, "@%%first cp.async.bulk.prefetch.tensor.%ud.L2.global.%s ", box->rank,
                  kind);
        case_box_put_place(text, box);
        put_offsets(text, box);
        table_put(text, ";\n");
        return;
    }
    if (box->out) {
        const char *dot = strchr(operation, '.');
        if (box->im2col) kind = "im2col_no_offs";
        if (box->reduces) {
            table_put(
                text,
                "@%%first cp.reduce.async.bulk.tensor.%ud.global.shared::cta%s.%s.bulk_group ",
                box->rank, dot != NULL ? dot : ".add", kind);
        } else {
            table_put(text, "@%%first cp.async.bulk.tensor.%ud.global.shared::cta.%s.bulk_group ",
                      box->rank, kind);
        }
        case_box_put_place(text, box);
        table_put(text, ", [%%box];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n");
        table_put(text, "mov.u32 %%got, 1;\n");
        return;
    }
    table_put(text,
              "@%%first mbarrier.arrive.expect_tx.shared.b64 _, [%%bar], %%tx;\n"
              "@%%first cp.async.bulk.tensor.%ud.shared::cluster.global.%s."
              "mbarrier::complete_tx::bytes [%%box], ",
              box->rank, kind);
    case_box_put_place(text, box);
    table_put(text, ", [%%bar]");
    put_offsets(text, box);
    /* The wait must end if another number of bytes arrives than expected. */
    table_put(text, ";\nmov.u32 %%turn, 0;\n"
                    "WAIT: mbarrier.test_wait.parity.shared.b64 %%p, [%%bar], 0;\n"
                    "@%%p bra CAME;\nadd.u32 %%turn, %%turn, 1;\nsetp.lt.u32 %%p, %%turn, 20000;\n"
                    "@%%p bra WAIT;\nmov.u32 %%got, 0;\nbra OVER;\n"
                    "CAME: mov.u32 %%got, 1;\nOVER:\n");
}

/* Shared memory is filled from memory, the copy is made, and shared memory is written to memory. */
static char *case_box_write_kernel(const struct box *box, const char *operation) {
    struct table_text text = {0};
    table_put(&text, ".version 8.6\n.target sm_90\n.address_size 64\n"
                     ".extern .shared .align 1024 .b8 all[];\n"
                     ".visible .entry k(.param .u64 data, .param .align 64 .b8 map[128])\n{\n"
                     ".reg .u64 %%data, %%map, %%from, %%to, %%p64, %%off;\n"
                     ".reg .u32 %%box, %%bar, %%tx, %%me, %%i, %%bytes, %%w, %%turn, %%got, %%s;\n"
                     ".reg .s32 %%c<5>;\n.reg .u16 %%o<3>;\n.reg .pred %%p, %%first;\n"
                     "ld.param.u64 %%data, [data];\ncvta.to.global.u64 %%data, %%data;\n"
                     "mov.b64 %%map, map;\ncvta.param.u64 %%map, %%map;\n"
                     "ld.global.u32 %%bytes, [%%data+160];\nld.global.u32 %%bar, [%%data+164];\n"
                     "ld.global.u32 %%tx, [%%data+168];\nld.global.u64 %%from, [%%data+176];\n"
                     "ld.global.u64 %%to, [%%data+184];\nmov.u32 %%box, all;\n"
                     "add.u32 %%bar, %%bar, %%box;\nmov.u32 %%me, %%tid.x;\n"
                     "setp.eq.u32 %%first, %%me, 0;\nmov.u32 %%got, 1;\n");
    for (unsigned i = 0; i < box->rank; i++) {
        table_put(&text, "ld.global.s32 %%c%u, [%%data+%u];\n", i, 128 + 4 * i);
    }
    for (unsigned i = 0; i < 3; i++)
        table_put(&text, "ld.global.u16 %%o%u, [%%data+%u];\n", i, 148 + 4 * i);
    table_put(&text,
              "shl.b32 %%i, %%me, 2;\n"
              "FILL: setp.ge.u32 %%p, %%i, %%bytes;\n@%%p bra FILLED;\n"
              "cvt.u64.u32 %%off, %%i;\nadd.u64 %%p64, %%from, %%off;\n"
              "ld.global.u32 %%w, [%%p64];\nadd.u32 %%s, %%box, %%i;\nst.shared.u32 [%%s], %%w;\n"
              "add.u32 %%i, %%i, 512;\nbra FILL;\nFILLED:\n"
              "@%%first mbarrier.init.shared.b64 [%%bar], 1;\n"
              "fence.mbarrier_init.release.cluster;\nfence.proxy.async;\nbar.sync 0;\n"
              "@!%%first bra BEHIND;\n");
    put_copy(&text, box, operation);
    table_put(
        &text,
        "BEHIND:\nbar.sync 0;\n@%%first st.global.u32 [%%data+192], %%got;\n"
        "@%%first ld.shared.u64 %%p64, [%%bar];\n@%%first st.global.u64 [%%data+200], %%p64;\n"
        "shl.b32 %%i, %%me, 2;\n"
        "READ: setp.ge.u32 %%p, %%i, %%bytes;\n@%%p bra DONE;\n"
        "cvt.u64.u32 %%off, %%i;\nadd.u64 %%p64, %%to, %%off;\n"
        "add.u32 %%s, %%box, %%i;\nld.shared.u32 %%w, [%%s];\nst.global.u32 [%%p64], %%w;\n"
        "add.u32 %%i, %%i, 512;\nbra READ;\nDONE: ret;\n}\n");
    return table_text_end(&text);
}

/* ---- numbers that identify elements ---- */

static unsigned case_box_passes_of(const struct case_type *type) {
    return type->bytes == 1 ? 3 : type->bytes == 2 ? 2 : 1;
}

static unsigned case_box_base_of(const struct case_type *type) {
    return type->bytes == 1 ? 200 : type->bytes == 2 ? 20000 : 1u << 30;
}

/* Digit number pass of each element's number; none is 0, and none looks untouched. */
static void case_box_number(const struct case_type *type, unsigned pass, uint8_t *bytes,
                            size_t size) {
    for (size_t i = 0; i < size / type->bytes; i++) {
        uint64_t digit = i;
        for (unsigned k = 0; k < pass; k++) digit /= case_box_base_of(type);
        digit = digit % case_box_base_of(type) + 1;
        memcpy(bytes + i * type->bytes, &digit, type->bytes);
    }
}

/* ---- results ---- */

/* The origins of a result's elements, as runs. */
enum { FROM_NOWHERE = -1, FROM_ZERO = -2, FROM_NAN = -3, FROM_ELSEWHERE = -4 };

static int64_t origin_of(const struct case_type *type, uint8_t *const *results, size_t i) {
    int64_t number = 0, scale = 1;
    uint64_t first = 0;
    for (unsigned pass = 0; pass < case_box_passes_of(type); pass++) {
        uint64_t digit = 0, untouched = 0;
        memcpy(&digit, results[pass] + i * type->bytes, type->bytes);
        memset(&untouched, UNTOUCHED, type->bytes);
        if (pass == 0) first = digit;
        if (digit == untouched) return FROM_NOWHERE;
        if (digit == 0) return FROM_ZERO;
        if (digit > case_box_base_of(type)) {
            /* The fill is all ones but for the sign, or the format's own NaN. */
            return first == digit && type->kind == 'f' ? FROM_NAN : FROM_ELSEWHERE;
        }
        number += (int64_t)(digit - 1) * scale;
        scale *= case_box_base_of(type);
    }
    return number;
}

/* Says "4*-" for four untouched, "2*0" for zeros, "a-b" for elements in order. */
static void say_run(struct case_line *line, int64_t from, size_t length, int64_t base) {
    static const char *const names[] = {"-", "0", "N", "?"};
    if (from < 0) {
        case_say(line, " %zu*%s", length, names[-from - 1]);
    } else if (length == 1) {
        case_say(line, " %lld", (long long)(from - base));
    } else {
        case_say(line, " %lld..%lld", (long long)(from - base),
                 (long long)(from - base + (int64_t)length - 1));
    }
}

static void say_origins(struct case_line *line, const struct box *box, uint8_t *const *results,
                        size_t count, int64_t base) {
    int64_t first = 0, last = 0;
    size_t length = 0;
    for (size_t i = 0; i <= count; i++) {
        int64_t from = i < count ? origin_of(box->type, results, i) : -9;
        bool goes_on = length > 0 && (from < 0 ? from == last : last >= 0 && from == last + 1);
        if (goes_on) {
            length++;
        } else {
            if (length > 0) say_run(line, first, length, base);
            first = from;
            length = 1;
        }
        last = from;
    }
}

/* Which values there are, in runs of elements that differ from what was there. */
static void case_box_say_values(struct case_line *line, const struct case_type *type,
                                const uint8_t *bytes, const uint8_t *before, size_t size,
                                int64_t base) {
    bool running = false;
    for (size_t i = 0; i < size / type->bytes; i++) {
        uint64_t value = 0, old = 0;
        memcpy(&value, bytes + i * type->bytes, type->bytes);
        memcpy(&old, before + i * type->bytes, type->bytes);
        if (value == old) {
            running = false;
            continue;
        }
        if (!running) case_say(line, " @%lld", (long long)i - base);
        case_say(line, " %0*llx", (int)type->bytes * 2, (unsigned long long)value);
        running = true;
    }
}

/* ---- running ---- */

struct buffers {
    uint8_t memory[MEMORY], before[MEMORY], shared[SHARED_MAX], result[3][MEMORY];
};

static bool case_box_run_pass(struct case_device *device, struct case_line *line, struct box *box,
                              CUfunction function, struct buffers *buffers, uint8_t *result) {
    struct table_device *driver = &device->driver;
    CUdeviceptr from = device->memory + MEMORY, to = from + SHARED_MAX;
    box->data.from = from;
    box->data.to = to;
    box->data.bytes = box->shared;
    box->data.barrier = box->shared;
    CUresult code = driver->cuMemcpyHtoD_v2(device->memory, buffers->memory, MEMORY);
    if (code == CUDA_SUCCESS) code = driver->cuMemcpyHtoD_v2(from, buffers->shared, box->shared);
    if (code == CUDA_SUCCESS) code = driver->cuMemsetD8_v2(to, 0, box->shared);
    if (code == CUDA_SUCCESS) {
        code = driver->cuMemcpyHtoD_v2(device->data, &box->data, sizeof box->data);
    }
    if (code != CUDA_SUCCESS) return case_fail(line, "copy", code);
    if (!case_launch(device, line, function, 1, THREADS, box->shared + 16, device->data,
                     &box->map)) {
        return false;
    }
    struct data after;
    code = driver->cuMemcpyDtoH_v2(&after, device->data, sizeof after);
    if (code == CUDA_SUCCESS) {
        code = box->out ? driver->cuMemcpyDtoH_v2(result, device->memory, MEMORY)
                        : driver->cuMemcpyDtoH_v2(result, to, box->shared);
    }
    if (code != CUDA_SUCCESS) return case_fail(line, "copy back", code);
    if (after.done == 0 && line->length == 0) {
        case_say(line, "incomplete %016llx", (unsigned long long)after.state);
    }
    return true;
}

static void case_box_run(struct case_device *device, struct case_line *line, struct box *box,
                         CUfunction function) {
    static struct buffers buffers;
    const char *set = case_value(line, "values");
    uint8_t *results[] = {buffers.result[0], buffers.result[1], buffers.result[2]};
    size_t result_bytes = box->out ? MEMORY : box->shared;
    int64_t base = BASE / box->type->bytes;
    if (box->reduces || set != NULL) {
        case_fill(line, box->type, buffers.memory, MEMORY, false);
        case_fill(line, box->type, buffers.shared, SHARED_MAX, true);
        if (!box->reduces) {
            memset(box->out ? buffers.memory : buffers.shared, UNTOUCHED,
                   box->out ? MEMORY : SHARED_MAX);
        }
        memcpy(buffers.before, box->out ? buffers.memory : buffers.shared, result_bytes);
        if (!case_box_run_pass(device, line, box, function, &buffers, results[0])) return;
        case_box_say_values(line, box->type, results[0], buffers.before, result_bytes,
                            box->out ? base : 0);
        if (line->length == 0) case_say(line, "nothing changed");
        return;
    }
    for (unsigned pass = 0; pass < case_box_passes_of(box->type); pass++) {
        memset(buffers.memory, UNTOUCHED, MEMORY);
        memset(buffers.shared, UNTOUCHED, SHARED_MAX);
        if (box->out) {
            case_box_number(box->type, pass, buffers.shared, SHARED_MAX);
        } else {
            case_box_number(box->type, pass, buffers.memory, MEMORY);
        }
        if (!case_box_run_pass(device, line, box, function, &buffers, results[pass])) return;
    }
    if (box->prefetches) {
        case_say(line, "ok");
        return;
    }
    if (box->out) { /* what is changed, and where */
        size_t count = MEMORY / box->type->bytes, i = 0;
        while (i < count) {
            while (i < count && origin_of(box->type, results, i) == FROM_NOWHERE) i++;
            size_t begin = i;
            while (i < count && origin_of(box->type, results, i) != FROM_NOWHERE) i++;
            if (begin == i) break;
            uint8_t *part[3];
            for (int p = 0; p < 3; p++) part[p] = results[p] + begin * box->type->bytes;
            case_say(line, " @%lld", (long long)begin - base);
            say_origins(line, box, part, i - begin, 0);
        }
        if (line->length == 0) case_say(line, "nothing written");
        return;
    }
    say_origins(line, box, results, result_bytes / box->type->bytes, base);
}

void case_box(struct case_device *device, struct case_line *line) {
    static struct box box;
    struct table_device *driver = &device->driver;
    CUresult code = CUDA_SUCCESS;
    if (!case_box_read_box(line, &box) || box.shared > SHARED_MAX) {
        case_say(line, "not a case");
        return;
    }
    if (device->data == 0) code = driver->cuMemAlloc_v2(&device->data, sizeof(struct data));
    if (code == CUDA_SUCCESS && device->memory == 0) {
        code = driver->cuMemAlloc_v2(&device->memory, MEMORY + 2 * SHARED_MAX);
    }
    if (code != CUDA_SUCCESS) {
        case_fail(line, "allocate", code);
        return;
    }
    code = case_box_encode(device, &box, device->memory + BASE);
    if (code != CUDA_SUCCESS) {
        case_fail(line, "encode", code);
        return;
    }
    char *text = case_box_write_kernel(&box, line->word[0]);
    CUfunction function = case_load(device, line, text);
    free(text);
    if (function != NULL) case_box_run(device, line, &box, function);
}
