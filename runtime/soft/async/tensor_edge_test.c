/*
 * Boxes at the ends of a tensor's rows: what an H200 was measured to do with them. Source:
 * fixtures/ptx/cases/h200-edges.txt, which has f32 and bf16.
 */
/* The measured text is read: a malformed number fails the test as well. */
/* NOLINTBEGIN(cert-err34-c) */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    setenv("TOLLENS_SOFT_BUDGET", "20000000", 1);
    test_capture(stderr);
    test_soft_open();
}

TestSuite(tensor_edge, .init = begin, .fini = test_soft_close);

enum { ROWS = 2, PITCH = 192, BOX_BYTES = 64, MEMORY = ROWS * PITCH, BOX = ROWS * BOX_BYTES };
enum { UINT8 = 0, FLOAT32 = 7, FLOAT64 = 8, BFLOAT16 = 9 };

/* What the kernels read; they know the places. */
struct data {
    CUtensorMap map;
    int32_t x, y;
    uint64_t tensor; /* byte 136 */
    uint8_t unused[16];
    uint8_t box[BOX]; /* byte 160: what is stored, or has come */
};
_Static_assert(offsetof(struct data, box) == 160, "the kernels use these offsets");

/* One thread: what precedes the copy, the copy, and what follows it. */
#define EDGE(before, copy, after)                                                                  \
    TEST_KERNEL_WITH(                                                                              \
        ".shared .align 128 .b8 s[128]; .shared .align 8 .b64 m;",                                 \
        "ld.global.u32 %r20, [%rd1+128]; ld.global.u32 %r21, [%rd1+132]; mov.u32 %r10, m;\n"       \
        "mov.u32 %r11, s; mov.u32 %r5, 0; mov.u64 %rd3, %rd1;\n" before copy after)
#define FILL                                                                                       \
    "FILL: ld.global.u32 %r7, [%rd3+160]; st.shared.u32 [%r11], %r7; add.u32 %r11, %r11, 4;\n"     \
    "add.u64 %rd3, %rd3, 4; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 32; @%p1 bra FILL;\n"       \
    "fence.proxy.async;\n"
#define WRITTEN "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
#define OUT "global.shared::cta"

static const char store_text[] =
    EDGE(FILL, "cp.async.bulk.tensor.2d." OUT ".bulk_group [%rd1, {%r20, %r21}], [s];\n", WRITTEN);
static const char reduce_text[] =
    EDGE(FILL, "cp.reduce.async.bulk.tensor.2d." OUT ".add.bulk_group [%rd1, {%r20, %r21}], [s];\n",
         WRITTEN);
static const char load_text[] =
    EDGE("mbarrier.init.shared.b64 [m], 1; fence.mbarrier_init.release.cluster;\n"
         "mbarrier.arrive.expect_tx.shared.b64 _, [m], 128;\n",
         "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
         "[s], [%rd1, {%r20, %r21}], [m];\n",
         "LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra LOOP;\n"
         "BACK: ld.shared.u32 %r7, [%r11]; st.global.u32 [%rd3+160], %r7; add.u32 %r11, %r11, 4;\n"
         "add.u64 %rd3, %rd3, 4; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 32; @%p1 bra BACK;\n");

/* A tensor's bytes per row, and the byte of the row at which a box begins. */
struct edge {
    int type, each, row, at;
};

/* Runs a copy of the box at the tensor's first row. The tensor has allocated bytes, all written if
 * memory is given, which comes back. */
static CUresult run(const char *text, const struct edge *edge, struct data *data, uint8_t *memory,
                    size_t allocated) {
    CUdeviceptr tensor = 0;
    const cuuint64_t sizes[2] = {(cuuint64_t)(edge->row / edge->each), ROWS}, strides[1] = {PITCH};
    const cuuint32_t box[2] = {(cuuint32_t)(BOX_BYTES / edge->each), ROWS}, steps[2] = {1, 1};
    cr_assert_eq(cuMemAlloc_v2(&tensor, allocated), CUDA_SUCCESS);
    if (memory != NULL) cuMemcpyHtoD_v2(tensor, memory, allocated);
    cr_assert_eq(cuTensorMapEncodeTiled(&data->map, edge->type, 2, (void *)(uintptr_t)tensor, sizes,
                                        strides, box, steps, 0, 0, 0, 0),
                 CUDA_SUCCESS, "%s", test_log());
    data->x = edge->at / edge->each;
    data->y = 0;
    data->tensor = tensor;
    CUresult result = test_run(text, 1, 1, data, sizeof *data);
    if (result == CUDA_SUCCESS && memory != NULL) cuMemcpyDtoH_v2(memory, tensor, allocated);
    if (result == CUDA_SUCCESS) cuMemFree_v2(tensor);
    return result;
}

