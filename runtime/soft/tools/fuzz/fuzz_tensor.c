/*
 * Fuzz target: the arguments of a tensor map, and a copy by it. A map is refused with a reason and
 * left as it was, or made; then a box is copied as a model copies it element by element, or the
 * launch fails: because of where the box begins, or because it is larger than shared memory or the
 * tensor than its allocation. A map whose bytes were changed may fail in other ways, and crashes
 * nothing.
 *
 * The input is a sequence of numbers: a byte below 240 is one, a larger one says how many bytes
 * follow. What is missing is 0.
 */
#include "fuzz.h"

#include "base/report.h"
#include "test/box_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED = 2048, MEMORY = 4096, ROOM = 1 << 16, MAP_BYTE = 0xcd };
enum {
    IM2COL = 1,
    STORES = 2,
    SPOILS = 4,
    NO_SIZES = 8,
    NO_STRIDES = 16,
    NO_BOX = 32,
    NO_MAP = 64
};

/* What a kernel reads and writes; it knows the places. The tensor's memory is the last. */
struct buffer {
    CUtensorMap map;
    int32_t begin[TENSOR_RANK_MAX]; /* byte 128 */
    uint32_t bytes;                 /* 148 */
    uint16_t offsets[4];            /* 152 */
    uint8_t unused[96];
    uint8_t shared[SHARED]; /* 256 */
    uint8_t memory[MEMORY];
};

struct input {
    const uint8_t *data;
    size_t size, at;
};

static CUmodule module;
static CUdeviceptr device;
static struct buffer before, after, expected;

static uint64_t tensor_number(struct input *input) {
    enum { LONG = 240 };
    if (input->at >= input->size) return 0;
    uint64_t value = input->data[input->at++];
    if (value < LONG) return value;
    size_t bytes = (value - LONG) % 8 + 1;
    value = 0;
    for (size_t i = 0; i < bytes && input->at < input->size; i++) {
        value |= (uint64_t)input->data[input->at++] << (8 * i);
    }
    return value;
}

/* Small ones around 0. */
static int signed_number(struct input *input) {
    uint64_t value = tensor_number(input);
    return value < 240 ? (int)value - 24 : (int)(uint32_t)value;
}

/* ---- the kernels ---- */

#define FILL                                                                                       \
    "FILL: ld.global.u32 %%r7, [%%rd4]; st.shared.u32 [%%r5], %%r7; add.u32 %%r5, %%r5, 128;\n"    \
    "add.u64 %%rd4, %%rd4, 128; setp.lt.u32 %%p2, %%r5, %%r13; @%%p2 bra FILL;\n"

