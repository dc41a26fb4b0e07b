/*
 * What host and device agree on. Internal.
 */
#ifndef KN_CHECKSUM_ARGUMENTS_H
#define KN_CHECKSUM_ARGUMENTS_H

enum {
    CHECKSUM_THREADS = 256,
    CHECKSUM_CHUNK_WORDS = 128 * CHECKSUM_THREADS, /* of a block: 128 KiB */
    CHECKSUM_SHIFT_WORDS = 4 * 256 + CHECKSUM_THREADS
};

#endif
