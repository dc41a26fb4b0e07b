/*
 * Random copies of boxes, compared with a model that copies element by element.
 *
 * Each block of a launch copies one box with one map, to or from its own part of the memory. Shared
 * memory is compared before the wait, when nothing may have arrived, and after it; likewise the
 * global memory that a copy writes.
 */
#include "test/box_model.h"
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 32, THREADS = 32, SLICE = 16384, SHARED = 4096, SHIFT_MAX = 1024 };
enum { IMAGE = SHARED + SHIFT_MAX, EARLY = 4 * THREADS, SWIZZLES = 4, RANK_MAX = TENSOR_RANK_MAX };

/* What a block reads; the kernels know the places. */
struct record {
    CUtensorMap map;
    int32_t begin[RANK_MAX]; /* byte 128 */
    uint32_t bytes;          /* 148 */
    uint16_t offsets[4];     /* 152 */
    uint64_t slice;          /* 160: the part of global memory */
    uint32_t shift;          /* 168: where the box begins in shared memory */
    uint8_t unused[20];
};
_Static_assert(sizeof(struct record) == 192, "the kernels use these offsets");

/* Shared memory before and after, and a part of what is there before the wait. */
struct image {
    uint8_t bytes[IMAGE];
    uint32_t early[THREADS];
};

enum operation { ADD, MIN, MAX, INC, DEC, AND, OR, XOR, OPERATIONS };
static const char *const operation_names[] = {"add", "min", "max", "inc",
                                              "dec", "and", "or",  "xor"};

static struct {
    uint64_t seed;
    CUmodule module;
    CUdeviceptr records, images, slices;
    struct record host_records[BLOCKS];
    struct image host_images[BLOCKS], before[BLOCKS];
    struct box_model models[BLOCKS];
    uint8_t global[BLOCKS][SLICE], global_before[BLOCKS][SLICE];
    size_t cases, outside;
} all = {.seed = 1};

static uint64_t dice(uint64_t below) {
    all.seed ^= all.seed << 13;
    all.seed ^= all.seed >> 7;
    all.seed ^= all.seed << 17;
    return (all.seed * 0x2545f4914f6cdd1d >> 20) % below;
}

/* ---- the kernels ---- */

static const char head[] = ".version 8.6\n.target sm_90a\n.address_size 64\n"
                           ".shared .align 1024 .b8 s[5120];\n.shared .align 8 .b64 m;\n";

static const char begin_text[] =
    ".visible .entry %s(.param .u64 records, .param .u64 images)\n{\n"
    ".reg .b16 %%h<4>; .reg .b32 %%r<40>; .reg .b64 %%rd<9>; .reg .pred %%p<4>;\n"
    "ld.param.u64 %%rd1, [records]; ld.param.u64 %%rd2, [images];\n"
    "mov.u32 %%r1, %%ctaid.x; mov.u32 %%r3, %%tid.x; mov.u32 %%r10, m; mov.u32 %%r11, s;\n"
    "mad.wide.u32 %%rd1, %%r1, 192, %%rd1; mad.wide.u32 %%rd2, %%r1, 5248, %%rd2;\n"
    "mad.wide.u32 %%rd2, %%r3, 4, %%rd2; mad.lo.u32 %%r12, %%r3, 4, %%r11;\n"
    "ld.global.u32 %%r20, [%%rd1+128]; ld.global.u32 %%r21, [%%rd1+132];\n"
    "ld.global.u32 %%r22, [%%rd1+136]; ld.global.u32 %%r23, [%%rd1+140];\n"
    "ld.global.u32 %%r24, [%%rd1+144]; ld.global.u32 %%r25, [%%rd1+148];\n"
    "ld.global.u16 %%h1, [%%rd1+152]; ld.global.u16 %%h2, [%%rd1+154];\n"
    "ld.global.u16 %%h3, [%%rd1+156]; ld.global.u64 %%rd3, [%%rd1+160];\n"
    "ld.global.u32 %%r13, [%%rd1+168]; add.u32 %%r13, %%r13, %%r11;\n"
    "mad.wide.u32 %%rd3, %%r3, 4, %%rd3; setp.eq.u32 %%p1, %%r3, 0;\n"
    "mov.u32 %%r5, %%r12; mov.u64 %%rd4, %%rd2; mov.u32 %%r6, 0;\n"
    "FILL: ld.global.u32 %%r7, [%%rd4]; st.shared.u32 [%%r5], %%r7; add.u32 %%r5, %%r5, 128;\n"
    "add.u64 %%rd4, %%rd4, 128; add.u32 %%r6, %%r6, 1; setp.lt.u32 %%p2, %%r6, 40;\n"
    "@%%p2 bra FILL; @%%p1 mbarrier.init.shared.b64 [m], 1;\n"
    "fence.mbarrier_init.release.cluster; fence.proxy.async; bar.sync 0;\n";

