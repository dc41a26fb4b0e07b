/*
 * Checksum: CRC-32C of device memory, computed by the device, and copies that are verified by it.
 *
 * A verified copy is a copy of transfer.h, after which the host's bytes are summed on the host and
 * the device's on the device. The sums are equal if the bytes are, and a difference in up to three
 * bits, or in bits that are no more than 32 apart, is always found in 255 MiB; others are missed
 * with a probability of 2^-32. A difference is an error of the copy, or memory that was written
 * meanwhile: nobody may write to either side during the call.
 *
 * Threads: any thread at any time; calls on one object take turns. Sizes are in bytes. Calls on
 * zero bytes succeed. Errors of all functions: TOL_INVALID_ARGUMENT. TOL_OUT_OF_RANGE: the range is
 * not inside of the place. TOL_TIMEOUT, TOL_POISONED, TOL_DRIVER_ERROR.
 * Source: spec 004 section 1.
 */
#ifndef KN_CHECKSUM_H
#define KN_CHECKSUM_H

#include "checksum/crc32c.h"
#include "choose/kernel_set.h"

struct kn_checksum;

/* Creates what sums need: a stream and 8 KiB of device memory. kernels must outlive it. The caller
 * destroys it. TOL_OUT_OF_DEVICE_MEMORY, TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status kn_checksum_create(struct kn_kernels *kernels, struct kn_checksum **checksum);

/* No call may be using it. NULL is a no-op. */
TOL_API void kn_checksum_destroy(struct kn_checksum *checksum);

/* Computes the CRC-32C of bytes at offset of a place, which may be at any address, on the device.
 * Does not wait for work on other streams: what wrote the bytes must be done. */
TOL_API tol_status kn_checksum_of(struct kn_checksum *checksum, struct tol_place place,
                                  size_t offset, size_t bytes, uint32_t *sum);

/* Compares bytes on the device with bytes on the host by their sums. TOL_MISMATCH: they differ; the
 * message has both sums and the number of bytes. */
TOL_API tol_status kn_checksum_verify(struct kn_checksum *checksum, struct tol_place place,
                                      size_t offset, const void *host, size_t bytes);

/* tol_transfer_write and tol_transfer_read, verified. transfer and checksum must be of one context,
 * else TOL_WRONG_CONTEXT. TOL_MISMATCH: as above; the copy was made. */
TOL_API tol_status kn_checksum_write(struct kn_checksum *checksum, struct tol_transfer *transfer,
                                     struct tol_place destination, size_t offset,
                                     const void *source, size_t bytes);
TOL_API tol_status kn_checksum_read(struct kn_checksum *checksum, struct tol_transfer *transfer,
                                    struct tol_place source, size_t offset, void *destination,
                                    size_t bytes);

#endif
