/*
 * Products by step 9: how k is shared, shapes around its tiles, shares and rings, and that equal
 * calls give equal bits. quant_product_wgmma_test.c has what it shares with step 8.
 */
#include "quant_product_trial.h"
#include "quantised/product/product_split.h"
#include "quantised/product/quant_product_arguments.h"
#include "kernel_scene.h"

#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

TestSuite(quant_product_split, .fini = kernel_scene_end);

static void begin(void) {
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    kernel_scene_begin();
}

/* Goal: no share is empty, since a block would wait for ever, all blocks run at once, and one block
 * does not add up too many. */
Test(quant_product_split, k_is_shared_among_blocks_that_run_at_once) {
    static const struct {
        size_t tiles, chunks;
        unsigned shares;
    } known[] = {{32, 56, 4}, {64, 56, 2}, {8, 56, 14},  {1, 56, 14},
                 {67, 56, 1}, {1, 1, 1},   {1, 145, 15}, {SIZE_MAX, 56, 1}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const unsigned shares = kn_quant_split_shares(known[i].tiles, known[i].chunks);
        cr_assert(shares == known[i].shares, "%zu tiles, %zu chunks: %u shares", known[i].tiles,
                  known[i].chunks, shares);
    }
    for (size_t tiles = 1; tiles <= 140; tiles++) {
        for (size_t chunks = 1; chunks <= 200; chunks++) {
            const size_t shares = kn_quant_split_shares(tiles, chunks);
            const size_t each = shares > 0 ? (chunks + shares - 1) / shares : 0; /* as the kernel */
            cr_assert(shares == 1 || (shares > 1 && shares <= KN_QUANT_SPLIT_SHARES &&
                                      shares * tiles <= KN_QUANT_SPLIT_BLOCKS &&
                                      2 * tiles <= KN_QUANT_SPLIT_TICKETS),
                      "%zu tiles, %zu chunks: %zu shares", tiles, chunks, shares);
            cr_assert((shares - 1) * each < chunks, "%zu tiles, %zu chunks: share %zu is empty",
                      tiles, chunks, shares - 1);
        }
    }
}

/* Rows and columns around tiles of 32, 64 and 128 columns; shares that are as long and those of
 * which the last is shorter; k beyond the rings of 4 to 8 slots and 5 to 20 stages, whose slots
 * are so filled again; more than 66 tiles, whose k is not shared. Rows of Q6_K begin at multiples
 * of 16 bytes if k is one of 2048. */
Test(quant_product_split, it_stays_within_its_bound) {
    static const size_t sizes[][3] = {/* rows, columns, blocks of 256 */
                                      {1, 1, 1},    {1, 2, 2},    {128, 8, 3},  {129, 9, 5},
                                      {5, 16, 17},  {300, 31, 2}, {127, 32, 4}, {130, 33, 2},
                                      {37, 63, 19}, {128, 64, 3}, {200, 65, 3}, {9, 129, 18},
                                      {3, 7, 145},  {6, 40, 145}, {8577, 1, 2}};
    static const size_t long_sizes[][3] = {{1, 1, 8},   {130, 16, 8}, {129, 64, 16}, {70, 65, 8},
                                           {9, 32, 24}, {3, 33, 104}, {2, 5, 104}};
    static const enum kn_distribution distributions[] = {KN_NORMAL, KN_UNIFORM, KN_SPARSE,
                                                         KN_CANCEL, KN_LARGE,   KN_TINY};
    begin();
    enum {
        SIZES = sizeof sizes / sizeof sizes[0],
        LONG = sizeof long_sizes / sizeof long_sizes[0]
    };
    for (unsigned i = 0; i < SIZES * KN_QUANTS; i++) {
        const enum kn_quant quant = (enum kn_quant)(i % KN_QUANTS);
        const size_t at = i / KN_QUANTS;
        const size_t *size = quant == KN_Q6_K ? long_sizes[at % LONG] : sizes[at];
        const bool gaps = i % 2 == 1;
        const struct kn_quant_trial trial = {.quant = quant,
                                             .arithmetic = KN_QUANT_F16,
                                             .rows = size[0],
                                             .columns = size[1],
                                             .k = size[2] * 256,
                                             .variant = "wgmma_split",
                                             .kind =
                                                 i % 5 == 4 ? KN_BLOCKS_SUBNORMAL : KN_BLOCKS_USUAL,
                                             .distribution = distributions[i % 6],
                                             .scale = 1,
                                             .seed = i + 1,
                                             .x_gap = gaps ? 8 : 0,
                                             .y_gap = gaps ? 5 : 0,
                                             .y_skew = gaps ? 4 : 0};
        struct kn_quant_finding finding;
        char text[512];
        if ((quant == KN_Q6_K && at >= LONG) || !test_takes_trial()) continue;
        MUST(kn_quant_trial(kernels, stream, &trial, &finding));
        cr_assert(finding.changed == 0 && finding.gaps_changed == 0,
                  "%zu x %zu, k %zu: %zu bytes outside y have changed, and %zu elements between "
                  "columns",
                  trial.rows, trial.columns, trial.k, finding.changed, finding.gaps_changed);
        cr_assert(finding.deviation.failed == 0,
                  "%s, %zu x %zu, k %zu, %s blocks, x %s, seed %llu: %s", kn_quant_name(quant),
                  trial.rows, trial.columns, trial.k, kn_quant_blocks_name(trial.kind),
                  kn_distribution_name(trial.distribution), (unsigned long long)trial.seed,
                  kn_deviation_text(&finding.deviation, text, sizeof text));
    }
}

