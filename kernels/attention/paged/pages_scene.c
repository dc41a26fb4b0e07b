/*
 * The operands of attention over paged sequences, and each sequence by itself from rows.
 */
#include "attention/paged/pages_scene.h"

#include "inputs.h"
#include "kernel_scene.h"
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = PAGES_SEQUENCES, Q_ROWS = PAGES_Q_ROWS, SLOTS = SEQUENCES + 2 };
const int pages_q_begins[SEQUENCES + 1] = {2, 2, 7, 137, 138, 138, 148, 337};
const int pages_positions[SEQUENCES] = {3, 7, 130, 201, 55, 0, 114};

static size_t element(const struct pages_scene *s) {
    return kn_type_bytes(s->type);
}

static size_t q_pitch(const struct pages_scene *s) {
    return PAGES_HEADS * s->head_size + 16 / element(s);
}

static size_t kv_pitch(const struct pages_scene *s) {
    return s->kv_heads * s->head_size;
}

static size_t out_bytes(const struct pages_scene *s) {
    return Q_ROWS * q_pitch(s) * element(s);
}

static size_t part_bytes(const struct pages_scene *s) {
    return s->page_positions * kv_pitch(s) * element(s);
}

size_t pages_scene_first(int sequence) {
    size_t first = 0;
    for (int i = 0; i < sequence; i++) first += (size_t)pages_positions[i];
    return first;
}

static int slot_of(int sequence) {
    return SEQUENCES - sequence;
}

size_t pages_scene_entry(const struct pages_scene *s, int sequence, size_t page) {
    return (size_t)slot_of(sequence) * s->pages_max + page;
}

/* ---- operands -------------------------------------------------------------------------------- */

static void *bytes_of(const struct pages_scene *s, const float *values, size_t count) {
    unsigned char *bytes = malloc(count * element(s));
    cr_assert(bytes != NULL);
    kn_numbers_store(s->type, values, count, bytes);
    return bytes;
}

static void make(struct kn_guarded *guarded, size_t bytes, size_t skew, const void *data) {
    MUST(kn_guarded_create(test_context(), bytes, skew, guarded));
    if (data != NULL) MUST(kn_guarded_write(guarded, data));
}

static void make_buffer(struct tol_buffer **buffer, size_t bytes, const void *data) {
    MUST(tol_buffer_create(test_context(), bytes, 1, buffer));
    MUST(tol_buffer_write(*buffer, data, bytes));
}

static float *draw(size_t count, uint64_t seed) {
    float *values = malloc(count * sizeof *values);
    cr_assert(values != NULL);
    kn_inputs_draw(KN_NORMAL, &seed, 1, values, count);
    return values;
}

/* Rounds the values as they are stored, and gives them to the device. */
static void store(const struct pages_scene *s, float *values, size_t count, size_t skew,
                  struct kn_guarded *guarded) {
    void *bytes = bytes_of(s, values, count);
    kn_numbers_load(s->type, bytes, count, values);
    make(guarded, count * element(s), skew, bytes);
    free(bytes);
}

/* Of the keys or values of a page, in elements. */
static size_t inside(const struct pages_scene *s, bool value, size_t head, size_t position,
                     size_t i) {
    const size_t size = s->head_size, at = position % s->page_positions;
    if (s->layout == PAGES_HEADS_INSIDE) return (at * s->kv_heads + head) * size + i;
    if (s->layout == PAGES_HEADS_AROUND || value) {
        return (head * s->page_positions + at) * size + i;
    }
    return head * s->page_positions * size + (i / 8 * s->page_positions + at) * 8 + i % 8;
}

/* The number of the page in the pool: no page is beside its neighbour. */
static size_t shuffled(size_t page, size_t pages) {
    return (page * 5 + 3) % pages;
}

static void fill_page(const struct pages_scene *s, unsigned char *page, int sequence,
                      size_t position) {
    const size_t row = (pages_scene_first(sequence) + position) * kv_pitch(s);
    for (int part = 0; part < 2; part++) {
        unsigned char *to = page + PAGES_AT + (size_t)part * part_bytes(s);
        for (size_t i = 0; i < kv_pitch(s); i++) {
            const size_t head = i / s->head_size, of_head = i % s->head_size;
            const size_t at = inside(s, part == 1, head, position, of_head);
            kn_numbers_store(s->type, s->values[1 + part] + row + i, 1, to + at * element(s));
        }
    }
}