/* ---- every case ---- */

enum operation { STORE, REDUCE, LOAD, OPERATIONS };
static const char *const texts[] = {store_text, reduce_text, load_text};

/* Copies, copies, bytes. */
static struct { size_t exact, refused, behind; } seen;

static bool is_refused(enum operation operation, const struct edge *edge) {
    return edge->at % 16 != 0 || (edge->at < 0 && operation != LOAD);
}

static void check_refused(enum operation operation, const struct edge *edge, CUresult result) {
    char at[80];
    snprintf(at, sizeof at, "the box begins at %d along dimension 0, %s", edge->at / edge->each,
             edge->at % 16 != 0 ? "which is byte " : "before the tensor");
    cr_assert_eq(result, CUDA_ERROR_ILLEGAL_INSTRUCTION, "%d, row of %d at %d: %d", (int)operation,
                 edge->row, edge->at, (int)result);
    cr_assert(strstr(test_log(), at) != NULL, "%s: %s", at, test_log());
    seen.refused++;
    test_soft_close();
    test_soft_open();
}

/* Byte by byte: memory was zeros, and the sum of zero and anything is that. */
static void check_written(const struct edge *edge, const struct data *data, const uint8_t *memory) {
    int end = (edge->row + 15) / 16 * 16;
    for (int i = 0; i < MEMORY; i++) {
        int row = i / PITCH, byte = i % PITCH, in_box = byte - edge->at;
        bool written = byte < end && in_box >= 0 && in_box < BOX_BYTES;
        int wanted = written ? data->box[row * BOX_BYTES + in_box] : 0;
        cr_assert_eq(memory[i], wanted, "row of %d at %d: byte %d is %d, not %d", edge->row,
                     edge->at, i, memory[i], wanted);
        seen.behind += written && byte >= edge->row;
    }
}

static void check_loaded(const struct edge *edge, const struct data *data, const uint8_t *memory) {
    for (int i = 0; i < BOX; i++) {
        int row = i / BOX_BYTES, byte = edge->at + i % BOX_BYTES;
        int wanted = byte >= 0 && byte < edge->row ? memory[row * PITCH + byte] : 0;
        cr_assert_eq(data->box[i], wanted, "row of %d at %d: byte %d is %d, not %d", edge->row,
                     edge->at, i, data->box[i], wanted);
    }
}

static void try(enum operation operation, const struct edge *edge) {
    static struct data data;
    uint8_t memory[MEMORY] = {0};
    for (int i = 0; i < BOX; i++) data.box[i] = (uint8_t)(i + 1);
    for (int i = 0; i < BOX / 4 && operation == REDUCE && edge->type == FLOAT32; i++) {
        float value = (float)(i + 1); /* words of small bytes are subnormal, and sums flush them */
        memcpy(data.box + 4 * i, &value, sizeof value);
    }
    for (int i = 0; i < MEMORY && operation == LOAD; i++) memory[i] = (uint8_t)(i % 251 + 1);
    CUresult result = run(texts[operation], edge, &data, memory, sizeof memory);
    if (is_refused(operation, edge)) {
        check_refused(operation, edge, result);
        return;
    }
    cr_assert_eq(result, CUDA_SUCCESS, "%d: %s", (int)result, test_log());
    seen.exact++;
    if (operation == LOAD) {
        check_loaded(edge, &data, memory);
    } else {
        check_written(edge, &data, memory);
    }
}

/* The measured box positions, in rows that end 0 to 15 bytes after a unit. */
static void try_rows(int type, int each, const int *rows, size_t count) {
    for (size_t r = 0; r < count; r++) {
        int row = rows[r], last = row / 16 * 16;
        const int places[] = {-16,      -12,  -4,  0,       4,        last - 16,
                              row - 12, last, row, row + 4, last + 16};
        for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
            struct edge edge = {type, each, row, places[p] / each * each};
            for (int o = 0; o < OPERATIONS; o++) {
                /* There are no sums of bytes and of f64. */
                if (o == REDUCE && (type == UINT8 || type == FLOAT64)) continue;
                try((enum operation)o, &edge);
            }
        }
    }
}