static const char load_end[] =
    "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [m], %r25;\n"
    "ld.shared.u32 %r8, [%r12]; st.global.u32 [%rd2+5120], %r8;\n"
    "LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra LOOP;\n"
    "mov.u32 %r5, %r12; mov.u64 %rd4, %rd2; mov.u32 %r6, 0;\n"
    "BACK: ld.shared.u32 %r7, [%r5]; st.global.u32 [%rd4], %r7; add.u32 %r5, %r5, 128;\n"
    "add.u64 %rd4, %rd4, 128; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 40;\n"
    "@%p2 bra BACK; ret;\n}\n";

static const char store_end[] =
    "@%p1 cp.async.bulk.commit_group; ld.global.u32 %r8, [%rd3];\n"
    "st.global.u32 [%rd2+5120], %r8; @%p1 cp.async.bulk.wait_group 0; ret;\n}\n";

static const char *coordinates(unsigned rank) {
    static const char *const texts[] = {"",
                                        "%r20",
                                        "%r20, %r21",
                                        "%r20, %r21, %r22",
                                        "%r20, %r21, %r22, %r23",
                                        "%r20, %r21, %r22, %r23, %r24"};
    return texts[rank];
}

static size_t add_begin(char *text, size_t bytes, const char *name) {
    /* Ours alone, and constant. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    return (size_t)snprintf(text, bytes, begin_text, name);
#pragma GCC diagnostic pop
}

static size_t add_load(char *text, size_t bytes, unsigned rank, bool im2col) {
    static const char *const offsets[] = {
        "", "", "", ", {%h1}", ", {%h1, %h2}", ", {%h1, %h2, %h3}"};
    char name[16];
    snprintf(name, sizeof name, "%s%u", im2col ? "image" : "load", rank);
    size_t length = add_begin(text, bytes, name);
    return length +
           (size_t)snprintf(text + length, bytes - length,
                            "@%%p1 cp.async.bulk.tensor.%ud.shared::cluster.global.%s"
                            ".mbarrier::complete_tx::bytes [%%r13], [%%rd1, {%s}], [m]%s;\n"
                            "%s",
                            rank, im2col ? "im2col" : "tile", coordinates(rank),
                            im2col ? offsets[rank] : "", load_end);
}

/* operation: OPERATIONS for a copy. */
static size_t add_store(char *text, size_t bytes, unsigned rank, bool im2col,
                        enum operation operation) {
    char name[16], sum[8] = "";
    bool reduces = operation < OPERATIONS;
    if (reduces) snprintf(sum, sizeof sum, ".%s", operation_names[operation]);
    snprintf(name, sizeof name, "%s%u",
             reduces  ? operation_names[operation]
             : im2col ? "put"
                      : "store",
             rank);
    size_t length = add_begin(text, bytes, name);
    return length + (size_t)snprintf(text + length, bytes - length,
                                     "@%%p1 cp.%sasync.bulk.tensor.%ud.global.shared::cta%s.%s"
                                     ".bulk_group [%%rd1, {%s}], [%%r13];\n%s",
                                     reduces ? "reduce." : "", rank, sum,
                                     im2col ? "im2col_no_offs" : "tile", coordinates(rank),
                                     store_end);
}

static void load_module(void) {
    enum { ROOM = 1 << 20 };
    static char text[ROOM];
    size_t length = (size_t)snprintf(text, ROOM, "%s", head);
    for (unsigned rank = 1; rank <= RANK_MAX; rank++) {
        length += add_load(text + length, ROOM - length, rank, false);
        length += add_store(text + length, ROOM - length, rank, false, OPERATIONS);
        for (int i = 0; i < OPERATIONS; i++) {
            length += add_store(text + length, ROOM - length, rank, false, (enum operation)i);
        }
        if (rank < 3) continue;
        length += add_load(text + length, ROOM - length, rank, true);
        length += add_store(text + length, ROOM - length, rank, true, OPERATIONS);
    }
    cr_assert(length < ROOM);
    all.module = test_load(text);
}

/* ---- random maps ---- */

/* Sizes and strides of a tensor that fits into a slice, with the whole of each row's last unit; its
 * elements do not overlap. */
static bool make_tensor(struct box_model *model) {
    model->size[0] = 1 + dice(40);
    uint64_t extent = (model->size[0] * model->each + 15) / 16 * 16;
    for (unsigned i = 1; i < model->rank; i++) {
        model->stride[i] = extent + 16 * dice(3);
        model->size[i] = 1 + dice(model->rank < 4 ? 12 : 6);
        extent = model->stride[i] * model->size[i];
    }
    if (extent > SLICE) return false;
    model->first = dice((SLICE - extent) / 16 + 1) * 16;
    return true;
}

static bool make_box(struct box_model *model) {
    unsigned unit = model->each < 16 ? 16 / model->each : 1;
    model->box[0] = unit * (1 + (unsigned)dice(8));
    if (model->swizzle > 0 && model->box[0] * model->each > (16u << model->swizzle)) return false;
    for (unsigned i = 0; i < model->rank; i++) {
        model->step[i] = i == 0 || dice(3) > 0 ? 1 : 1 + (unsigned)dice(8);
        if (i > 0) model->box[i] = 1 + (unsigned)dice(model->rank < 4 ? 24 : 8);
    }
    if (!model->im2col) return box_model_extent(model) <= SHARED - 128;
    model->pixels = 1 + (unsigned)dice(60);
    int limit = model->rank == 5 ? 16 : 20;
    for (unsigned i = 1; i + 1 < model->rank; i++) {
        model->lower[i - 1] = (int)dice(model->stores ? 3 : 7) - (model->stores ? 0 : 3);
        model->upper[i - 1] = (int)dice((uint64_t)limit) - limit / 2;
        if (model->lower[i - 1] > (int)model->size[i] - 1 + model->upper[i - 1]) return false;
    }
    return box_model_extent(model) <= SHARED - 128;
}

static int32_t random_place(const struct box_model *model, unsigned i) {
    static const int32_t far[] = {INT32_MIN, INT32_MAX, INT32_MIN + 1, 1 << 30};
    if (dice(100) == 0) return far[dice(4)];
    int span = (int)(model->size[i] + model->box[i] + 4);
    return (int32_t)dice((uint64_t)span) - (int32_t)model->box[i] - 1;
}

static void place_box(const struct box_model *model, struct record *record) {
    static const uint16_t most[] = {0, 0, 0, UINT16_MAX, 255, 31};
    for (unsigned i = 0; i < model->rank; i++) record->begin[i] = random_place(model, i);
    record->begin[0] &= -(int32_t)(16 / model->each);
    for (unsigned i = 0; i < model->rank && model->stores; i++) {
        if (record->begin[i] < 0) record->begin[i] = 0;
    }
    for (unsigned i = 1; model->im2col && i + 1 < model->rank; i++) {
        int last = (int)model->size[i] - 1 + model->upper[i - 1], lower = model->lower[i - 1];
        record->begin[i] = lower + (int)dice((uint64_t)(last - lower + 1));
        record->offsets[i - 1] = (uint16_t)dice(dice(20) == 0 ? most[model->rank] + 1u : 4);
    }
}

/* like: rank, im2col and stores. type: TENSOR_TYPES for any. */
static void make_case(unsigned b, const struct box_model *like, unsigned type) {
    struct box_model *model = &all.models[b];
    struct record *record = &all.host_records[b];
    do {
        *model = *like;
        model->type = type < TENSOR_TYPES ? type : (unsigned)dice(TENSOR_TYPES);
        model->each = tensor_type_bytes(model->type);
        model->swizzle = (unsigned)dice(SWIZZLES);
        model->fill = tensor_type_is_floating(model->type) ? (unsigned)dice(2) : 0;
    } while (!make_tensor(model) || !make_box(model));
    memset(record, 0, sizeof *record);
    record->bytes = (uint32_t)box_model_bytes(model);
    record->slice = all.slices + (uint64_t)b * SLICE;
    record->shift = (uint32_t)dice(SHIFT_MAX / 128) * 128;
    place_box(model, record);
    CUresult result = box_model_encode(model, &record->map, record->slice, 1 + (cuuint32_t)dice(8));
    cr_assert_eq(result, CUDA_SUCCESS, "%s", test_log());
}

/* ---- what must come of it ---- */

static uint8_t expected_image[IMAGE], expected_slice[SLICE];

static void visit_load(void *user, unsigned at, int64_t from) {
    unsigned b = *(unsigned *)user;
    const struct box_model *model = &all.models[b];
    uint8_t value[8];
    all.outside += from < 0;
    box_model_load(model, all.global_before[b], from, value);
    unsigned to = box_model_swizzled(model->swizzle, all.host_records[b].shift + at);
    memcpy(expected_image + to, value, model->each);
}

static uint8_t *stored_value(unsigned b, unsigned at) {
    return all.before[b].bytes +
           box_model_swizzled(all.models[b].swizzle, all.host_records[b].shift + at);
}

static void visit_store(void *user, unsigned at, int64_t from) {
    unsigned b = *(unsigned *)user;
    all.outside += from < 0;
    if (from >= 0) memcpy(expected_slice + from, stored_value(b, at), all.models[b].each);
}

static enum operation current;

static uint64_t combine_unsigned(uint64_t old, uint64_t value) {
    switch (current) {
    case ADD:
        return old + value;
    case MIN:
        return old < value ? old : value;
    case MAX:
        return old > value ? old : value;
    case INC:
        return old >= value ? 0 : old + 1;
    case DEC:
        return old == 0 || old > value ? value : old - 1;
    case AND:
        return old & value;
    case OR:
        return old | value;
    default:
        return old ^ value;
    }
}

static void visit_reduce(void *user, unsigned at, int64_t from) {
    unsigned b = *(unsigned *)user;
    const struct box_model *model = &all.models[b];
    bool is_signed = model->type == TENSOR_INT32 || model->type == TENSOR_INT64;
    uint64_t old = 0, value = 0;
    all.outside += from < 0;
    if (from < 0) return;
    memcpy(&old, expected_slice + from, model->each);
    memcpy(&value, stored_value(b, at), model->each);
    /* Numbers with a sign are in the order of those without, moved by half. */
    uint64_t half =
        is_signed && (current == MIN || current == MAX) ? 1ull << (model->each * 8 - 1) : 0;
    uint64_t result = combine_unsigned(old ^ half, value ^ half) ^ half;
    memcpy(expected_slice + from, &result, model->each);
}

/* ---- runs ---- */

/* Of the log, which is long with what is outside. */
static const char *last_line(const char *log) {
    const char *line = log;
    for (const char *c = log; *c != '\0'; c++) {
        if (*c == '\n' && c[1] != '\0') line = c + 1;
    }
    return line;
}

static void run(const char *name) {
    CUfunction function = test_function(all.module, name);
    for (unsigned b = 0; b < BLOCKS; b++) {
        for (unsigned i = 0; i < IMAGE; i++) all.before[b].bytes[i] = (uint8_t)dice(256);
        for (unsigned i = 0; i < SLICE; i++) all.global_before[b][i] = (uint8_t)dice(256);
    }
    cuMemcpyHtoD_v2(all.records, all.host_records, sizeof all.host_records);
    cuMemcpyHtoD_v2(all.images, all.before, sizeof all.before);
    cuMemcpyHtoD_v2(all.slices, all.global_before, sizeof all.global_before);
    void *arguments[] = {&all.records, &all.images};
    cr_assert_eq(cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL),
                 CUDA_SUCCESS);
    CUresult result = cuCtxSynchronize();
    cr_assert_eq(result, CUDA_SUCCESS, "%s: %d: %s", name, (int)result, last_line(test_log()));
    cuMemcpyDtoH_v2(all.host_images, all.images, sizeof all.host_images);
    cuMemcpyDtoH_v2(all.global, all.slices, sizeof all.global);
}

