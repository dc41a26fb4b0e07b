/*
 * Products that round their result to bytes, against the kernel for that, and what is refused.
 */
#include "decoder/linear.h"
#include "decoder/rounded.h"
#include "inputs.h"
#include "quant/quant_draw.h"

#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

static struct kn_kernels *kernels;
static struct tol_stream *stream;

static void begin(void) {
    MUST(kn_kernels_create(test_context(), &kernels));
    MUST(tol_stream_create(test_context(), NULL, &stream));
}

static void end(void) {
    tol_stream_destroy(stream);
    kn_kernels_destroy(kernels);
    stream = NULL, kernels = NULL;
    test_end();
}
TestSuite(linear_rounded, .fini = end);

/* A gated product that rounds its result, against the kernel for that, twice: tickets are zeros
 * again. */
static void try_rounded(enum kn_weight_format format, const char *variant, size_t columns) {
    enum { ROWS = 512, K = 512 };
    uint64_t state = 5;
    const size_t matrix = ROWS * kn_weight_row_bytes(format, K), count = columns * ROWS;
    const size_t bytes = kn_rounded_bytes(columns, ROWS);
    const size_t tickets = kn_linear_tickets(columns, ROWS);
    const enum kn_quant quant = format == KN_WEIGHT_Q4_K ? KN_Q4_K : KN_Q6_K;
    uint8_t *blocks = malloc(2 * matrix);
    float *values = malloc(columns * K * sizeof *values);
    uint8_t *zeros = calloc(3, bytes), *got[2] = {zeros + bytes, zeros + 2 * bytes};
    tol_auto_buffer struct tol_buffer *weights = NULL, *x = NULL, *y = NULL, *room = NULL;
    tol_auto_buffer struct tol_buffer *rounded = NULL, *again = NULL, *ticket = NULL;
    cr_assert(zeros != NULL && blocks != NULL && values != NULL && tickets <= bytes);
    kn_quant_draw(quant, KN_BLOCKS_USUAL, &state, 2 * ROWS * K / 256, blocks);
    kn_inputs_draw(KN_NORMAL, &state, 1, values, columns * K);
    MUST(tol_buffer_create(test_context(), 2 * matrix, 1, &weights));
    MUST(tol_buffer_create(test_context(), columns * K, sizeof(float), &x));
    MUST(tol_buffer_create(test_context(), count, sizeof(float), &y));
    MUST(tol_buffer_create(test_context(), kn_linear_workspace(columns, K), 1, &room));
    MUST(tol_buffer_create(test_context(), bytes, 1, &rounded));
    MUST(tol_buffer_create(test_context(), bytes, 1, &again));
    MUST(tol_buffer_create(test_context(), tickets, 1, &ticket));
    MUST(tol_buffer_write(weights, blocks, 2 * matrix));
    MUST(tol_buffer_write(x, values, columns * K * sizeof(float)));
    MUST(tol_buffer_write(ticket, zeros, tickets));
    for (int turn = 0; turn < 2; turn++) {
        MUST(tol_buffer_write(rounded, zeros, bytes));
        MUST(tol_buffer_write(again, zeros, bytes));
        MUST(kn_linear(kernels, stream,
                       &(struct kn_linear){.format = format,
                                           .rows = ROWS,
                                           .columns = columns,
                                           .k = K,
                                           .weights = kn_place_of(weights, 0),
                                           .gate = kn_place_of(weights, matrix),
                                           .x = kn_place_of(x, 0),
                                           .y = kn_place_of(y, 0),
                                           .x_stride = K,
                                           .y_stride = ROWS,
                                           .workspace = kn_place_of(room, 0),
                                           .rounded = kn_place_of(rounded, 0),
                                           .tickets = kn_place_of(ticket, 0),
                                           .variant = variant}));
        MUST(kn_rounded(kernels, stream,
                        &(struct kn_rounded){.columns = columns,
                                             .k = ROWS,
                                             .x = kn_place_of(y, 0),
                                             .x_stride = ROWS,
                                             .out = kn_place_of(again, 0)}));
        MUST(tol_stream_synchronize(stream));
        MUST(tol_buffer_read(rounded, got[0], bytes));
        MUST(tol_buffer_read(again, got[1], bytes));
        cr_assert(memcmp(got[0], got[1], bytes) == 0, "%s, %s, turn %d", kn_weight_name(format),
                  variant, turn);
    }
    free(zeros), free(blocks), free(values);
}

Test(linear_rounded, a_gated_product_rounds_its_result) {
    begin();
    const int capability = tol_context_device(test_context())->compute_capability;
    if (capability >= 80) try_rounded(KN_WEIGHT_Q4_K, "bytes", 11);
    if (capability >= 80) try_rounded(KN_WEIGHT_Q6_K, "bytes", 2);
    if (capability >= 90) try_rounded(KN_WEIGHT_Q4_K, "early", 3);
}

Test(linear_rounded, what_makes_no_sense_is_refused) {
    struct kn_linear p = {.format = KN_WEIGHT_Q4_K,
                          .rows = 256,
                          .columns = 1,
                          .k = 256,
                          .weights = {0x100000, 256 * 144},
                          .gate = {0x200000, 256 * 144},
                          .x = {0x300000, 1024},
                          .y = {0x400000, 1024},
                          .x_stride = 256,
                          .y_stride = 256,
                          .workspace = {0x500000, 1 << 20},
                          .rounded = {0x700000, 2560},
                          .tickets = {0x800000, 3}};
    begin();
    if (tol_context_device(test_context())->compute_capability < 80) return;
    MUST_FAIL(kn_linear(kernels, stream, &p), TOL_OUT_OF_RANGE, "tickets needs 4");
    p.tickets.bytes = 4, p.rounded.bytes--;
    MUST_FAIL(kn_linear(kernels, stream, &p), TOL_OUT_OF_RANGE, "rounded y needs 2560");
    p.rounded.bytes++, p.gate.address = 0;
    MUST_FAIL(kn_linear(kernels, stream, &p), TOL_INVALID_ARGUMENT, "without a gate");
    p.rounded.address = 0, p.is_rounded = true, p.format = KN_WEIGHT_F16;
    p.weights.bytes = 256 * 512;
    MUST_FAIL(kn_linear(kernels, stream, &p), TOL_UNSUPPORTED, "rounded x");
    p.workspace.address = 0;
    MUST_FAIL(kn_linear(kernels, stream, &p), TOL_INVALID_ARGUMENT, "without a workspace");
}
