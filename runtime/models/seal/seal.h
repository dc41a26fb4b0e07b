/*
 * Seal: weights that are encrypted wherever they are stored, on the host, in files and on the
 * device, and that are verified before they are used. README.md has what this protects against and
 * what not.
 *
 *     tol_seal_key_create(secret, 32, &key);          a master key, in locked memory
 *     tol_sealer_create(context, key, &sealer);       a device, and the key for it
 *     tol_seal_host(sealer, &options, plain, &sealed);
 *     tol_seal_verify(sealed);                        TOL_MISMATCH names the chunk that changed
 *     tol_seal_product(sealed, stream, x, y);         decrypts in registers
 *     tol_seal_rotate(sealed);                        a new key, in place
 *
 * Sealed bytes are rows, each beginning at a multiple of 64 bytes; zeros fill the gaps, encrypted.
 * They are in chunks of 16 KiB, numbered from 0, of which each has a tag. Each sealing draws 16
 * random bytes, its name, and all its keys are derived from the master key and the name, so no two
 * share a key stream.
 *
 * Threads: any thread may use any object; calls on one sealed object take turns. Nobody may destroy
 * an object while another uses it. Sizes are in bytes. Errors of all functions:
 * TOL_INVALID_ARGUMENT, and TOL_UNSUPPORTED where OpenSSL's libcrypto.so.3 is not found; of those
 * that use the device also TOL_TIMEOUT, TOL_POISONED, TOL_DRIVER_ERROR.
 * Source: spec 002, refinements; RFC 5869, 8439; NIST SP 800-38D.
 */
#ifndef TOLLENS_SEAL_H
#define TOLLENS_SEAL_H

#include "tollens.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TOL_SEAL_LABEL_BYTES = 64, TOL_SEAL_SECRET_MIN = 32, TOL_SEAL_SECRET_MAX = 1024 };

/* ---- keys ---- */

struct tol_seal_key;

/* Keeps a copy of a secret of 32 to 1024 random bytes in locked memory. The caller wipes its own
 * copy, and destroys the key. TOL_OUT_OF_HOST_MEMORY: also if memory cannot be locked; the message
 * has the limit. */
TOL_API tol_status tol_seal_key_create(const void *secret, size_t bytes, struct tol_seal_key **key);

/* A random key of 32 bytes from OpenSSL, which exists only in this process. */
TOL_API tol_status tol_seal_key_draw(struct tol_seal_key **key);

/* Wipes it. Objects created with it have their own copies and remain usable. NULL is a no-op. */
TOL_API void tol_seal_key_destroy(struct tol_seal_key *key);

/* ---- packed: on the host and in files ---- */

/* The layout of plaintext: consecutive rows. One row suits anything. */
struct tol_seal_shape {
    size_t rows, row_bytes;
};

/* The description of a packed object, once its manifest has been verified. */
struct tol_seal_info {
    struct tol_seal_shape shape;
    char label[TOL_SEAL_LABEL_BYTES]; /* as it was packed: the name of a tensor, say */
    uint64_t chunks;
};

/* Encrypts plain, rows * row_bytes, by AES-256-GCM, chunk by chunk, under a manifest with an
 * HMAC-SHA-256. The result is one block of memory, the content of a file, which the caller frees.
 * label: up to 63 bytes; NULL: none. TOL_OUT_OF_RANGE: nothing, or more than 256 GiB. */
TOL_API tol_status tol_seal_pack(const struct tol_seal_key *key, struct tol_seal_shape shape,
                                 const char *label, const void *plain, void **packed,
                                 size_t *packed_bytes);

/* Verifies the manifest. TOL_INVALID_FILE: this is not a packed object, or is truncated.
 * TOL_MISMATCH: the manifest was changed, or packed with another key. */
TOL_API tol_status tol_seal_read_info(const struct tol_seal_key *key, const void *packed,
                                      size_t packed_bytes, struct tol_seal_info *info);

/* Decrypts to plain, of rows * row_bytes. TOL_SIZE_MISMATCH: plain_bytes differs. TOL_INVALID_FILE,
 * TOL_MISMATCH: as above, or a chunk was changed or belongs to another object; the message has its
 * number. plain is then zeroed. */
TOL_API tol_status tol_seal_unpack(const struct tol_seal_key *key, const void *packed,
                                   size_t packed_bytes, void *plain, size_t plain_bytes);

/* Writes a file completely or not at all, and reads a whole file; the caller frees *packed.
 * TOL_UNREADABLE: the message has the path and the reason. */
