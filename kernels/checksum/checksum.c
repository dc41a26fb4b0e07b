/*
 * The host's side of device checksums: spans of 64 MiB, each a launch, whose chunks are joined
 * here.
 */
#include "checksum/checksum.h"

#include "checksum/checksum_arguments.h"
#include "core/check.h"

#include <pthread.h>
#include <stdlib.h>

KN_IMAGES(checksum_1_chunks);

static const struct kn_variant chunks = {.name = "chunks",
                                         .entry = "crc32c_chunks",
                                         .images = kn_images_checksum_1_chunks,
                                         .compute_capability_min = 75,
                                         .threads = CHECKSUM_THREADS};

enum { SPAN_BYTES = 64 << 20, CHUNKS_MAX = SPAN_BYTES / (4 * CHECKSUM_CHUNK_WORDS) };

struct kn_checksum {
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    struct tol_buffer *shift, *out;
    pthread_mutex_t lock; /* guards out */
};

/* The tables by which a thread gets past the words of the others, and the threads' distances. */
static void fill_shift(uint32_t *shift) {
    const uint32_t past_all = kn_crc32c_power(32 * (uint64_t)CHECKSUM_THREADS);
    for (uint32_t j = 0; j < 4; j++) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            *shift++ = kn_crc32c_multiply(byte << 8 * j, past_all);
        }
    }
    for (uint64_t t = 0; t < CHECKSUM_THREADS; t++) {
        *shift++ = kn_crc32c_power(32 * (CHECKSUM_THREADS - t));
    }
}

