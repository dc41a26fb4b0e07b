/*
 * Cases of attention: a whole tile of rows and part of one, several tiles of keys, heads that share
 * keys, causal, with a window and full, and a few rows with the keys split among blocks.
 */
#include "attention/attention_table.h"
#include "attention/backward/attention_backward_trial.h"
#include "attention/forward/attention_trial.h"
#include "choose/choose.h"
#include "kernel_sweep.h"

static void attention_sweep_run_case(struct sweep *sweep, const struct kn_attention_trial *trial) {
    const struct kn_attention *x = &trial->attention;
    struct kn_attention_outcome outcome = {0};
    if (!sweep_begin(sweep, "attention %s %s heads of %zu, %zu rows, %zu keys%s%s%s", x->variant,
                     kn_type_name(x->type), x->head_size, x->q_length, x->kv_length,
                     x->causal ? ", causal" : "", x->window != 0 ? ", a window" : "",
                     trial->workspace ? ", shared" : "")) {
        return;
    }
    const tol_status status = kn_attention_try(sweep->kernels, sweep->stream, trial, &outcome);
    outcome.deviation.failed += outcome.lse.failed;
    sweep_judge(sweep, status, &outcome.deviation, outcome.touched);
}

/* With a workspace one head, so that blocks split the keys even on the smallest device. */
static void attention_sweep_run_cases(struct sweep *sweep, const char *variant, enum kn_type type,
                                      size_t head_size, size_t rows, size_t keys, bool workspace) {
    const struct kn_variant *row = kn_variants_find(&kn_attention_variants, variant);
    const bool few = row != NULL && (row->needs & (ATTENTION_BY_ROW | ATTENTION_BY_HEAD)) != 0;
    for (int turn = 0; turn < (few && rows > 1 ? 2 : 3); turn++) {
        const int causal = turn > 0;
        attention_sweep_run_case(
            sweep, &(struct kn_attention_trial){.attention = {.type = type,
                                                              .batch = 1,
                                                              .heads = workspace ? 1 : 2,
                                                              .kv_heads = 1,
                                                              .q_length = rows,
                                                              .kv_length = keys,
                                                              .head_size = head_size,
                                                              .causal = causal,
                                                              .window = turn == 2 ? 70 : 0,
                                                              .variant = variant},
                                                .distribution = KN_NORMAL,
                                                .values = KN_UNIFORM,
                                                .heads_inside = causal,
                                                .gap = causal ? 8 : 0,
                                                .lse = causal,
                                                .workspace = workspace,
                                                .seed = head_size + (size_t)turn});
    }
}

static void run_backward(struct sweep *sweep, const char *variant, enum kn_type type,
                         size_t head_size, size_t rows, size_t keys) {
    for (int mask = 0; mask <= 2; mask++) { /* full, causal, and with a window */
        const struct kn_attention_backward_trial trial = {
            .backward = {.forward = {.type = type,
                                     .batch = 1,
                                     .heads = 2,
                                     .kv_heads = 1,
                                     .q_length = rows,
                                     .kv_length = keys,
                                     .head_size = head_size,
                                     .causal = mask > 0,
                                     .window = mask > 1 ? 50 : 0},
                         .variant = variant},
            .distribution = KN_NORMAL,
            .values = KN_UNIFORM,
            .heads_inside = mask > 0,
            .gap = mask > 0 ? 8 : 0,
            .seed = head_size + (size_t)mask};
        struct kn_attention_backward_outcome outcome = {0};
        if (!sweep_begin(sweep, "attention backward %s %s heads of %zu, %zu rows, %zu keys%s",
                         variant, kn_type_name(type), head_size, rows, keys,
                         mask == 0   ? ""
                         : mask == 1 ? ", causal"
                                     : ", a window")) {
            continue;
        }
        const tol_status status =
            kn_attention_backward_try(sweep->kernels, sweep->stream, &trial, &outcome);
        const struct kn_deviation all =
            kn_deviation_join(kn_deviation_join(outcome.d_q, outcome.d_k), outcome.d_v);
        sweep_judge(sweep, status, &all, outcome.touched);
    }
}

void sweep_attention(struct sweep *sweep) {
    sweep_packed(sweep);
    sweep_pages(sweep);
    sweep_e4m3(sweep);
    sweep_combine(sweep);
    static const size_t sizes[] = {64, 80, 96, 128, 256};
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        attention_sweep_run_cases(sweep, "naive", type, 7, 5, 40, false);
        run_backward(sweep, "naive", type, 7, 5, 40);
        if (type != KN_F32) {
            run_backward(sweep, "tensor", type, 64, 131, 140);
            run_backward(sweep, "tensor", type, 128, 67, 100);
            run_backward(sweep, "wgmma", type, 64, 131, 140);
            run_backward(sweep, "wgmma", type, 128, 131, 140);
            run_backward(sweep, "ordered", type, 64, 131, 300);
            run_backward(sweep, "ordered", type, 128, 131, 140);
        }
        for (int i = 0; i < 5; i++) {
            attention_sweep_run_cases(sweep, "decode", type, sizes[i], i % 2 == 0 ? 1 : 5, 270,
                                      i % 2 == 0);
            const size_t tile = sizes[i] == 256 ? 32 : 64;
            if (type == KN_F32) {
                attention_sweep_run_cases(sweep, "tiled", type, sizes[i], tile + 3, 2 * tile + 7,
                                          false);
            } else {
                attention_sweep_run_cases(sweep, "tensor", type, sizes[i], 2 * tile + 3,
                                          3 * tile + 7, false);
                if (sizes[i] != 80) { /* three kernels, and 96 by that of 128 */
                    attention_sweep_run_cases(sweep, "wgmma", type, sizes[i], 131, 3 * 128 + 7,
                                              false);
                }
                attention_sweep_run_cases(sweep, "grouped", type, sizes[i], i % 2 == 0 ? 1 : 5, 270,
                                          i % 2 == 0);
            }
        }
    }
}
