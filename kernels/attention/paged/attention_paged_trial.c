/*
 * Puts the keys and values of packed_stage.c into pages, runs a kernel, and has it judged there.
 */
#include "attention/paged/attention_paged_trial.h"

#include "attention/packed/packed_stage.h"
#include "core/check.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 8, PAGE_ALIGNMENT = 128, IN_FRONT = 256 /* bytes of a page before its keys */ };

/* A pool of pages, and the tables that name them. */
struct pages {
    struct kn_paged_part parts[2]; /* of keys, and of values */
    size_t page_bytes, count;      /* the last is nobody's */
    size_t pages_max, entries;     /* of a slot; of all */
    struct kn_guarded pool;
    unsigned char *bytes; /* of the pool */
    uint64_t *table;
    struct tol_buffer *tables, *numbers; /* numbers: positions, then slots */
};

static size_t paged_trial_round_up(size_t bytes, size_t to) {
    return (bytes + to - 1) / to * to;
}

static size_t positions_of(const struct kn_attention_packed_trial *t, size_t sequence) {
    return (size_t)(t->kv_begins[sequence + 1] - t->kv_begins[sequence]);
}

/* Slots are in another order than sequences, and the first is nobody's. */
static size_t paged_trial_slot_of(const struct kn_attention_packed_trial *t, size_t sequence) {
    return t->packed.attention.batch - sequence;
}

/* ---- where things are ------------------------------------------------------------------------ */

static struct kn_paged_part paged_trial_part_of(const struct kn_attention_paged_trial *trial,
                                                bool is_value) {
    const struct kn_attention *x = &trial->sequences.packed.attention;
    const size_t row = x->head_size + trial->sequences.gap;
    if (trial->layout == KN_PAGED_HEADS_INSIDE) {
        return (struct kn_paged_part){.head_stride = row, .row_stride = x->kv_heads * row};
    }
    if (trial->layout == KN_PAGED_HEADS_AROUND || is_value) {
        return (struct kn_paged_part){.head_stride = trial->page_positions * row,
                                      .row_stride = row};
    }
    return (struct kn_paged_part){.head_stride = trial->page_positions *
                                                 paged_trial_round_up(x->head_size, PIECE),
                                  .row_stride = PIECE,
                                  .piece_stride = trial->page_positions * PIECE};
}

static void place_parts(const struct kn_attention_paged_trial *trial, struct pages *pages) {
    const struct kn_attention_packed_trial *t = &trial->sequences;
    const struct kn_attention *x = &t->packed.attention;
    const size_t element = kn_type_bytes(x->type), skew = t->skew * element;
    const size_t row = paged_trial_round_up(x->head_size, PIECE) + t->gap;
    const size_t room = x->kv_heads * trial->page_positions * row * element;
    for (int i = 0; i < 2; i++) pages->parts[i] = paged_trial_part_of(trial, i == 1);
    pages->parts[0].at = IN_FRONT + skew;
    pages->parts[1].at = paged_trial_round_up(pages->parts[0].at + room, 16) + skew;
    pages->page_bytes = paged_trial_round_up(pages->parts[1].at + room, PAGE_ALIGNMENT);
}

