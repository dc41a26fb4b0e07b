/*
 * Whole rows: rows that consist of pieces of 16 bytes and begin at multiples of 16, for which there
 * are faster kernels of softmax and norm. Which of them hold a row, and how many blocks they get.
 * Internal to the operations. Pure; thread-safe.
 */
#ifndef KN_ROW_WHOLE_H
#define KN_ROW_WHOLE_H

#include "row/row_place.h"

/* NULL if all rows of a place are whole, else why not, as a clause. A place that has no buffer,
 * begin 0, is whole: nothing of it is read. */
const char *kn_row_whole(const struct kn_rows_place *place);

/* As kn_variant.refuse, of a kn_row_fit: rows are whole and so many pieces a thread hold one. A row
 * is a warp's for 1; that of a warp or of a block of up to 256 threads for 4, of 128 for ring_4; of
 * a block of up to 512 for wide_2, of 1024 for f32_8. */
const char *kn_row_whole_f16_1(const void *fit);
const char *kn_row_whole_f16_2(const void *fit);
const char *kn_row_whole_f16_4(const void *fit);
const char *kn_row_wide_f16_2(const void *fit);
const char *kn_row_ring_f16_4(const void *fit);
const char *kn_row_whole_bf16_1(const void *fit);
const char *kn_row_whole_bf16_2(const void *fit);
const char *kn_row_whole_bf16_4(const void *fit);
const char *kn_row_wide_bf16_2(const void *fit);
const char *kn_row_ring_bf16_4(const void *fit);
const char *kn_row_whole_f32_8(const void *fit);

/* kn_row_shape for a kernel whose blocks stay: at most tile[2] blocks a multiprocessor. Where that
 * is 0, as kn_row_shape. */
struct tol_launch_shape kn_row_shape_that_stays(const struct kn_variant *variant,
                                                const struct kn_row_fit *fit, size_t rows,
                                                const struct tol_device *device);

#endif
