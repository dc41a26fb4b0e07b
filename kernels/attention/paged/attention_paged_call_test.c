/*
 * attention over paged sequences: a decoder's pages, lengths that make no sense, which variant
 * serves, and what is refused.
 */
#include "attention/paged/pages_scene.h"

#include "decode/paged.h"
#include "kernel_scene.h"
#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>

TestSuite(attention_paged_call, .init = kernel_scene_begin, .fini = kernel_scene_end);

enum { SEQUENCES = SEQUENCES_COUNT };

static struct pages_scene begin(enum kn_type type, size_t head_size, enum pages_layout layout) {
    struct pages_scene s = {.rows = {.type = type, .head_size = head_size, .kv_heads = 1},
                            .page_positions = 32,
                            .layout = layout};
    pages_scene_begin(&s, head_size);
    return s;
}

/* The rows of sequence 2, each at its own position, by attention over a decoder's pages. */
static float *decode(const struct pages_scene *s, size_t rows, size_t pitch) {
    const struct kn_paged_heads shape = {SEQUENCES_HEADS, s->rows.kv_heads, s->rows.head_size,
                                         KN_CACHE_F16};
    const size_t splits = PAGES_LONGEST / KN_PAGED_SPAN + 1,
                 width = SEQUENCES_HEADS * s->rows.head_size;
    tol_auto_buffer struct tol_buffer *numbers = NULL, *q = NULL, *out = NULL, *workspace = NULL;
    int *state = malloc(2 * rows * sizeof *state);
    float *got = malloc(rows * width * sizeof *got);
    cr_assert(state != NULL && got != NULL);
    for (size_t i = 0; i < rows; i++) {
        state[i] = (int)i, state[rows + i] = (int)(pages_scene_entry(s, 2, 0) / s->pages_max);
    }
    MUST(tol_buffer_create(test_context(), 2 * rows, sizeof *state, &numbers));
    MUST(tol_buffer_write(numbers, state, 2 * rows * sizeof *state));
    MUST(tol_buffer_create(test_context(), rows * pitch, sizeof(float), &q));
    MUST(tol_buffer_write(q, s->rows.values[0] + (size_t)sequences_q_begins[2] * pitch,
                          rows * pitch * sizeof(float)));
    MUST(tol_buffer_create(test_context(), rows * width, sizeof(float), &out));
    MUST(
        tol_buffer_create(test_context(), kn_paged_workspace(&shape, rows, splits), 1, &workspace));
    const struct kn_paged_rows batch = {.rows = rows,
                                        .positions = kn_place_of(numbers, 0),
                                        .slots = kn_place_of(numbers, rows * sizeof *state),
                                        .tables = kn_place_of(s->tables, 0),
                                        .pages_max = s->pages_max,
                                        .layer_at = PAGES_AT};
    MUST(kn_paged_attention(kernels, stream,
                            &(struct kn_paged){.batch = batch,
                                               .shape = shape,
                                               .q = kn_place_of(q, 0),
                                               .out = kn_place_of(out, 0),
                                               .q_stride = pitch,
                                               .out_stride = width,
                                               .splits = splits,
                                               .workspace = kn_place_of(workspace, 0)}));
    MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    MUST(tol_buffer_read(out, got, rows * width * sizeof *got));
    free(state);
    return got;
}