static void compare(const char *name, unsigned b, const uint8_t *got, const uint8_t *expected,
                    size_t bytes) {
    size_t i = 0;
    while (i < bytes && got[i] == expected[i]) i++;
    const struct box_model *model = &all.models[b];
    cr_assert_eq(i, bytes,
                 "%s, block %u, seed 0x%llx: byte %zu is 0x%02x, not 0x%02x (type %u, swizzle %u, "
                 "box %u x %u, begin %d %d)",
                 name, b, (unsigned long long)all.seed, i, got[i], expected[i], model->type,
                 model->swizzle, model->box[0], model->box[1], all.host_records[b].begin[0],
                 all.host_records[b].begin[1]);
}

static void walk(unsigned b, void (*visit)(void *, unsigned, int64_t)) {
    box_model_each(&all.models[b], all.host_records[b].begin, all.host_records[b].offsets, visit,
                   &b);
}

static void check_loads(const char *name) {
    run(name);
    for (unsigned b = 0; b < BLOCKS; b++, all.cases++) {
        memcpy(expected_image, all.before[b].bytes, IMAGE);
        compare(name, b, (uint8_t *)all.host_images[b].early, expected_image, EARLY);
        walk(b, visit_load);
        compare(name, b, all.host_images[b].bytes, expected_image, IMAGE);
        compare(name, b, all.global[b], all.global_before[b], SLICE);
    }
}

