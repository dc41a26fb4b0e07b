/*
 * Cases of the checksum: ranges that begin and end inside of words, of one block and of several.
 */
#include "checksum/checksum.h"
#include "core/check.h"
#include "inputs.h"
#include "kernel_sweep.h"

#include <stdlib.h>

static void checksum_sweep_run(struct sweep *sweep, size_t offset, size_t bytes) {
    tol_status status = TOL_OK;
    struct kn_checksum *checksum = NULL;
    struct tol_buffer *buffer = NULL;
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    uint8_t *host = NULL;
    uint32_t sum = 0;
    if (!sweep_begin(sweep, "crc32c %zu bytes at %zu", bytes, offset)) return;
    host = malloc(bytes);
    TOL_CHECK(host != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", bytes);
    for (size_t i = 0; i < bytes; i++) host[i] = (uint8_t)(kn_random(&sweep->random) >> 24);
    TOL_TRY(tol_buffer_create(kn_kernels_context(sweep->kernels), offset + bytes, 1, &buffer));
    TOL_TRY(tol_buffer_write_at(buffer, offset, host, bytes));
    TOL_TRY(kn_checksum_create(sweep->kernels, &checksum));
    TOL_TRY(kn_checksum_of(checksum, tol_place_of_buffer(buffer), offset, bytes, &sum));
    /* Floats have room for half of a sum. */
    const uint32_t expected = kn_crc32c(host, bytes, KN_CRC32C_TABLE);
    const float found[] = {(float)(sum >> 16), (float)(sum & 0xffff)};
    const double oracle[] = {(double)(expected >> 16), (double)(expected & 0xffff)};
    deviation = kn_deviation_of(KN_F32, found, oracle, 2, (struct kn_tolerance){0, 0}, NULL);
out:
    sweep_judge(sweep, status, &deviation, 0);
    kn_checksum_destroy(checksum);
    tol_buffer_destroy(buffer);
    free(host);
}

void sweep_checksum(struct sweep *sweep) {
    checksum_sweep_run(sweep, 1, 2);
    checksum_sweep_run(sweep, 3, 1000);
    checksum_sweep_run(sweep, 2, 300000);
}
