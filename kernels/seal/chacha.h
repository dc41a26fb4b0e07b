/*
 * ChaCha on the host: the key stream that the kernels add, and what they start from.
 *
 * RFC 8439 with 20 rounds. ChaCha12 and ChaCha8 are the same function with fewer rounds; the best
 * published attacks that recover a key reach 7 rounds (Aumasson and others, "New Features of Latin
 * Dances", 2008, and later work). No two messages may be added to the same key stream: the caller
 * never uses a key and a nonce for two of them. Pure; thread-safe. What is on the stack is wiped.
 */
#ifndef KN_CHACHA_H
#define KN_CHACHA_H

#include "seal/seal_arguments.h"

#include <stdbool.h>
#include <stddef.h>

enum { KN_CHACHA_KEY_BYTES = 32, KN_CHACHA_NONCE_BYTES = 12 };

/* Whether there are kernels with this number of rounds: 20, 12 and 8. */
bool kn_chacha_has(unsigned rounds);

/* The state of a key and a nonce. It is as secret as the key. */
void kn_chacha_begin(const uint8_t key[KN_CHACHA_KEY_BYTES],
                     const uint8_t nonce[KN_CHACHA_NONCE_BYTES], struct seal_stream *stream);

/* Writes in and the key stream from a counter on, added, to out, which may be in. If in is NULL,
 * the key stream itself. The counter must not overflow. */
void kn_chacha_add(const struct seal_stream *stream, unsigned rounds, uint32_t counter,
                   const void *in, void *out, size_t bytes);

#endif