static size_t tensor_add_kernel(char *text, unsigned rank, bool im2col, bool stores) {
    static const char *const places[] = {"%r20", "%r20, %r21", "%r20, %r21, %r22",
                                         "%r20, %r21, %r22, %r23", "%r20, %r21, %r22, %r23, %r24"};
    static const char *const offsets[] = {"", "", ", {%h1}", ", {%h1, %h2}", ", {%h1, %h2, %h3}"};
    size_t length = (size_t)snprintf(
        text, ROOM,
        ".visible .entry %s%s%u(.param .u64 out)\n{\n.reg .b16 %%h<4>; .reg .b32 %%r<40>;\n"
        ".reg .b64 %%rd<9>; .reg .pred %%p<4>; ld.param.u64 %%rd1, [out]; mov.u32 %%r3, %%tid.x;\n"
        "mov.u32 %%r11, s; mad.lo.u32 %%r12, %%r3, 4, %%r11; add.u32 %%r13, %%r11, 2048;\n"
        "mad.wide.u32 %%rd2, %%r3, 4, %%rd1; add.u64 %%rd2, %%rd2, 256;\n"
        "ld.global.u32 %%r20, [%%rd1+128]; ld.global.u32 %%r21, [%%rd1+132];\n"
        "ld.global.u32 %%r22, [%%rd1+136]; ld.global.u32 %%r23, [%%rd1+140];\n"
        "ld.global.u32 %%r24, [%%rd1+144]; ld.global.u32 %%r25, [%%rd1+148];\n"
        "ld.global.u16 %%h1, [%%rd1+152]; ld.global.u16 %%h2, [%%rd1+154];\n"
        "ld.global.u16 %%h3, [%%rd1+156]; setp.eq.u32 %%p1, %%r3, 0;\n"
        "mov.u32 %%r5, %%r12; mov.u64 %%rd4, %%rd2;\n" FILL
        "@%%p1 mbarrier.init.shared.b64 [m], 1; fence.mbarrier_init.release.cluster;\n"
        "fence.proxy.async; bar.sync 0;\n",
        im2col ? "i" : "t", stores ? "s" : "l", rank);
    const char *mode = im2col ? stores ? "im2col_no_offs" : "im2col" : "tile";
    if (stores) {
        return length +
               (size_t)snprintf(text + length, ROOM,
                                "@%%p1 cp.async.bulk.tensor.%ud.global.shared::cta.%s"
                                ".bulk_group [%%rd1, {%s}], [s];\n@%%p1 cp.async.bulk"
                                ".commit_group; @%%p1 cp.async.bulk.wait_group 0; ret;\n}\n",
                                rank, mode, places[rank - 1]);
    }
    return length +
           (size_t)snprintf(text + length, ROOM,
                            "@%%p1 cp.async.bulk.tensor.%ud.shared::cta.global.%s"
                            ".mbarrier::complete_tx::bytes [s], [%%rd1, {%s}], [m]%s;\n"
                            "@%%p1 mbarrier.arrive.expect_tx.shared.b64 _, [m], %%r25;\n"
                            "LOOP: mbarrier.try_wait.parity.shared.b64 %%p2, [m], 0;\n"
                            "@!%%p2 bra LOOP; mov.u32 %%r5, %%r12; mov.u64 %%rd4, %%rd2;\n"
                            "BACK: ld.shared.u32 %%r7, [%%r5]; st.global.u32 [%%rd4], %%r7;\n"
                            "add.u32 %%r5, %%r5, 128; add.u64 %%rd4, %%rd4, 128;\n"
                            "setp.lt.u32 %%p2, %%r5, %%r13; @%%p2 bra BACK; ret;\n}\n",
                            rank, mode, places[rank - 1], im2col ? offsets[rank - 1] : "");
}

static void tensor_load(void) {
    static char text[ROOM + 16 * 2048];
    size_t length = (size_t)snprintf(
        text, sizeof text,
        ".version 8.6\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 s[2048];\n"
        ".shared .align 8 .b64 m;\n");
    for (unsigned rank = 1; rank <= TENSOR_RANK_MAX; rank++) {
        for (unsigned kind = 0; kind < (rank < 3 ? 2u : 4u); kind++) {
            length += tensor_add_kernel(text + length, rank, kind >= 2, kind % 2 == 1);
        }
    }
    module = fuzz_load((const uint8_t *)text, length);
    if (module == NULL) fuzz_fail("no kernels", 0, "");
    if (cuMemAlloc_v2(&device, sizeof before) != CUDA_SUCCESS) fuzz_fail("no buffer", 0, "");
}

/* ---- the map ---- */

struct arguments {
    unsigned flags, interleave, promotion, first_step;
    uint64_t address;
    struct box_model model;
};