/* The same pages and the same tables as decode/paged.h takes. */
Test(attention_paged_call, a_decoders_pages_serve_prompts) {
    static const char *const variants[] = {"naive", "tensor"};
    const int capability = tol_context_device(test_context())->compute_capability;
    struct pages_scene s = {.rows = {.type = KN_F16, .head_size = 64, .kv_heads = 2},
                            .page_positions = KN_PAGE_POSITIONS,
                            .layout = PAGES_PIECES};
    pages_scene_begin(&s, 5);
    const size_t rows = (size_t)(sequences_q_begins[3] - sequences_q_begins[2]);
    const size_t width = SEQUENCES_HEADS * s.rows.head_size, pitch = width + 8;
    float *expected = decode(&s, rows, pitch), got[SEQUENCES_HEADS * 64];
    for (int i = 0; i < (capability < 80 ? 1 : 2); i++) {
        const struct kn_attention_paged wish = pages_scene_wish(&s, variants[i], PAGES_POSITIONS);
        pages_scene_run(&s, &wish);
        for (size_t row = 0; row < rows; row++) {
            const size_t from = ((size_t)sequences_q_begins[2] + row) * pitch;
            kn_numbers_load(KN_F16, s.rows.got + from * sizeof(uint16_t), width, got);
            for (size_t e = 0; e < width; e++) {
                /* Weights and results are rounded to fp16, of values of up to 4. */
                const double difference = (double)got[e] - (double)expected[row * width + e];
                cr_assert(!(fabs(difference) > 4e-3), "%s: row %zu, element %zu is %g, not %g",
                          variants[i], row, e, (double)got[e], (double)expected[row * width + e]);
            }
        }
    }
    free(expected);
    pages_scene_end(&s);
}

/* Whatever the device has in begins and lengths: no byte but out's rows is written, and no page is
 * looked up after those of the longest sequence, which the soft device would refuse. */
Test(attention_paged_call, lengths_that_make_no_sense_reach_no_further) {
    static const int begins[][SEQUENCES + 1] = {
        {-5, 40, 40, 100, 1000, INT32_MAX, 340, 341},
        {INT32_MIN, -1, 7, 300, 339, 5000, INT32_MAX, INT32_MAX}};
    static const int positions[SEQUENCES] = {INT32_MAX, -1, 202, INT32_MIN, 201, 1, 5};
    static const char *const variants[] = {"naive", "tensor", "wgmma"};
    const int capability = tol_context_device(test_context())->compute_capability;
    for (unsigned i = 0; i < 6; i++) {
        if ((i / 2 == 1 && capability < 80) || (i / 2 == 2 && capability != 90)) continue;
        struct pages_scene s = begin(KN_F16, 64, PAGES_HEADS_AROUND);
        const struct kn_attention_paged wish =
            pages_scene_wish(&s, variants[i / 2], i % 2 == 0 ? 30 : 0);
        const size_t pages = (PAGES_LONGEST + s.page_positions - 1) / s.page_positions;
        for (int sequence = 0; sequence < SEQUENCES; sequence++) {
            for (size_t page = 0; page < pages; page++) {
                s.table[pages_scene_entry(&s, sequence, page)] =
                    s.table[pages_scene_entry(&s, 3, page)];
            }
        }
        MUST(tol_buffer_write(s.tables, s.table, tol_buffer_bytes(s.tables)));
        MUST(tol_buffer_write(s.rows.q_begins, begins[i % 2], sizeof begins[0]));
        MUST(tol_buffer_write(s.positions, positions, sizeof positions));
        pages_scene_run(&s, &wish);
        pages_scene_end(&s);
    }
}

/* The bits are those of the kernel that is the fastest where it serves. */
Test(attention_paged_call, the_fastest_that_serves_is_chosen) {
    static const size_t sizes[] = {64, 40, 136};
    static const char *const hopper[] = {"wgmma", "wgmma", "naive"};
    static const char *const others[] = {"tensor", "naive", "naive"};
    const int capability = tol_context_device(test_context())->compute_capability;
    if (capability < 80) cr_skip_test("before 8.0");
    for (int i = 0; i < 3; i++) {
        struct pages_scene s = begin(KN_F16, sizes[i], PAGES_HEADS_AROUND);
        struct kn_attention_paged wish = pages_scene_wish(&s, NULL, 0);
        pages_scene_run(&s, &wish);
        wish.variant = capability == 90 ? hopper[i] : others[i];
        pages_scene_solve_alone(&s, &wish);
        cr_assert(sequences_scene_differs(&s.rows) == SIZE_MAX, "heads of %zu", sizes[i]);
        pages_scene_end(&s);
    }
}

#define REFUSED(change, status, text)                                                              \
    do {                                                                                           \
        struct kn_attention_paged p = good;                                                        \
        change;                                                                                    \
        MUST_FAIL(kn_attention_paged(kernels, stream, &p), status, text);                          \
    } while (0)

