/*
 * What checksums cost: a copy to the device alone, the same verified, and each side's sum alone.
 * The copy is the ceiling of the others. All are synchronous calls, so a time has the host's part.
 */
#include "checksum/checksum.h"
#include "core/check.h"
#include "kernel_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum side { COPY, VERIFIED, DEVICE, INSTRUCTION, TABLE, SIDES };
static const char *const names[SIDES] = {"copy", "verified copy", "device", "host, instruction",
                                         "host, table"};

struct sums {
    enum side side;
    struct kn_checksum *checksum;
    struct tol_transfer *transfer;
    struct tol_place place;
    uint8_t *host;
    size_t bytes;
};

static volatile uint32_t sink; /* keeps sums from being optimised away */

static tol_status checksum_bench_launch(void *user, size_t turn) {
    struct sums *s = user;
    uint32_t sum = 0;
    tol_status status = TOL_OK;
    (void)turn;
    switch (s->side) {
    case COPY:
        return tol_transfer_write(s->transfer, s->place, 0, s->host, s->bytes);
    case VERIFIED:
        return kn_checksum_write(s->checksum, s->transfer, s->place, 0, s->host, s->bytes);
    case DEVICE:
        status = kn_checksum_of(s->checksum, s->place, 0, s->bytes, &sum);
        break;
    case INSTRUCTION:
        sum = kn_crc32c(s->host, s->bytes, KN_CRC32C_INSTRUCTION);
        break;
    default:
        sum = kn_crc32c(s->host, s->bytes, KN_CRC32C_TABLE);
    }
    sink = sum;
    return status;
}

static tol_status checksum_bench_run(struct kn_bench *bench) {
    tol_status status = TOL_OK;
    struct tol_buffer *buffer = NULL;
    struct sums s = {.bytes = (size_t)(bench->is_small ? 1 : 256) << 20};
    double copy_us = 0;
    s.host = malloc(s.bytes);
    TOL_CHECK(s.host != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", s.bytes);
    memset(s.host, 3, s.bytes);
    TOL_TRY(tol_buffer_create(bench->context, s.bytes, 1, &buffer));
    s.place = tol_place_of_buffer(buffer);
    TOL_TRY(tol_transfer_create(bench->context, NULL, &s.transfer));
    TOL_TRY(kn_checksum_create(bench->kernels, &s.checksum));
    for (s.side = COPY; s.side < SIDES; s.side++) {
        struct kn_bench_row row = {.operation = "crc32c",
                                   .bytes = (double)s.bytes,
                                   .ceiling_us = copy_us,
                                   .ceiling = copy_us > 0 ? "copy to the device" : NULL};
        snprintf(row.shape, sizeof row.shape, "%zu MiB to the device", s.bytes >> 20);
        snprintf(row.variant, sizeof row.variant, "%s", names[s.side]);
        if (!kn_bench_wants(bench, &row)) continue;
        TOL_TRY(kn_bench_measure(bench, &row, checksum_bench_launch, &s));
        if (s.side == COPY) copy_us = row.us;
    }
out:
    kn_checksum_destroy(s.checksum);
    tol_transfer_destroy(s.transfer);
    tol_buffer_destroy(buffer);
    free(s.host);
    return status;
}

KN_BENCH(checksum, checksum_bench_run)
