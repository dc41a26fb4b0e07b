/*
 * Rows of draws, and their kernels.
 */
#include "pass_draw.h"

#include "core/check.h"
#include "decode/draw.h"

#include <string.h>

enum { INPUTS = 3, ALIGNMENT = 8 };

static size_t rows_at(size_t rows) {
    return (INPUTS * rows * sizeof(int) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t loaded_draw_end(size_t rows) {
    return rows_at(rows) + rows * sizeof(struct draw_device_row);
}

bool loaded_draw_can(const struct tol_loaded *l, const struct tol_sampler *sampler) {
    return l->draws && tol_sampler_penalises(sampler) <= DRAW_TOKENS;
}

tol_status loaded_draw_send(struct tol_loaded *l, struct tol_sampler *const *samplers,
                            size_t count) {
    tol_status status = TOL_OK;
    void *bytes = NULL;
    TOL_TRY(tol_pinned_access(l->sent, &bytes));
    struct draw_device_row *rows = (void *)((char *)bytes + rows_at(count));
    for (size_t i = 0; i < count; i++) {
        const uint32_t *tokens = NULL;
        tol_sampler_row(samplers[i], &rows[i].row, &tokens);
        if (rows[i].row.penalised > DRAW_TOKENS) rows[i].row.penalised = 0; /* unused */
        memcpy(rows[i].tokens, tokens, rows[i].row.penalised * sizeof *tokens);
    }
out:
    return status;
}

tol_status loaded_draw_queue(const struct tol_loaded *l, size_t rows, bool follows_copy) {
    const struct loaded_scratch *scratch = &l->scratch;
    const size_t columns = l->share.vocabulary;
    return kn_draw(l->kernels, l->stream,
                   &(struct kn_draw){.rows = rows,
                                     .columns = columns,
                                     .in = kn_place_of(scratch->buffer, scratch->logits),
                                     .in_stride = columns,
                                     .by = kn_place_of(l->input, rows_at(rows)),
                                     .out = kn_place_of(scratch->buffer, scratch->best),
                                     .workspace = kn_place_of(scratch->buffer, scratch->draws),
                                     .variant = follows_copy ? "parts" : NULL});
}