Test(tensor_edge, words) {
    static const int rows[] = {132, 136, 140, 144, 148};
    try_rows(FLOAT32, 4, rows, sizeof rows / sizeof rows[0]);
    cr_assert(seen.exact > 50 && seen.refused > 80 && seen.behind > 250, "%zu, %zu, %zu",
              seen.exact, seen.refused, seen.behind);
}

Test(tensor_edge, halves) {
    static const int rows[] = {66, 68, 70, 72, 74};
    try_rows(BFLOAT16, 2, rows, sizeof rows / sizeof rows[0]);
    cr_assert(seen.exact > 50 && seen.refused > 80 && seen.behind > 350, "%zu, %zu, %zu",
              seen.exact, seen.refused, seen.behind);
}

Test(tensor_edge, bytes_and_doubles) {
    static const int rows[] = {65, 79, 80}, wide_rows[] = {72, 80};
    try_rows(UINT8, 1, rows, sizeof rows / sizeof rows[0]);
    try_rows(FLOAT64, 8, wide_rows, sizeof wide_rows / sizeof wide_rows[0]);
    cr_assert(seen.exact > 20 && seen.refused > 40 && seen.behind > 80, "%zu, %zu, %zu", seen.exact,
              seen.refused, seen.behind);
}

/* ---- what an H200 did ---- */

/* Says of a row what has come there, as the measurement does: of zeros before. */
static size_t describe_row(const struct edge *edge, const uint8_t *memory, int row, char *line,
                           size_t room) {
    int first = -1, last = -1, count = 0;
    char behind[400] = "";
    size_t length = 0;
    for (int i = 0; i < PITCH; i++) {
        int value = memory[row * PITCH + i];
        if (value == 0) continue;
        first = first < 0 ? i : first;
        last = i;
        count++;
        if (i < edge->row) continue;
        length += (size_t)snprintf(behind + length, sizeof behind - length, "%s%d",
                                   length > 0 ? ", " : "", value);
    }
    if (count == 0) return 0;
    return (size_t)snprintf(line, room, "%srow %d: %d..%d (%d) behind: [%s]", row > 0 ? "; " : "",
                            row, first, last, count, behind);
}

/* Does what a line of the measurement is about, and says the same of it. */
static void repeat(const struct edge *edge, enum operation operation, char *line, size_t room) {
    static struct data data;
    uint8_t memory[MEMORY] = {0};
    const float one = 1;
    for (int i = 0; i < BOX; i++) data.box[i] = (uint8_t)(i + 1);
    for (int i = 0; i < BOX && operation == REDUCE; i += 4) memcpy(data.box + i, &one, sizeof one);
    for (int i = 0; i < MEMORY && operation == LOAD; i++) memory[i] = (uint8_t)(i % 251 + 1);
    CUresult result = run(texts[operation], edge, &data, memory, sizeof memory);
    if (result != CUDA_SUCCESS) {
        snprintf(line, room, "launch 0, synchronize %d", (int)result);
        test_soft_close();
        test_soft_open();
    } else if (operation == LOAD) {
        check_loaded(edge, &data, memory);
        snprintf(line, room, "exact, zeros outside");
    } else {
        size_t length = 0;
        for (int row = 0; row < ROWS; row++) {
            length += describe_row(edge, memory, row, line + length, room - length);
        }
        if (length == 0) snprintf(line, room, "nothing written");
    }
}

Test(tensor_edge, each_line_of_the_measurement_comes_again) {
    char *measured = test_fixture("cases", "h200-edges.txt");
    size_t lines = 0;
    for (char *line = strtok(measured, "\n"); line != NULL; line = strtok(NULL, "\n"), lines++) {
        char type[8], name[8], said[1000];
        struct edge edge = {0};
        int begin_of_rest = 0;
        cr_assert_eq(sscanf(line, "%7s row of %d bytes, %7s at byte %d: %n", type, &edge.row, name,
                            &edge.at, &begin_of_rest),
                     4, "%s", line);
        bool words = strcmp(type, "f32") == 0;
        cr_assert(words || strcmp(type, "bf16") == 0, "%s", line);
        edge.type = words ? FLOAT32 : BFLOAT16;
        edge.each = words ? 4 : 2;
        enum operation operation = name[0] == 's' ? STORE : name[0] == 'r' ? REDUCE : LOAD;
        repeat(&edge, operation, said, sizeof said);
        cr_assert_str_eq(said, line + begin_of_rest, "%s, and here: %s", line, said);
    }
    cr_assert_eq(lines, 239, "%zu", lines);
    free(measured);
}