static void check_stores(const char *name, void (*visit)(void *, unsigned, int64_t)) {
    run(name);
    for (unsigned b = 0; b < BLOCKS; b++, all.cases++) {
        memcpy(expected_slice, all.global_before[b], SLICE);
        compare(name, b, (uint8_t *)all.host_images[b].early, expected_slice, EARLY);
        walk(b, visit);
        compare(name, b, all.global[b], expected_slice, SLICE);
    }
}

static void make_cases(unsigned rank, bool im2col, bool stores) {
    const struct box_model like = {.rank = rank, .im2col = im2col, .stores = stores};
    for (unsigned b = 0; b < BLOCKS; b++) make_case(b, &like, TENSOR_TYPES);
}

static void begin(void) {
    setenv("TOLLENS_SOFT_WORKERS", "2", 1);
    setenv("TOLLENS_SOFT_BUDGET", "20000000", 1);
    test_capture(stderr);
    test_soft_open();
    load_module();
    cr_assert_eq(cuMemAlloc_v2(&all.records, sizeof all.host_records), CUDA_SUCCESS);
    cr_assert_eq(cuMemAlloc_v2(&all.images, sizeof all.host_images), CUDA_SUCCESS);
    cr_assert_eq(cuMemAlloc_v2(&all.slices, sizeof all.global), CUDA_SUCCESS);
}