/* Whichever block comes last adds the shares: their order is theirs, not that in which they come.
 * The workspace keeps what earlier calls left. Every second call names no variant and has the same
 * bits, since this one is chosen. */
Test(quant_product_split, equal_calls_give_equal_bits) {
    enum { ROWS = 140, COLUMNS = 20, K = 11 * 256, COUNT = ROWS * COLUMNS, CALLS = 6 };
    tol_auto_buffer struct tol_buffer *w = NULL, *x = NULL, *y = NULL, *space = NULL;
    static float first[COUNT], again[COUNT], drawn[COLUMNS * K];
    const size_t blocks = ROWS * K / 256, bytes = kn_quant_block_bytes(KN_Q4_K);
    uint64_t state = 5;
    begin();
    void *drawn_blocks = malloc(blocks * bytes);
    cr_assert(drawn_blocks != NULL);
    kn_quant_draw(KN_Q4_K, KN_BLOCKS_USUAL, &state, blocks, drawn_blocks);
    kn_inputs_draw(KN_CANCEL, &state, 1, drawn, COLUMNS * K);
    MUST(tol_buffer_create(test_context(), blocks, bytes, &w));
    MUST(tol_buffer_create(test_context(), COLUMNS * K, sizeof(float), &x));
    MUST(tol_buffer_create(test_context(), COUNT, sizeof(float), &y));
    MUST(tol_buffer_create(test_context(), kn_quant_product_workspace(KN_QUANT_F16, COLUMNS, K), 1,
                           &space));
    MUST(tol_buffer_write(w, drawn_blocks, blocks * bytes));
    MUST(tol_buffer_write(x, drawn, sizeof drawn));
    for (unsigned i = 0; i < CALLS; i++) {
        const char *variant = i % 2 == 0 ? "wgmma_split" : NULL;
        MUST(tol_buffer_fill_at(y, 0, 0xff, 1, sizeof again));
        MUST(kn_quant_product(kernels, stream,
                              &(struct kn_quant_product){.quant = KN_Q4_K,
                                                         .arithmetic = KN_QUANT_F16,
                                                         .rows = ROWS,
                                                         .columns = COLUMNS,
                                                         .k = K,
                                                         .weights = kn_place_of(w, 0),
                                                         .x = kn_place_of(x, 0),
                                                         .y = kn_place_of(y, 0),
                                                         .workspace = kn_place_of(space, 0),
                                                         .variant = variant}));
        MUST(tol_stream_synchronize(stream));
        MUST(tol_buffer_read(y, i == 0 ? first : again, sizeof again));
        if (i > 0) cr_assert(memcmp(first, again, sizeof again) == 0, "call %u differs", i);
    }
    free(drawn_blocks);
}