/* ---- what is said of it ---- */

Test(tensor_edge, what_is_written_behind_a_row_is_a_note) {
    static const struct {
        const char *text;
        int row, at;
        const char *said; /* NULL: nothing */
    } cases[] = {
        {store_text, 148, 128,
         "box behind row in kernel k in block (0,0,0), thread (0,0,0), at PTX line 14: "
         "cp.async.bulk.tensor"},
        {store_text, 148, 144,
         "a row of 148 bytes is written in units of 16 bytes, so the 12 bytes after it at 0x"},
        {store_text, 148, 144, " are overwritten"},
        {reduce_text, 132, 128, " are changed"},
        {store_text, 148, 80, NULL},
        {store_text, 144, 128, NULL},
        {load_text, 148, 128, NULL},
    };
    /* A note never ends a launch. */
    setenv("TOLLENS_SOFT_CHECK", "memory,init,sync,race,fatal", 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct data data;
        uint8_t memory[MEMORY] = {0};
        struct edge edge = {FLOAT32, 4, cases[i].row, cases[i].at};
        test_soft_close();
        test_capture(stderr);
        test_soft_open();
        cr_assert_eq(run(cases[i].text, &edge, &data, memory, sizeof memory), CUDA_SUCCESS, "%s",
                     test_log());
        const char *said = test_captured(stderr), *first = strstr(said, "box behind row");
        if (cases[i].said == NULL) {
            cr_assert_str_eq(said, "", "%zu: %s", i, said);
            continue;
        }
        cr_assert(first != NULL && strstr(first + 1, "box behind row") == NULL, "%zu: %s", i, said);
        cr_assert(strstr(said, cases[i].said) != NULL, "%zu: %s", i, said);
        char at[64];
        snprintf(at, sizeof at, "after it at 0x%llx are",
                 (unsigned long long)data.tensor + (unsigned)cases[i].row);
        cr_assert(strstr(said, at) != NULL, "%zu: %s is not in %s", i, at, said);
    }
}

/* The last row ends with the allocation; its last unit does not. */
Test(tensor_edge, a_unit_behind_the_allocation_is_out_of_bounds) {
    static const struct {
        const char *text;
        int row, at;
        CUresult result;
    } cases[] = {
        {load_text, 148, 128, CUDA_SUCCESS},
        {store_text, 148, 80, CUDA_SUCCESS},
        {store_text, 144, 128, CUDA_SUCCESS},
        {store_text, 148, 128, CUDA_ERROR_ILLEGAL_ADDRESS},
        {reduce_text, 148, 144, CUDA_ERROR_ILLEGAL_ADDRESS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct data data;
        uint8_t memory[MEMORY] = {0};
        struct edge edge = {FLOAT32, 4, cases[i].row, cases[i].at};
        test_soft_close();
        test_soft_open();
        CUresult result = run(cases[i].text, &edge, &data, memory, (size_t)(PITCH + cases[i].row));
        cr_assert_eq(result, cases[i].result, "%zu: %d: %s", i, (int)result, test_log());
    }
    cr_assert(strstr(test_log(), "a store of 16 bytes at 0x") != NULL, "%s", test_log());
}

/* Reads, in fresh memory, the words after a row that a store has written, and the words after
 * those. */
Test(tensor_edge, what_is_written_behind_a_row_counts_as_written) {
#define READ(offset)                                                                               \
    EDGE(FILL, "cp.async.bulk.tensor.2d." OUT ".bulk_group [%rd1, {%r20, %r21}], [s];\n",          \
         WRITTEN "ld.global.u64 %rd5, [%rd1+136]; ld.global.u32 %r8, [%rd5+" offset "];\n"         \
                 "st.shared.u32 [s], %r8;\n")
    static const struct {
        const char *text;
        bool written;
    } cases[] = {
        {READ("144"), true}, {READ("148"), true},  {READ("156"), true},
        {READ("348"), true}, {READ("160"), false}, {READ("352"), false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct data data;
        struct edge edge = {FLOAT32, 4, 148, 144};
        test_soft_close();
        test_capture(stderr);
        test_soft_open();
        cr_assert_eq(run(cases[i].text, &edge, &data, NULL, MEMORY), CUDA_SUCCESS, "%s",
                     test_log());
        bool reported = strstr(test_captured(stderr), "uninitialised read") != NULL;
        cr_assert_eq(reported, !cases[i].written, "%zu: %s", i, test_captured(stderr));
    }
}
/* NOLINTEND(cert-err34-c) */
