/*
 * Read back: a checksum of all bytes that synchronous copies brought to the host since it began, in
 * the order of the calls. Two runs of a case with the same inputs read the same bytes exactly if
 * their checksums agree (64 bits; a chance of 2^-64 of an error). One thread. Internal: not
 * installed.
 */
#ifndef KN_READ_BACK_H
#define KN_READ_BACK_H

#include "interpose.h"

/* Forgets what was read. */
void read_back_begin(void);

/* Adds the bytes of a call that succeeded, if it is a copy to the host. */
void read_back_note(const struct tol_interpose_call *call);

/* Bytes since read_back_begin, and their checksum. */
size_t read_back_bytes(void);
uint64_t read_back_checksum(void);

#endif