static void tensor_read_arguments(struct input *input, struct arguments *a) {
    struct box_model *model = &a->model;
    memset(a, 0, sizeof *a);
    a->flags = (unsigned)tensor_number(input);
    model->im2col = (a->flags & IM2COL) != 0;
    model->type = (unsigned)tensor_number(input);
    model->rank = (unsigned)tensor_number(input);
    a->interleave = (unsigned)tensor_number(input);
    model->swizzle = (unsigned)tensor_number(input);
    a->promotion = (unsigned)tensor_number(input);
    model->fill = (unsigned)tensor_number(input);
    model->first = tensor_number(input);
    a->first_step = (unsigned)tensor_number(input);
    model->pixels = (unsigned)tensor_number(input);
    for (unsigned i = 0; i < TENSOR_RANK_MAX; i++) {
        model->size[i] = tensor_number(input);
        model->stride[i] = tensor_number(input);
        model->box[i] = (unsigned)tensor_number(input);
        model->step[i] = (unsigned)tensor_number(input);
        before.begin[i] = signed_number(input);
    }
    for (unsigned i = 0; i < 3; i++) {
        model->lower[i] = signed_number(input);
        model->upper[i] = signed_number(input);
        before.offsets[i] = (uint16_t)tensor_number(input);
    }
    a->address = model->first < MEMORY ? device + offsetof(struct buffer, memory) + model->first
                                       : model->first;
}

static CUresult tensor_encode(const struct arguments *a, CUtensorMap *map) {
    const struct box_model *model = &a->model;
    cuuint64_t sizes[TENSOR_RANK_MAX], strides[TENSOR_RANK_MAX];
    cuuint32_t steps[TENSOR_RANK_MAX], box[TENSOR_RANK_MAX];
    for (unsigned i = 0; i < TENSOR_RANK_MAX; i++) {
        sizes[i] = model->size[i];
        strides[i] = i + 1 < TENSOR_RANK_MAX ? model->stride[i + 1] : 0;
        steps[i] = i == 0 ? a->first_step : model->step[i];
        box[i] = model->box[i];
    }
    CUtensorMap *to = (a->flags & NO_MAP) != 0 ? NULL : map;
    void *address = (void *)(uintptr_t)a->address;
    const cuuint64_t *sizes_given = (a->flags & NO_SIZES) != 0 ? NULL : sizes;
    const cuuint64_t *strides_given = (a->flags & NO_STRIDES) != 0 ? NULL : strides;
    if (model->im2col) {
        const int *lower = (a->flags & NO_BOX) != 0 ? NULL : model->lower;
        return cuTensorMapEncodeIm2col(to, (int)model->type, model->rank, address, sizes_given,
                                       strides_given, lower, model->upper, box[0], model->pixels,
                                       steps, (int)a->interleave, (int)model->swizzle,
                                       (int)a->promotion, (int)model->fill);
    }
    return cuTensorMapEncodeTiled(to, (int)model->type, model->rank, address, sizes_given,
                                  strides_given, (a->flags & NO_BOX) != 0 ? NULL : box, steps,
                                  (int)a->interleave, (int)model->swizzle, (int)a->promotion,
                                  (int)model->fill);
}

static void check_refusal(CUresult result, uint32_t log_before) {
    const uint8_t *bytes = (const uint8_t *)&before.map;
    if (result != CUDA_ERROR_INVALID_VALUE && result != CUDA_ERROR_NOT_SUPPORTED) {
        fuzz_fail("no code of a map's", (int)result, "");
    }
    if (soft_log_end() == log_before) fuzz_fail("refused without a reason", (int)result, "");
    for (size_t i = 0; i < sizeof before.map; i++) {
        if (bytes[i] != MAP_BYTE) fuzz_fail("a map that was refused is changed", (int)result, "");
    }
}

/* ---- the copy ---- */

/* What the model says: whether it can, and what comes of it. */
struct outcome {
    const struct box_model *model;
    bool stores, beyond;
};

static void tensor_visit(void *user, unsigned at, int64_t from) {
    struct outcome *outcome = user;
    const struct box_model *model = outcome->model;
    unsigned to = box_model_swizzled(model->swizzle, at);
    if (from >= 0 && from + model->each > MEMORY) outcome->beyond = true;
    if (outcome->beyond) return;
    if (!outcome->stores) {
        box_model_load(model, before.memory, from, expected.shared + to);
    } else if (from >= 0) {
        memcpy(expected.memory + from, before.shared + to, model->each);
    }
}