TOL_API tol_status tol_seal_write_file(const char *path, const void *packed, size_t packed_bytes);
TOL_API tol_status tol_seal_read_file(const char *path, void **packed, size_t *packed_bytes);

/* ---- sealed: on a device ---- */

struct tol_sealer;
struct tol_sealed;

/* What sealing on a device needs: a copy of the key, kernels, a stream. The caller destroys it,
 * after all objects that it sealed. */
TOL_API tol_status tol_sealer_create(struct tol_context *context, const struct tol_seal_key *key,
                                     struct tol_sealer **sealer);
TOL_API void tol_sealer_destroy(struct tol_sealer *sealer);

struct tol_seal_options {
    struct tol_seal_shape shape;
    unsigned rounds;      /* of ChaCha on the device: 20, 12 or 8; 0: 20 */
    const char *label;    /* for messages; up to 63 bytes; NULL: none */
    bool verify_each_use; /* products verify first: at each one all bytes are read twice */
};

/* Encrypts plaintext on the host and copies it to the device, which never has plaintext. The device
 * verifies it. The caller destroys *sealed. TOL_OUT_OF_DEVICE_MEMORY. */
TOL_API tol_status tol_seal_host(struct tol_sealer *sealer, const struct tol_seal_options *options,
                                 const void *plain, struct tol_sealed **sealed);

/* The same for a packed object. One chunk at a time is plaintext, in locked memory of the host.
 * shape and label of options are not used. TOL_INVALID_FILE, TOL_MISMATCH: as tol_seal_unpack. */
TOL_API tol_status tol_seal_packed(struct tol_sealer *sealer,
                                   const struct tol_seal_options *options, const void *packed,
                                   size_t packed_bytes, struct tol_sealed **sealed);

/* The same for plaintext that is on the device already, such as computed weights. It is overwritten
 * with zeros. TOL_UNSUPPORTED: row_bytes is not a multiple of 64. TOL_OUT_OF_RANGE: plain is
 * smaller than the shape. */
TOL_API tol_status tol_seal_device(struct tol_sealer *sealer,
                                   const struct tol_seal_options *options, struct tol_place plain,
                                   struct tol_sealed **sealed);

/* Frees the memory once the context's work is done, and wipes the keys. NULL is a no-op. */
TOL_API void tol_sealed_destroy(struct tol_sealed *sealed);

/* The place of the sealed bytes. The next verification detects a write to it. */
TOL_API struct tol_place tol_sealed_place(const struct tol_sealed *sealed);

/* How often it was sealed again: 0 at first. */
TOL_API uint32_t tol_sealed_generation(const struct tol_sealed *sealed);

/* Computes the tags of all chunks on the device and compares them with those of the sealing; 16
 * bytes per 16 MiB are copied to the host. Waits. TOL_MISMATCH: bytes were changed; the message has
 * the first chunk, its offset, and their number. From then on all uses fail with TOL_MISMATCH,
 * until a verification finds everything as it was sealed. */
TOL_API tol_status tol_seal_verify(struct tol_sealed *sealed);

/* Seals again in place with new keys, in one pass in which each word is verified, decrypted,
 * encrypted and given its new tag in registers. Waits for the context's work before and for its
 * own. TOL_MISMATCH: as tol_seal_verify; a change is not undone by this. */
TOL_API tol_status tol_seal_rotate(struct tol_sealed *sealed);

/* Decrypts on the device to a place of the sealed size, with the gaps after rows, for consumers
 * that cannot decrypt. The place then contains plaintext. Waits. TOL_MISMATCH: as
 * tol_seal_verify; out is zeros then. TOL_OUT_OF_RANGE: the place is too small. */
TOL_API tol_status tol_seal_open(struct tol_sealed *sealed, struct tol_place out);

/* Decrypts to the host, rows * row_bytes without gaps; the device has no plaintext. Verifies what
 * it read. TOL_SIZE_MISMATCH. TOL_MISMATCH: as tol_seal_verify; plain is then zeroed. */
TOL_API tol_status tol_seal_read(struct tol_sealed *sealed, void *plain, size_t plain_bytes);

/* y = W x, where the sealed rows are blocks of Q4_K: kn_sealed_product. x has row_bytes / 144 * 256
 * floats, y rows. Queues work on the stream and does not wait, but for the verification that
 * verify_each_use asks for, which waits for its own work alone. TOL_UNSUPPORTED: row_bytes is not a
 * multiple of 144. TOL_MISMATCH: the latest verification failed. */
TOL_API tol_status tol_seal_product(struct tol_sealed *sealed, struct tol_stream *stream,
                                    struct tol_place x, struct tol_place y);

#ifdef __cplusplus
}
#endif
#endif