/* Fills the pool and the table. Entries of no page are addresses that cannot be read. */
static void make_pages(struct pages_scene *s) {
    size_t used = 0, pages = 1; /* no multiple of 5: shuffled is a permutation */
    s->pages_max = (PAGES_LONGEST + s->page_positions - 1) / s->page_positions + 1;
    for (int i = 0; i < SEQUENCES; i++) {
        pages += ((size_t)pages_positions[i] + s->page_positions - 1) / s->page_positions;
    }
    if (pages % 5 == 0) pages++;
    s->page_bytes = PAGES_AT + 2 * part_bytes(s) + 128;
    s->page_bytes -= s->page_bytes % 128;
    unsigned char *bytes = malloc(pages * s->page_bytes);
    s->table = malloc(SLOTS * s->pages_max * sizeof *s->table);
    cr_assert(bytes != NULL && s->table != NULL);
    memset(bytes, 0xff, pages * s->page_bytes);
    make(&s->pool, pages * s->page_bytes, 0, NULL);
    const CUdeviceptr pool = tol_buffer_address(s->pool.buffer) + s->pool.offset;
    for (size_t i = 0; i < SLOTS * s->pages_max; i++) s->table[i] = 16;
    for (int i = SEQUENCES - 1; i >= 0; i--) { /* 3 before 2, which has some of its pages */
        for (size_t p = 0; p < (size_t)pages_positions[i]; p += s->page_positions) {
            const size_t entry = pages_scene_entry(s, i, p / s->page_positions);
            if (i == 2 && p + s->page_positions <= PAGES_SHARED) {
                s->table[entry] = s->table[pages_scene_entry(s, 3, p / s->page_positions)];
                continue;
            }
            const size_t page = shuffled(used++, pages) * s->page_bytes;
            s->table[entry] = pool + page;
            for (size_t at = p; at < p + s->page_positions && at < (size_t)pages_positions[i];
                 at++) {
                fill_page(s, bytes + page, i, at);
            }
        }
    }
    MUST(kn_guarded_write(&s->pool, bytes));
    free(bytes);
    make_buffer(&s->tables, SLOTS * s->pages_max * sizeof *s->table, s->table);
}

void pages_scene_begin(struct pages_scene *s, uint64_t seed) {
    const size_t kv = PAGES_POSITIONS * kv_pitch(s);
    int slots[SEQUENCES];
    for (int i = 0; i < SEQUENCES; i++) slots[i] = slot_of(i);
    s->got = malloc(out_bytes(s)), s->expected = malloc(out_bytes(s));
    cr_assert(s->got != NULL && s->expected != NULL);
    memset(s->expected, 0xff, out_bytes(s));
    memset(s->expected_lse, 0xff, sizeof s->expected_lse);
    s->values[0] = draw(Q_ROWS * q_pitch(s), seed);
    for (int i = 1; i < 3; i++) {
        s->values[i] = draw(kv, seed + (uint64_t)i);
        memcpy(s->values[i] + pages_scene_first(2) * kv_pitch(s),
               s->values[i] + pages_scene_first(3) * kv_pitch(s),
               PAGES_SHARED * kv_pitch(s) * sizeof(float));
    }
    store(s, s->values[0], Q_ROWS * q_pitch(s), 16, &s->q);
    store(s, s->values[1], kv, 16, &s->k);
    store(s, s->values[2], kv, 16, &s->v);
    make_pages(s);
    make(&s->out, out_bytes(s), 16, s->expected);
    make(&s->alone, out_bytes(s), 16, s->expected);
    make_buffer(&s->lse, sizeof s->expected_lse, s->expected_lse);
    make_buffer(&s->alone_lse, sizeof s->expected_lse, s->expected_lse);
    make_buffer(&s->q_begins, sizeof pages_q_begins, pages_q_begins);
    make_buffer(&s->positions, sizeof pages_positions, pages_positions);
    make_buffer(&s->slots, sizeof slots, slots);
}

