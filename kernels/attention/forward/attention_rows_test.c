/*
 * Rows of attention alone and beside others: the same bits, also where a neighbour's maximum grows
 * from tile to tile and a row's own does not.
 */
#include "attention/forward/attention.h"
#include "inputs.h"

#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(attention_rows, .fini = test_end);

enum { ROWS = 40, KEYS = 700, HEADS_MAX = 128 };

struct rows {
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    struct tol_buffer *q, *k, *v, *out;
    size_t head;
    const char *variant;
    enum kn_type type;
};

/* Element 0 of the keys grows by 1 every 100 keys; row r of q has a factor for it, so that the
 * maximum of every third row grows by 29 powers of two, and of the others by 3.3. */
static void draw(const struct rows *x) {
    static float values[KEYS * HEADS_MAX];
    static uint8_t stored[KEYS * HEADS_MAX * 2];
    uint64_t state = 4;
    kn_inputs_draw(KN_NORMAL, &state, 0.3, values, ROWS * x->head);
    for (size_t r = 0; r < ROWS; r++) values[r * x->head] = r % 3 == 0 ? 20 : 2.3f;
    kn_numbers_store(x->type, values, ROWS * x->head, stored);
    MUST(tol_buffer_write(x->q, stored, ROWS * x->head * 2));
    kn_inputs_draw(KN_NORMAL, &state, 0.3, values, KEYS * x->head);
    for (size_t i = 0; i < KEYS; i++) values[i * x->head] = (float)(i / 100);
    kn_numbers_store(x->type, values, KEYS * x->head, stored);
    MUST(tol_buffer_write(x->k, stored, KEYS * x->head * 2));
    kn_inputs_draw(KN_NORMAL, &state, 1, values, KEYS * x->head);
    kn_numbers_store(x->type, values, KEYS * x->head, stored);
    MUST(tol_buffer_write(x->v, stored, KEYS * x->head * 2));
}

/* Rows first on, causal: the keys after the last row's own are left out. */
static void run(const struct rows *x, size_t first, size_t count, uint16_t *out) {
    const size_t keys = KEYS - ROWS + first + count;
    MUST(kn_attention(x->kernels, x->stream,
                      &(struct kn_attention){.type = x->type,
                                             .batch = 1,
                                             .heads = 1,
                                             .kv_heads = 1,
                                             .q_length = count,
                                             .kv_length = keys,
                                             .head_size = x->head,
                                             .causal = true,
                                             .scale = 1,
                                             .q = {.buffer = x->q, .offset = first * x->head},
                                             .k = {.buffer = x->k},
                                             .v = {.buffer = x->v},
                                             .out = {.buffer = x->out, .offset = first * x->head},
                                             .variant = x->variant}));
    MUST(tol_stream_synchronize(x->stream));
    MUST(tol_buffer_read_at(x->out, first * x->head * 2, out + first * x->head,
                            count * x->head * 2));
}

static void check(const char *variant, int capability, enum kn_type type, size_t head) {
    static const size_t parts[] = {ROWS, 1, 7, 16, 25};
    static uint16_t whole[ROWS * HEADS_MAX], part[ROWS * HEADS_MAX];
    struct rows x = {.head = head, .variant = variant, .type = type};
    if (tol_context_device(test_context())->compute_capability < capability) {
        cr_log_info("not run here: %s needs compute capability %d", variant, capability);
        return;
    }
    MUST(kn_kernels_create(test_context(), &x.kernels));
    MUST(tol_stream_create(test_context(), NULL, &x.stream));
    MUST(tol_buffer_create(test_context(), ROWS * head, 2, &x.q));
    MUST(tol_buffer_create(test_context(), KEYS * head, 2, &x.k));
    MUST(tol_buffer_create(test_context(), KEYS * head, 2, &x.v));
    MUST(tol_buffer_create(test_context(), ROWS * head, 2, &x.out));
    draw(&x);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        uint16_t *to = i == 0 ? whole : part;
        for (size_t first = 0; first < ROWS; first += parts[i]) {
            run(&x, first, parts[i] < ROWS - first ? parts[i] : ROWS - first, to);
        }
        for (size_t at = 0; i > 0 && at < ROWS * head; at++) {
            cr_assert(part[at] == whole[at],
                      "%s, heads of %zu: row %zu is %#x beside %zu rows, and "
                      "%#x beside %d",
                      variant, head, at / head, part[at], parts[i] - 1, whole[at], ROWS - 1);
        }
    }
    tol_buffer_destroy(x.q), tol_buffer_destroy(x.k), tol_buffer_destroy(x.v);
    tol_buffer_destroy(x.out);
    tol_stream_destroy(x.stream);
    kn_kernels_destroy(x.kernels);
}

Test(attention_rows, a_row_gets_the_same_bits_beside_any_others) {
    if (test_takes_trial()) check("tensor", 80, KN_F16, 64);
    if (test_takes_trial()) check("tensor", 80, KN_BF16, 128);
    if (test_takes_trial()) check("wgmma", 90, KN_F16, 64);
    if (test_takes_trial()) check("wgmma", 90, KN_F16, 128);
}
