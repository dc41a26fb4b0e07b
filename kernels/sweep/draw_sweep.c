/*
 * Cases of draws: each limit in a row of its own, compared with the host's draw.
 */
#include "core/check.h"
#include "decode/draw.h"
#include "sweep_matrix.h"

#include <stdlib.h>

enum { ROWS = 4, COLUMNS = 2500 };

static void make_rows(struct draw_device_row *by) {
    const double scale = 0x1p32 * 1.4426950408889634; /* a temperature of 1 */
    for (uint32_t r = 0; r < ROWS; r++) {
        by[r] = (struct draw_device_row){
            .row = {.scale = scale, .random = 0x9e3779b97f4a7c15u * (r + 1), .penalty = 1.5f}};
        by[r].row.penalised = 10 * r;
        for (uint32_t i = 0; i < 10 * r; i++) by[r].tokens[i] = 83 * i;
    }
    by[1].row.top_k = 900;
    by[2].row.share = (uint64_t)(0.7 * 0x1p64);
    by[3].row.top_k = 50, by[3].row.share = (uint64_t)(0.9 * 0x1p64);
    by[3].row.least = DRAW_ONE / 50;
}

static void run_draw(struct sweep *sweep, const char *variant) {
    tol_status status = TOL_OK;
    int found[ROWS];
    float values[ROWS];
    double oracle[ROWS];
    struct draw_device_row by[ROWS];
    struct sweep_matrix in = {0};
    struct tol_buffer *out = NULL, *rows = NULL, *workspace = NULL;
    void *memory = malloc(kn_draw_host_bytes(COLUMNS));
    struct tol_context *context = kn_kernels_context(sweep->kernels);
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    if (!sweep_begin(sweep, "draw %s %d x %d", variant, ROWS, COLUMNS)) goto end;
    TOL_CHECK(memory != NULL, TOL_OUT_OF_HOST_MEMORY, "a draw");
    make_rows(by);
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, ROWS, COLUMNS, 3, 1, 2, &in));
    TOL_TRY(tol_buffer_create(context, ROWS, sizeof(int), &out));
    TOL_TRY(tol_buffer_create(context, ROWS, sizeof *by, &rows));
    TOL_TRY(tol_buffer_create(context, kn_draw_workspace(ROWS), 1, &workspace));
    TOL_TRY(tol_buffer_write(rows, by, sizeof by));
    const struct kn_place place = {tol_buffer_address(in.guarded.buffer) + in.guarded.offset,
                                   in.guarded.bytes};
    TOL_TRY(kn_draw(sweep->kernels, sweep->stream,
                    &(struct kn_draw){.rows = ROWS,
                                      .columns = COLUMNS,
                                      .in = place,
                                      .in_stride = in.stride,
                                      .by = kn_place_of(rows, 0),
                                      .out = kn_place_of(out, 0),
                                      .workspace = kn_place_of(workspace, 0),
                                      .variant = variant}));
    TOL_TRY(tol_stream_synchronize(sweep->stream));
    TOL_TRY(tol_buffer_read(out, found, sizeof found));
    for (size_t r = 0; r < ROWS; r++) {
        values[r] = (float)found[r];
        oracle[r] =
            kn_draw_on_host(&by[r].row, by[r].tokens, in.values + r * COLUMNS, COLUMNS, memory);
    }
    deviation = kn_deviation_of(KN_F32, values, oracle, ROWS, (struct kn_tolerance){0, 0}, NULL);
out:
    sweep_judge(sweep, status, &deviation, 0);
    sweep_matrix_end(&in);
    tol_buffer_destroy(out);
    tol_buffer_destroy(rows);
    tol_buffer_destroy(workspace);
end:
    free(memory);
}

void sweep_draw(struct sweep *sweep) {
    const bool has_early =
        tol_context_device(kn_kernels_context(sweep->kernels))->compute_capability >= 90;
    run_draw(sweep, "parts");
    if (has_early) run_draw(sweep, "early");
}