void pages_scene_end(struct pages_scene *s) {
    struct kn_guarded *const guarded[] = {&s->q, &s->k, &s->v, &s->out, &s->alone, &s->pool};
    struct tol_buffer *const buffers[] = {s->lse,       s->alone_lse, s->q_begins,
                                          s->positions, s->slots,     s->tables};
    for (int i = 0; i < 6; i++) kn_guarded_destroy(guarded[i]);
    for (int i = 0; i < 6; i++) tol_buffer_destroy(buffers[i]);
    for (int i = 0; i < 3; i++) free(s->values[i]);
    free(s->table);
    free(s->got);
    free(s->expected);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* One head after the other in each row; from row `first` on. */
static struct kn_heads heads_at(const struct pages_scene *s, const struct kn_guarded *guarded,
                                size_t pitch, size_t first) {
    return (struct kn_heads){.buffer = guarded->buffer,
                             .offset = guarded->offset / element(s) + first * pitch,
                             .head_stride = s->head_size,
                             .row_stride = pitch};
}

static struct kn_paged_part part_of(const struct pages_scene *s, bool value) {
    const size_t size = s->head_size;
    struct kn_paged_part part = {.at = PAGES_AT + (value ? part_bytes(s) : 0)};
    if (s->layout == PAGES_HEADS_INSIDE) {
        part.head_stride = size, part.row_stride = s->kv_heads * size;
    }
    if (s->layout == PAGES_PIECES && !value) {
        part.head_stride = s->page_positions * size, part.row_stride = 8;
        part.piece_stride = 8 * s->page_positions;
    }
    return part;
}

struct kn_attention_paged pages_scene_wish(const struct pages_scene *s, const char *variant,
                                           size_t window) {
    return (struct kn_attention_paged){
        .attention = {.type = s->type,
                      .batch = SEQUENCES,
                      .heads = PAGES_HEADS,
                      .kv_heads = s->kv_heads,
                      .q_length = PAGES_LONGEST_Q,
                      .kv_length = PAGES_LONGEST,
                      .head_size = s->head_size,
                      .causal = window > 0,
                      .window = window < PAGES_POSITIONS ? window : 0,
                      .q = heads_at(s, &s->q, q_pitch(s), 0),
                      .out = heads_at(s, &s->out, q_pitch(s), 0),
                      .lse = s->lse},
        .q_rows = Q_ROWS,
        .q_begins = kn_place_of(s->q_begins, 0),
        .positions = kn_place_of(s->positions, 0),
        .slots = kn_place_of(s->slots, 0),
        .tables = kn_place_of(s->tables, 0),
        .pages_max = s->pages_max,
        .page_positions = s->page_positions,
        .k = part_of(s, false),
        .v = part_of(s, true),
        .pool = {tol_buffer_address(s->pool.buffer) + s->pool.offset, s->pool.bytes},
        .variant = variant};
}

void pages_scene_run(struct pages_scene *s, const struct kn_attention_paged *wish) {
    size_t changed = 1;
    MUST(kn_attention_paged(kernels, stream, wish));
    MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    MUST(kn_guarded_read(&s->out, s->got));
    MUST(kn_guarded_check(&s->out, &changed));
    cr_assert(changed == 0);
    MUST(tol_buffer_read(s->lse, s->got_lse, sizeof s->got_lse));
}

void pages_scene_solve_alone(struct pages_scene *s, const struct kn_attention_paged *wish) {
    static float values[PAGES_LSE];
    const size_t row_bytes = q_pitch(s) * element(s);
    for (int i = 0; i < SEQUENCES; i++) {
        struct kn_attention x = wish->attention;
        const size_t from = (size_t)pages_q_begins[i], first = pages_scene_first(i);
        const size_t rows = (size_t)pages_q_begins[i + 1] - from;
        x.batch = 1, x.q_length = rows, x.kv_length = (size_t)pages_positions[i];
        x.q = heads_at(s, &s->q, q_pitch(s), from),
        x.out = heads_at(s, &s->alone, q_pitch(s), from);
        x.k = heads_at(s, &s->k, kv_pitch(s), first), x.v = heads_at(s, &s->v, kv_pitch(s), first);
        x.lse = s->alone_lse, x.variant = x.kv_length > 0 ? wish->variant : NULL;
        MUST(kn_attention(kernels, stream, &x));
        MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
        MUST(tol_buffer_read(s->alone_lse, values, sizeof values));
        for (size_t h = 0; h < PAGES_HEADS; h++) {
            memcpy(s->expected_lse + h * Q_ROWS + from, values + h * rows, rows * sizeof *values);
        }
    }
    MUST(kn_guarded_read(&s->alone, s->expected));
    for (int i = 0; i < SEQUENCES && wish->attention.window != 0; i++) {
        const size_t from = (size_t)pages_q_begins[i];
        if ((size_t)pages_q_begins[i + 1] - from != 1) continue;
        memcpy(s->expected + from * row_bytes, s->got + from * row_bytes, row_bytes);
        for (size_t h = 0; h < PAGES_HEADS; h++) {
            s->expected_lse[h * Q_ROWS + from] = s->got_lse[h * Q_ROWS + from];
        }
    }
}

size_t pages_scene_differs(const struct pages_scene *s) {
    const unsigned char *lse = (const unsigned char *)s->got_lse;
    const unsigned char *expected_lse = (const unsigned char *)s->expected_lse;
    for (size_t i = 0; i < out_bytes(s); i++) {
        if (s->got[i] != s->expected[i]) return i;
    }
    for (size_t i = 0; i < sizeof s->got_lse; i++) {
        if (lse[i] != expected_lse[i]) return out_bytes(s) + i;
    }
    return SIZE_MAX;
}