tol_status kn_checksum_create(struct kn_kernels *kernels, struct kn_checksum **result) {
    tol_status status = TOL_OK;
    struct kn_checksum *checksum = NULL;
    uint32_t shift[CHECKSUM_SHIFT_WORDS];
    TOL_CHECK(kernels != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "kn_checksum_create: an argument is NULL");
    struct tol_context *context = kn_kernels_context(kernels);
    checksum = calloc(1, sizeof *checksum);
    TOL_CHECK(checksum != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a checksum");
    pthread_mutex_init(&checksum->lock, NULL);
    checksum->kernels = kernels;
    TOL_TRY(tol_stream_create(context, NULL, &checksum->stream));
    TOL_TRY(tol_buffer_create(context, CHECKSUM_SHIFT_WORDS, sizeof *shift, &checksum->shift));
    TOL_TRY(tol_buffer_create(context, CHUNKS_MAX + 2, sizeof *shift, &checksum->out));
    fill_shift(shift);
    TOL_TRY(tol_buffer_write(checksum->shift, shift, sizeof shift));
    *result = checksum;
    checksum = NULL;
out:
    kn_checksum_destroy(checksum);
    return status;
}

void kn_checksum_destroy(struct kn_checksum *checksum) {
    if (checksum == NULL) return;
    tol_buffer_destroy(checksum->shift);
    tol_buffer_destroy(checksum->out);
    tol_stream_destroy(checksum->stream);
    pthread_mutex_destroy(&checksum->lock);
    free(checksum);
}

/* The sum of at most SPAN_BYTES. The caller locks. */
static tol_status sum_span(struct kn_checksum *checksum, const struct tol_kernel *kernel,
                           CUdeviceptr address, size_t bytes, uint32_t *sum) {
    tol_status status = TOL_OK;
    uint32_t out[CHUNKS_MAX + 2];
    const unsigned skip = address % 4;
    const CUdeviceptr first = address - skip, end = address + bytes;
    const uint64_t words = end / 4 * 4 > address ? (end / 4 * 4 - first) / 4 : 0;
    const unsigned tail = (unsigned)(words > 0 ? end % 4 : bytes);
    unsigned blocks = (unsigned)((words + CHECKSUM_CHUNK_WORDS - 1) / CHECKSUM_CHUNK_WORDS);
    if (blocks == 0) blocks = 1;
    TOL_TRY(tol_launch(checksum->stream, kernel,
                       tol_launch_linear((uint64_t)blocks * CHECKSUM_THREADS, CHECKSUM_THREADS),
                       TOL_ARGUMENTS(first, skip, words, tail, tol_buffer_address(checksum->shift),
                                     tol_buffer_address(checksum->out))));
    TOL_TRY(tol_stream_synchronize(checksum->stream));
    TOL_TRY(tol_buffer_read_at(checksum->out, 0, out, (blocks + 1) * sizeof *out));
    const uint32_t past_a_chunk = kn_crc32c_power(32 * (uint64_t)CHECKSUM_CHUNK_WORDS);
    uint32_t remainder = 0;
    for (unsigned i = 0; i < blocks; i++) {
        remainder = kn_crc32c_multiply(remainder, past_a_chunk) ^ out[i];
    }
    for (unsigned i = 0; i < tail; i++) {
        remainder = kn_crc32c_append(remainder, (uint8_t)(out[blocks] >> 8 * i));
    }
    /* A checksum begins with 32 ones before the bytes and is inverted. */
    *sum = ~(remainder ^ kn_crc32c_multiply(UINT32_MAX, kn_crc32c_power(8 * (uint64_t)bytes)));
out:
    return status;
}

tol_status kn_checksum_of(struct kn_checksum *checksum, struct tol_place place, size_t offset,
                          size_t bytes, uint32_t *sum) {
    tol_status status = TOL_OK;
    const struct tol_kernel *kernel = NULL;
    uint32_t all = 0, part = 0;
    TOL_CHECK(checksum != NULL && sum != NULL && (place.address != 0 || bytes == 0),
              TOL_INVALID_ARGUMENT, "kn_checksum_of: an argument is NULL");
    TOL_CHECK(bytes <= place.bytes && offset <= place.bytes - bytes &&
                  place.bytes <= UINT64_MAX - place.address,
              TOL_OUT_OF_RANGE, "%zu bytes at offset %zu are not inside a place of %zu bytes",
              bytes, offset, place.bytes);
    TOL_TRY(kn_kernels_find(checksum->kernels, &chunks, &kernel));
    for (size_t done = 0; done < bytes;) {
        const size_t now = bytes - done < SPAN_BYTES ? bytes - done : SPAN_BYTES;
        pthread_mutex_lock(&checksum->lock);
        status = sum_span(checksum, kernel, place.address + offset + done, now, &part);
        pthread_mutex_unlock(&checksum->lock);
        if (status != TOL_OK) goto out;
        all = kn_crc32c_join(all, part, now);
        done += now;
    }
    *sum = all;
out:
    return status;
}

tol_status kn_checksum_verify(struct kn_checksum *checksum, struct tol_place place, size_t offset,
                              const void *host, size_t bytes) {
    tol_status status = TOL_OK;
    uint32_t there = 0, here = 0;
    TOL_CHECK(host != NULL || bytes == 0, TOL_INVALID_ARGUMENT, "kn_checksum_verify: host is NULL");
    TOL_TRY(kn_checksum_of(checksum, place, offset, bytes, &there));
    here = kn_crc32c(host, bytes, KN_CRC32C_BEST);
    TOL_CHECK(here == there, TOL_MISMATCH,
              "the CRC-32C of %zu bytes is %#010x on the host and %#010x on the device", bytes,
              here, there);
out:
    return status;
}

static tol_status check_transfer(const struct kn_checksum *checksum,
                                 const struct tol_transfer *transfer) {
    tol_status status = TOL_OK;
    TOL_CHECK(checksum != NULL && transfer != NULL, TOL_INVALID_ARGUMENT,
              "a verified copy: an argument is NULL");
    TOL_CHECK(tol_transfer_context(transfer) == kn_kernels_context(checksum->kernels),
              TOL_WRONG_CONTEXT, "the transfer and the checksum belong to different contexts");
out:
    return status;
}

tol_status kn_checksum_write(struct kn_checksum *checksum, struct tol_transfer *transfer,
                             struct tol_place destination, size_t offset, const void *source,
                             size_t bytes) {
    tol_status status = check_transfer(checksum, transfer);
    if (status == TOL_OK) {
        status = tol_transfer_write(transfer, destination, offset, source, bytes);
    }
    if (status != TOL_OK) return status;
    return kn_checksum_verify(checksum, destination, offset, source, bytes);
}

tol_status kn_checksum_read(struct kn_checksum *checksum, struct tol_transfer *transfer,
                            struct tol_place source, size_t offset, void *destination,
                            size_t bytes) {
    tol_status status = check_transfer(checksum, transfer);
    if (status == TOL_OK) {
        status = tol_transfer_read(transfer, source, offset, destination, bytes);
    }
    if (status != TOL_OK) return status;
    return kn_checksum_verify(checksum, source, offset, destination, bytes);
}