static void end(void) {
    cuMemFree_v2(all.records);
    cuMemFree_v2(all.images);
    cuMemFree_v2(all.slices);
    test_soft_close();
}

TestSuite(tensor_random, .init = begin, .fini = end);

/* The only permitted reports are boxes outside the tensor and tiles written past rows. */
static void check_said(size_t cases, bool behind) {
    char said[1 << 16];
    size_t outside_said = 0, behind_said = 0;
    snprintf(said, sizeof said, "%s", test_captured(stderr));
    for (char *line = strtok(said, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        bool is_behind = strstr(line, "box behind row") != NULL;
        cr_assert(is_behind || strstr(line, "box outside tensor") != NULL, "%s", line);
        outside_said += !is_behind;
        behind_said += is_behind;
    }
    cr_assert(outside_said > 10 && (behind_said > 10) == behind, "%zu and %zu times", outside_said,
              behind_said);
    cr_assert(all.cases >= cases && all.outside > 10 * cases, "%zu cases, %zu elements outside",
              all.cases, all.outside);
}

Test(tensor_random, loads) {
    for (unsigned rank = 1; rank <= RANK_MAX; rank++) {
        char name[16];
        snprintf(name, sizeof name, "load%u", rank);
        for (int i = 0; i < 32; i++) {
            make_cases(rank, false, false);
            check_loads(name);
        }
    }
    check_said(5000, false);
}

Test(tensor_random, stores) {
    for (unsigned rank = 1; rank <= RANK_MAX; rank++) {
        char name[16];
        snprintf(name, sizeof name, "store%u", rank);
        for (int i = 0; i < 20; i++) {
            make_cases(rank, false, true);
            check_stores(name, visit_store);
        }
    }
    check_said(3000, true);
}

/* Whole numbers: sums of others are rounded, which other tests are about. */
Test(tensor_random, reductions) {
    static const unsigned types[] = {TENSOR_UINT32, TENSOR_INT32, TENSOR_UINT64, TENSOR_INT64};
    for (unsigned rank = 1; rank <= RANK_MAX; rank++) {
        const struct box_model like = {.rank = rank, .stores = true};
        for (int i = 0; i < OPERATIONS; i++) {
            char name[16];
            snprintf(name, sizeof name, "%s%u", operation_names[i], rank);
            current = (enum operation)i;
            /* inc and dec are for u32 alone, and of s64 there are min and max alone. */
            unsigned known = current == INC || current == DEC   ? 1
                             : current == MIN || current == MAX ? 4
                                                                : 3;
            for (int k = 0; k < 2; k++) {
                for (unsigned b = 0; b < BLOCKS; b++) {
                    make_case(b, &like, types[dice(known)]);
                }
                check_stores(name, visit_reduce);
            }
        }
    }
    check_said(2000, true);
}

Test(tensor_random, im2col_loads) {
    for (unsigned rank = 3; rank <= RANK_MAX; rank++) {
        char name[16];
        snprintf(name, sizeof name, "image%u", rank);
        for (int i = 0; i < 25; i++) {
            make_cases(rank, true, false);
            check_loads(name);
        }
    }
    check_said(2000, false);
}

/* A pixel that comes twice is written twice; the later one stays, as here. */
Test(tensor_random, im2col_stores) {
    for (unsigned rank = 3; rank <= RANK_MAX; rank++) {
        char name[16];
        snprintf(name, sizeof name, "put%u", rank);
        for (int i = 0; i < 15; i++) {
            make_cases(rank, true, true);
            for (unsigned b = 0; b < BLOCKS; b++) {
                memset(all.host_records[b].offsets, 0, sizeof all.host_records[b].offsets);
            }
            check_stores(name, visit_store);
        }
    }
    check_said(1000, false);
}