/* No page is beside its neighbour: count is no multiple of 5. */
static size_t paged_trial_shuffled(const struct pages *pages, size_t page) {
    return (page * 5 + 3) % pages->count;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* A position's keys or values, of all heads. */
static void fill_position(const struct kn_attention_packed_trial *t,
                          const struct attention_matrix *matrix, const struct kn_paged_part *part,
                          size_t row, size_t inside, unsigned char *page) {
    const size_t d = t->packed.attention.head_size;
    const size_t piece = part->piece_stride != 0 ? part->piece_stride : PIECE;
    for (size_t head = 0; head < t->packed.attention.kv_heads; head++) {
        const float *values = matrix->values + (head * t->packed.kv_rows + row) * d;
        for (size_t i = 0; i < d; i += PIECE) {
            const size_t at =
                head * part->head_stride + inside * part->row_stride + i / PIECE * piece;
            kn_numbers_store(matrix->type, values + i, d - i < PIECE ? d - i : PIECE,
                             page + part->at + at * matrix->element);
        }
    }
}

static void paged_trial_fill(const struct kn_attention_paged_trial *trial,
                             const struct packed_stage *stage, CUdeviceptr pool,
                             struct pages *pages) {
    const struct kn_attention_packed_trial *t = &trial->sequences;
    size_t used = 0;
    memset(pages->bytes, 0xff, pages->count * pages->page_bytes);
    for (size_t i = 0; i < pages->entries; i++) {
        pages->table[i] = pool + paged_trial_shuffled(pages, pages->count - 1) * pages->page_bytes;
    }
    for (size_t s = 0; s < t->packed.attention.batch; s++) {
        for (size_t i = 0; i < positions_of(t, s); i++) {
            const size_t inside = i % trial->page_positions, row = (size_t)t->kv_begins[s] + i;
            if (inside == 0) used++;
            const size_t at = paged_trial_shuffled(pages, used - 1) * pages->page_bytes;
            pages->table[paged_trial_slot_of(t, s) * pages->pages_max + i / trial->page_positions] =
                pool + at;
            for (int part = 0; part < 2; part++) {
                fill_position(t, &stage->matrices[PACKED_K + part], &pages->parts[part], row,
                              inside, pages->bytes + at);
            }
        }
    }
}

static void count_pages(const struct kn_attention_paged_trial *trial, struct pages *pages) {
    const struct kn_attention_packed_trial *t = &trial->sequences;
    const size_t longest = t->packed.attention.kv_length, positions = trial->page_positions;
    pages->count = 1;
    for (size_t s = 0; s < t->packed.attention.batch; s++) {
        pages->count += (positions_of(t, s) + positions - 1) / positions;
    }
    if (pages->count % 5 == 0) pages->count++;
    pages->pages_max = (longest + positions - 1) / positions + 1;
    pages->entries = (t->packed.attention.batch + 1) * pages->pages_max;
}

static tol_status paged_trial_make_numbers(struct kn_kernels *kernels,
                                           const struct kn_attention_packed_trial *t,
                                           struct pages *pages) {
    tol_status status = TOL_OK;
    const size_t batch = t->packed.attention.batch;
    int *numbers = malloc((2 * batch + 1) * sizeof *numbers);
    TOL_CHECK(numbers != NULL, TOL_OUT_OF_HOST_MEMORY, "the slots of %zu sequences", batch);
    for (size_t s = 0; s < batch; s++) {
        numbers[s] = (int)positions_of(t, s), numbers[batch + s] = (int)paged_trial_slot_of(t, s);
    }
    TOL_TRY(tol_buffer_create(kn_kernels_context(kernels), 2 * batch + 1, sizeof *numbers,
                              &pages->numbers));
    status = tol_buffer_write_at(pages->numbers, 0, numbers, 2 * batch * sizeof *numbers);
out:
    free(numbers);
    return status;
}

static tol_status paged_trial_make(struct kn_kernels *kernels,
                                   const struct kn_attention_paged_trial *trial,
                                   const struct packed_stage *stage, struct pages *pages) {
    tol_status status = TOL_OK;
    struct tol_context *context = kn_kernels_context(kernels);
    place_parts(trial, pages);
    count_pages(trial, pages);
    const size_t bytes = pages->count * pages->page_bytes;
    pages->bytes = malloc(bytes);
    pages->table = malloc(pages->entries * sizeof *pages->table);
    TOL_CHECK(pages->bytes != NULL && pages->table != NULL, TOL_OUT_OF_HOST_MEMORY,
              "%zu pages of %zu bytes", pages->count, pages->page_bytes);
    TOL_TRY(kn_guarded_create(context, bytes, 0, &pages->pool));
    paged_trial_fill(trial, stage, tol_buffer_address(pages->pool.buffer) + pages->pool.offset,
                     pages);
    uint64_t *first = pages->table + paged_trial_slot_of(&trial->sequences, 0) * pages->pages_max;
    if (trial->repeats_page) first[1] = first[0];
    TOL_TRY(kn_guarded_write(&pages->pool, pages->bytes));
    TOL_TRY(tol_buffer_create(context, pages->entries, sizeof *pages->table, &pages->tables));
    TOL_TRY(tol_buffer_write(pages->tables, pages->table, pages->entries * sizeof *pages->table));
    status = paged_trial_make_numbers(kernels, &trial->sequences, pages);
out:
    return status;
}

static void paged_trial_destroy(struct pages *pages) {
    kn_guarded_destroy(&pages->pool);
    tol_buffer_destroy(pages->tables);
    tol_buffer_destroy(pages->numbers);
    free(pages->bytes);
    free(pages->table);
}

/* ---- the trial ------------------------------------------------------------------------------- */

static struct kn_attention_paged wish_of(const struct kn_attention_paged_trial *trial,
                                         const struct packed_stage *stage,
                                         const struct pages *pages) {
    const struct kn_attention_packed rows = packed_stage_wish(&trial->sequences, stage);
    const size_t slots = rows.attention.batch * sizeof(int);
    return (struct kn_attention_paged){
        .attention = rows.attention,
        .q_rows = rows.q_rows,
        .q_begins = kn_place_of(rows.q_begins, 0),
        .positions = kn_place_of(pages->numbers, 0),
        .slots = kn_place_of(pages->numbers, slots),
        .tables = kn_place_of(pages->tables, 0),
        .pages_max = pages->pages_max,
        .page_positions = trial->page_positions,
        .k = pages->parts[0],
        .v = pages->parts[1],
        .pool = {tol_buffer_address(pages->pool.buffer) + pages->pool.offset, pages->pool.bytes},
        .variant = trial->variant,
        .variants = trial->variants};
}

tol_status kn_attention_paged_try(struct kn_kernels *kernels, struct tol_stream *stream,
                                  const struct kn_attention_paged_trial *trial,
                                  struct kn_attention_packed_outcome *outcome) {
    tol_status status = TOL_OK;
    struct packed_stage stage = {0};
    struct pages pages = {0};
    size_t around = 0;
    TOL_TRY(packed_stage_make(kernels, &trial->sequences, &stage));
    TOL_TRY(paged_trial_make(kernels, trial, &stage, &pages));
    const struct kn_attention_paged wish = wish_of(trial, &stage, &pages);
    TOL_TRY(kn_attention_paged(kernels, stream, &wish));
    TOL_TRY(packed_stage_judge(stream, &trial->sequences, &stage, outcome));
    TOL_TRY(kn_guarded_check(&pages.pool, &around));
    outcome->touched += around;
out:
    paged_trial_destroy(&pages);
    packed_stage_destroy(&stage);
    return status;
}
