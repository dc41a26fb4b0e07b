/*
 * The cursor: reads the head of a GGUF file from front to back, and never beyond the file's end or
 * the limit of the head.
 *
 * The bytes come into one block that grows; its byte n is the file's byte n, so an offset is both.
 * The block moves as it grows: keep offsets, not addresses, until all is read.
 */
#ifndef TOLLENS_GGUF_CURSOR_H
#define TOLLENS_GGUF_CURSOR_H

#include "positioned_file.h"

#include <stddef.h>
#include <stdint.h>

struct tol_gguf_cursor {
    const struct tol_file *file;
    unsigned char *bytes; /* what was read; the owner frees it */
    uint64_t have;        /* how many there are */
    uint64_t room;
    uint64_t at;      /* the next byte to be read */
    const char *path; /* these two are for messages: the file, and what is being read */
    char what[384];
};

/* The bytes from the cursor to the end of the file. */
uint64_t tol_gguf_remaining(const struct tol_gguf_cursor *cursor);

/* Makes the next count bytes present, without moving. TOL_INVALID_FILE: the file ends before them,
 * or they are beyond the limit of the head. TOL_UNREADABLE, TOL_OUT_OF_HOST_MEMORY. */
tol_status tol_gguf_need(struct tol_gguf_cursor *cursor, uint64_t count);

/* Reads a number and moves past it. */
tol_status tol_gguf_take_u32(struct tol_gguf_cursor *cursor, uint32_t *value);
tol_status tol_gguf_take_u64(struct tol_gguf_cursor *cursor, uint64_t *value);

/* Reads a string of at most most bytes and moves past it; *start is where its bytes are. */
tol_status tol_gguf_take_string(struct tol_gguf_cursor *cursor, uint64_t most, uint64_t *start,
                                uint64_t *count);

#endif