/* Whether the model's numbers fit, and the manual says what happens. */
static bool is_defined(const struct box_model *model) {
    if (model->first >= MEMORY) return false;
    for (unsigned i = 0; i < model->rank; i++) {
        if (model->size[i] > 1 << 16 || (i > 0 && model->stride[i] > 1 << 20)) return false;
        if (!model->im2col || i == 0 || i + 1 == model->rank) continue;
        int64_t last = (int64_t)model->size[i] - 1 + model->upper[i - 1];
        if (before.begin[i] < model->lower[i - 1] || before.begin[i] > last) return false;
    }
    static const uint16_t most[] = {0, 0, 0, UINT16_MAX, 255, 31};
    for (unsigned i = 0; model->im2col && i + 2 < model->rank; i++) {
        if (before.offsets[i] > most[model->rank]) return false;
    }
    return true;
}

/* 0: it must succeed; else what it must fail with. */
static CUresult tensor_foresee(const struct box_model *model, bool stores) {
    uint64_t span = 16ull << model->swizzle, bytes = box_model_extent(model);
    struct outcome outcome = {.model = model, .stores = stores};
    memcpy(&expected, &before, sizeof before);
    if (box_model_refuses(model, before.begin)) return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    if ((bytes + span - 1) / span * span > SHARED) return CUDA_ERROR_ILLEGAL_ADDRESS;
    static const uint16_t none[4];
    box_model_each(model, before.begin, stores ? none : before.offsets, tensor_visit, &outcome);
    return outcome.beyond ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

static CUresult tensor_copy(const struct box_model *model, bool stores) {
    char name[8];
    CUfunction function = NULL;
    void *arguments[] = {&device};
    snprintf(name, sizeof name, "%c%c%u", model->im2col ? 'i' : 't', stores ? 's' : 'l',
             model->rank);
    CUresult result = cuMemcpyHtoD_v2(device, &before, sizeof before);
    if (result == CUDA_SUCCESS) result = cuModuleGetFunction(&function, module, name);
    if (result == CUDA_SUCCESS) {
        result = cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL);
    }
    if (result != CUDA_SUCCESS) fuzz_fail("no launch", (int)result, name);
    result = cuCtxSynchronize();
    if (result == CUDA_SUCCESS) result = cuMemcpyDtoH_v2(&after, device, sizeof after);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {.data = data, .size = size};
    struct arguments arguments;
    fuzz_open();
    if (module == NULL) tensor_load();
    memset(&before.map, MAP_BYTE, sizeof before.map);
    for (size_t i = 0; i < SHARED; i++) before.shared[i] = (uint8_t)(i * 7 + 1);
    for (size_t i = 0; i < MEMORY; i++) before.memory[i] = (uint8_t)(i * 5 + i / 256);
    tensor_read_arguments(&input, &arguments);
    uint32_t log_before = soft_log_end();
    CUresult result = tensor_encode(&arguments, &before.map);
    if (result != CUDA_SUCCESS) {
        check_refusal(result, log_before);
        return 0;
    }
    struct box_model *model = &arguments.model;
    model->each = tensor_type_bytes(model->type);
    model->step[0] = 1;
    bool stores = (arguments.flags & STORES) != 0, spoils = (arguments.flags & SPOILS) != 0;
    model->stores = stores;
    before.bytes = (uint32_t)box_model_bytes(model);
    for (int i = 0; spoils && i < 4; i++) {
        size_t at = (size_t)tensor_number(&input) % sizeof before.map;
        ((uint8_t *)&before.map)[at] = (uint8_t)tensor_number(&input);
    }
    /* The model knows no slices; the record of the cases does. */
    bool defined = !spoils && arguments.interleave == 0 && is_defined(model);
    CUresult wanted = defined ? tensor_foresee(model, stores) : CUDA_SUCCESS;
    result = tensor_copy(model, stores);
    if (defined && result != wanted) fuzz_fail("not what the model says", (int)result, "");
    if (defined && result == CUDA_SUCCESS && memcmp(&after, &expected, sizeof after) != 0) {
        fuzz_fail("other bytes than the model's", 0, "");
    }
    if (result == CUDA_SUCCESS) return 0;
    fuzz_reopen();
    module = NULL;
    return 0;
}