Test(attention_paged_call, what_cannot_be_is_refused) {
    struct pages_scene s = begin(KN_F16, 64, PAGES_HEADS_AROUND);
    const struct kn_attention_paged good = pages_scene_wish(&s, NULL, 0);
    MUST(kn_attention_paged(kernels, stream, &good));
    MUST_FAIL(kn_attention_paged(kernels, stream, NULL), TOL_INVALID_ARGUMENT, "a problem");
    REFUSED(p.page_positions = 8, TOL_INVALID_ARGUMENT, "a page of 8 positions");
    REFUSED(p.page_positions = 48, TOL_INVALID_ARGUMENT, "a page of 48 positions");
    REFUSED(p.page_positions = 131072, TOL_INVALID_ARGUMENT, "a page of 131072 positions");
    REFUSED(p.pages_max = 6, TOL_OUT_OF_RANGE, "201 positions, and 6 pages of 32");
    REFUSED(p.attention.kv_length = INT32_MAX, TOL_OVER_LIMIT, "2147483647 positions");
    REFUSED(p.attention.batch = 65536, TOL_OVER_LIMIT, "65536 sequences");
    REFUSED(p.q_rows = SEQUENCES_LONGEST_Q - 1, TOL_OUT_OF_RANGE, "a sequence of 189 rows");
    REFUSED(p.attention.kv_heads = 3, TOL_INVALID_ARGUMENT, "cannot share 3");
    REFUSED(p.k.at = 1, TOL_INVALID_ARGUMENT, "k at byte 1 of a page");
    REFUSED(p.v.row_stride = (size_t)1 << 40, TOL_INVALID_ARGUMENT, "v at byte");
    REFUSED(p.q_begins.bytes = 31, TOL_OUT_OF_RANGE, "q_begins needs 32 bytes");
    REFUSED(p.positions.address = 0, TOL_INVALID_ARGUMENT, "positions at 0 is NULL");
    REFUSED(p.slots.address += 2, TOL_INVALID_ARGUMENT, "slots at");
    REFUSED(p.tables.bytes = 63, TOL_OUT_OF_RANGE, "tables needs 64 bytes");
    REFUSED(p.positions = kn_place_of(s.rows.lse, 0), TOL_INVALID_ARGUMENT,
            "lse overlaps positions");
    REFUSED(p.pool.address = tol_buffer_address(s.rows.out.buffer), TOL_INVALID_ARGUMENT,
            "out overlaps pool");
    REFUSED(p.attention.window = 3, TOL_INVALID_ARGUMENT, "not causal");
    REFUSED(p.variant = "cudnn", TOL_NOT_FOUND, "cudnn");
    struct kn_attention_paged none = good;
    none.attention.batch = 0, none.tables.address = 0;
    MUST(kn_attention_paged(kernels, stream, &none));
    pages_scene_end(&s);
}

Test(attention_paged_call, variants_refuse_what_they_cannot_serve) {
    struct pages_scene s = begin(KN_F16, 64, PAGES_PIECES);
    struct kn_attention_paged good = pages_scene_wish(&s, "tensor", 0);
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    REFUSED(p.v.at += 2, TOL_UNSUPPORTED, "multiple of 16 bytes");
    good.variant = "wgmma";
    REFUSED(p.q_rows = p.q_rows, TOL_UNSUPPORTED, "are stored in pieces");
    pages_scene_end(&s);
    s = begin(KN_F16, 64, PAGES_HEADS_INSIDE);
    good = pages_scene_wish(&s, "wgmma", 0);
    MUST(kn_attention_paged(kernels, stream, &good));
    REFUSED(p.pool.address = 0, TOL_UNSUPPORTED, "in which pool the pages lie");
    REFUSED(p.pool.bytes = s.page_bytes / 2, TOL_UNSUPPORTED, "no tensor maps can be made of");
    REFUSED(p.k.at += 2, TOL_UNSUPPORTED, "multiple of 16 bytes");
    REFUSED(p.attention.head_size = 12, TOL_UNSUPPORTED, "a head is no multiple of 16 bytes");
    pages_scene_end(&s);
}
