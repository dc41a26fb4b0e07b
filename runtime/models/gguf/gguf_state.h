/*
 * The fields of struct tol_gguf, and what the files of the reader share.
 */
#ifndef TOLLENS_GGUF_STATE_H
#define TOLLENS_GGUF_STATE_H

#include "positioned_file.h"
#include "tollens/gguf.h"

struct tol_gguf {
    struct tol_file file;
    struct tol_gguf_description about;
    /* The file's bytes before the tensors' data; texts and values point into it. */
    unsigned char *head;
    struct tol_gguf_value *values;
    struct tol_gguf_tensor *tensors;
    /* Positions of values and of tensors in the order of their names, to find them. */
    uint32_t *values_by_key, *tensors_by_name;
    /* The other parts of a split model, in order; this is the first. */
    struct tol_gguf **parts;
    size_t part_count;
    char path[256]; /* for messages: its end, if it is longer */
};

/* The bytes of an element of a kind; 0: it has no fixed size, or is unknown. */
unsigned tol_gguf_kind_bytes(unsigned kind);

/* The name of a type that ggml has removed, "Q4_0_4_4", and of what replaces it. NULL: it is none
 * of those, and *instead stays. */
const char *tol_gguf_removed_name(unsigned type, const char **instead);

/* Makes text fit for a message, in quotes: cut after some bytes, and what is not printable ASCII
 * as \xNN. Returns to. */
enum { TOL_GGUF_QUOTED_BYTES = 288 };
const char *tol_gguf_quote(struct tol_gguf_text text, char to[TOL_GGUF_QUOTED_BYTES]);

/* The order of two texts, byte by byte; a prefix comes first. */
int tol_gguf_compare(struct tol_gguf_text a, struct tol_gguf_text b);

/* Reads the head of the file that is open, into *gguf. What was allocated is the caller's on
 * failure too. */
tol_status tol_gguf_read_head(struct tol_gguf *gguf);

/* Opens one file, and does not look for other parts of it. */
tol_status tol_gguf_open_part(const char *path, struct tol_gguf **gguf);

/* If *gguf, which was opened from path, is a part of a split model, *gguf becomes the whole of it.
 * On failure *gguf may be NULL; the caller closes it otherwise. */
tol_status tol_gguf_open_parts(const char *path, struct tol_gguf **gguf);

/* The file that a tensor's data and name are in. */
static inline const struct tol_gguf *tol_gguf_part(const struct tol_gguf *gguf,
                                                   const struct tol_gguf_tensor *tensor) {
    return tensor->part == 0 ? gguf : gguf->parts[tensor->part - 1];
}

/* Makes the two orders, and refuses duplicates and tensors that overlap. */
tol_status tol_gguf_check_names(struct tol_gguf *gguf);
tol_status tol_gguf_check_overlaps(const struct tol_gguf *gguf);

#endif
