/*
 * The operands of attention over paged sequences, and each sequence by itself from rows.
 */
#include "attention/paged/pages_scene.h"

#include "kernel_scene.h"
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = SEQUENCES_COUNT, Q_ROWS = SEQUENCES_Q_ROWS, SLOTS = SEQUENCES + 2 };
static const int begins[SEQUENCES + 1] = {0, 3, 10, 140, 341, 396, 396, 510}; /* of positions */
const int pages_positions[SEQUENCES] = {3, 7, 130, 201, 55, 0, 114};

static size_t element(const struct pages_scene *s) {
    return kn_type_bytes(s->rows.type);
}

static size_t part_bytes(const struct pages_scene *s) {
    return s->page_positions * s->rows.kv_pitch * element(s);
}

size_t pages_scene_first(int sequence) {
    return (size_t)begins[sequence];
}

static int slot_of(int sequence) {
    return SEQUENCES - sequence;
}

size_t pages_scene_entry(const struct pages_scene *s, int sequence, size_t page) {
    return (size_t)slot_of(sequence) * s->pages_max + page;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Of the keys or values of a page, in elements. */
static size_t inside(const struct pages_scene *s, bool value, size_t head, size_t position,
                     size_t i) {
    const size_t size = s->rows.head_size, at = position % s->page_positions;
    if (s->layout == PAGES_HEADS_INSIDE) return (at * s->rows.kv_heads + head) * size + i;
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
    const size_t row = (pages_scene_first(sequence) + position) * s->rows.kv_pitch;
    for (int part = 0; part < 2; part++) {
        unsigned char *to = page + PAGES_AT + (size_t)part * part_bytes(s);
        for (size_t i = 0; i < s->rows.kv_pitch; i++) {
            const size_t head = i / s->rows.head_size, of_head = i % s->rows.head_size;
            const size_t at = inside(s, part == 1, head, position, of_head);
            kn_numbers_store(s->rows.type, s->rows.values[1 + part] + row + i, 1,
                             to + at * element(s));
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
    MUST(kn_guarded_create(test_context(), pages * s->page_bytes, 0, &s->pool));
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
    sequences_scene_buffer(&s->tables, SLOTS * s->pages_max * sizeof *s->table, s->table);
}

void pages_scene_begin(struct pages_scene *s, uint64_t seed) {
    struct sequences_scene *rows = &s->rows;
    rows->pitch = SEQUENCES_HEADS * rows->head_size + 16 / element(s);
    rows->kv_pitch = rows->kv_heads * rows->head_size, rows->kv_begins = begins;
    const size_t kv = PAGES_POSITIONS * rows->kv_pitch;
    int slots[SEQUENCES];
    for (int i = 0; i < SEQUENCES; i++) slots[i] = slot_of(i);
    rows->values[0] = sequences_scene_draw(Q_ROWS * rows->pitch, seed);
    sequences_scene_store(rows, rows->values[0], Q_ROWS * rows->pitch, &rows->q);
    for (int i = 1; i < 3; i++) {
        float *values = sequences_scene_draw(kv, seed + (uint64_t)i);
        memcpy(values + pages_scene_first(2) * rows->kv_pitch,
               values + pages_scene_first(3) * rows->kv_pitch,
               PAGES_SHARED * rows->kv_pitch * sizeof(float));
        sequences_scene_store(rows, values, kv, i == 1 ? &rows->k : &rows->v);
        rows->values[i] = values;
    }
    sequences_scene_begin(rows);
    make_pages(s);
    sequences_scene_buffer(&s->positions, sizeof pages_positions, pages_positions);
    sequences_scene_buffer(&s->slots, sizeof slots, slots);
}

void pages_scene_end(struct pages_scene *s) {
    sequences_scene_end(&s->rows);
    kn_guarded_destroy(&s->pool);
    tol_buffer_destroy(s->positions);
    tol_buffer_destroy(s->slots);
    tol_buffer_destroy(s->tables);
    free(s->table);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct kn_paged_part part_of(const struct pages_scene *s, bool value) {
    const size_t size = s->rows.head_size;
    struct kn_paged_part part = {.at = PAGES_AT + (value ? part_bytes(s) : 0)};
    if (s->layout == PAGES_HEADS_INSIDE) {
        part.head_stride = size, part.row_stride = s->rows.kv_heads * size;
    }
    if (s->layout == PAGES_PIECES && !value) {
        part.head_stride = s->page_positions * size, part.row_stride = 8;
        part.piece_stride = 8 * s->page_positions;
    }
    return part;
}

struct kn_attention_paged pages_scene_wish(const struct pages_scene *s, const char *variant,
                                           size_t window) {
    const struct sequences_scene *rows = &s->rows;
    return (struct kn_attention_paged){
        .attention = {.type = rows->type,
                      .batch = SEQUENCES,
                      .heads = SEQUENCES_HEADS,
                      .kv_heads = rows->kv_heads,
                      .q_length = SEQUENCES_LONGEST_Q,
                      .kv_length = PAGES_LONGEST,
                      .head_size = rows->head_size,
                      .causal = window > 0,
                      .window = window < PAGES_POSITIONS ? window : 0,
                      .q = sequences_scene_q(rows, &rows->q, 0),
                      .out = sequences_scene_q(rows, &rows->out, 0),
                      .lse = rows->lse},
        .q_rows = Q_ROWS,
        .q_begins = kn_place_of(rows->q_begins, 0),
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
    MUST(kn_attention_paged(kernels, stream, wish));
    sequences_scene_read(&s->rows);
}

void pages_scene_solve_alone(struct pages_scene *s, const struct kn_attention_paged *wish) {
    struct sequences_scene *rows = &s->rows;
    const size_t row_bytes = rows->pitch * element(s);
    sequences_scene_solve_alone(rows, &wish->attention, wish->variant);
    for (int i = 0; i < SEQUENCES && wish->attention.window != 0; i++) {
        const size_t from = (size_t)sequences_q_begins[i];
        if ((size_t)sequences_q_begins[i + 1] - from != 1) continue;
        memcpy(rows->expected + from * row_bytes, rows->got + from * row_bytes, row_bytes);
        for (size_t h = 0; h < SEQUENCES_HEADS; h++) {
            rows->expected_lse[h * Q_ROWS + from] = rows->got_lse[h * Q_ROWS + from];
        }
    }
}
