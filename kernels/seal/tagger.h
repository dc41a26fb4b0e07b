/*
 * Tagger: tags of chunks on the host, equal to those that seal_1_chunks.cu makes on the device.
 *
 * The value of a chunk is Poly1305 (RFC 8439, section 2.5) of its bytes and of 16 more, its number,
 * level and length in units, at a secret point r, without the addition at the end. A tag is the
 * first 16 bytes of the ChaCha20 block whose counter and nonce are the value. Who does not know
 * the keys makes another chunk with the same tag with a probability of at most 8 * 1025 / 2^106,
 * about 2^-92, and learns nothing from tags, as long as ChaCha20 is a pseudorandom function.
 * Pure; thread-safe.
 */
#ifndef KN_TAGGER_H
#define KN_TAGGER_H

#include "seal/seal_arguments.h"

#include <stddef.h>

/* The tagger of a point, whose bits that Poly1305 wants to be 0 are cleared, and a key. It is as
 * secret as they are. */
void kn_tagger_begin(const uint8_t point[16], const uint8_t key[32], struct seal_tagger *tagger);

/* The value of bytes, which must be whole blocks of 16, and of no more. */
void kn_tagger_value(const struct seal_tagger *tagger, const void *data, size_t bytes,
                     uint8_t value[16]);

/* The tag of a chunk of up to SEAL_CHUNK_BYTES, in whole units. */
void kn_tagger_tag(const struct seal_tagger *tagger, uint64_t chunk, uint32_t level,
                   const void *data, size_t bytes, uint8_t tag[SEAL_TAG_BYTES]);

/* The tags of all chunks of data, of which the first has the number first. */
void kn_tagger_tags(const struct seal_tagger *tagger, uint64_t first, uint32_t level,
                    const void *data, size_t bytes, uint8_t *tags);

#endif
