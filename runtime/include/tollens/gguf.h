/*
 * GGUF: reads a file of a language model: its keys, and the position of each tensor.
 *
 * tol_gguf_open reads everything before the tensors' data (header, keys, descriptions of tensors)
 * into memory and checks all of it; a file that it accepts needs no further checks. The data of
 * tensors is read on demand by tol_gguf_read. Nothing is mapped: a file that another process
 * shortens is then a status, not a signal, and a read goes from the page cache straight to where
 * the caller wants it, such as a pinned block.
 *
 * A rejected file gets one sentence in tol_message(), which names the key or the tensor and the
 * byte offset in the file. Rejected are: truncation, counts and products that do not fit, unknown
 * kinds and types, duplicate keys and tensors, tensors that overlap, are not aligned or are not
 * inside the file, arrays of arrays, and what exceeds the limits below.
 *
 * A model that llama-gguf-split has split is opened by the name of any of its parts, all of which
 * must be there: its keys are those of the first part, its tensors those of all.
 *
 * Versions 2 and 3, little-endian. Not checked: whether strings are UTF-8; tokens need not be.
 *
 * Ownership: texts and values that the functions return belong to the tol_gguf and are valid until
 * tol_gguf_close. Threads: a tol_gguf does not change after it was opened, so any threads may use
 * it at once; only tol_gguf_close must be alone.
 * Source: the GGUF specification (ggml, docs/gguf.md).
 */
#ifndef TOLLENS_GGUF_H
#define TOLLENS_GGUF_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tol_gguf;

/* The limits. Elements of an array are limited by what remains of the file. */
enum {
    TOL_GGUF_KEYS_MAX = 100000,
    TOL_GGUF_TENSORS_MAX = 100000,
    TOL_GGUF_DIMENSIONS_MAX = 4,
    TOL_GGUF_KEY_BYTES_MAX = 65535,
    TOL_GGUF_NAME_BYTES_MAX = 64,         /* of a tensor */
    TOL_GGUF_STRING_BYTES_MAX = 16 << 20, /* of a value, or of an element of an array */
    TOL_GGUF_HEAD_BYTES_MAX = 256 << 20,  /* of everything before the tensors' data */
    TOL_GGUF_ALIGNMENT_MAX = 1 << 20      /* a power of two, 8 at least */
};

/* The kinds of values, such as TOL_GGUF_U32; the numbers are the file's. */
enum tol_gguf_kind {
#define GGUF_KIND(name, word, number, bytes) TOL_GGUF_##name = (number),
#include "gguf_types.def"
};

/* The types of tensors, such as TOL_TENSOR_Q4_K; the numbers are the file's. */
enum tol_tensor_type {
#define GGUF_TENSOR(name, number, elements, bytes) TOL_TENSOR_##name = (number),
#include "gguf_types.def"
};

/* The name of a kind, "u32", or of a type, "Q4_K". Static. NULL: there is none of that number. */
TOL_API const char *tol_gguf_kind_name(unsigned kind);
TOL_API const char *tol_tensor_type_name(unsigned type);

/* The elements and the bytes of a block of a type; 1 and the element's bytes if it has no blocks.
 * 0 for an unknown type. */
TOL_API unsigned tol_tensor_block_elements(unsigned type);
TOL_API unsigned tol_tensor_block_bytes(unsigned type);

/* Bytes of the file. They are not followed by a NUL and may contain any byte. */
struct tol_gguf_text {
    const char *bytes;
    size_t count;
};

/* ---- the file ---- */

/*
 * Opens and checks a file. The caller closes *gguf.
 * TOL_INVALID_ARGUMENT: NULL. TOL_UNREADABLE: the system cannot open or read it.
 * TOL_INVALID_FILE: it is no GGUF file, or one that must be refused, or a part of a split model of
 * which another part is missing; the message names it. TOL_OUT_OF_HOST_MEMORY.
 */
TOL_API tol_status tol_gguf_open(const char *path, struct tol_gguf **gguf);

/* NULL is a no-op. */
TOL_API void tol_gguf_close(struct tol_gguf *gguf);

struct tol_gguf_description {
    unsigned version;      /* 2 or 3 */
    unsigned alignment;    /* of each tensor's data, in bytes */
    size_t keys, tensors;  /* how many there are */
    uint64_t data_offset;  /* where the tensors' data begins */
    uint64_t tensor_bytes; /* of all tensors together, without gaps between them */
    uint64_t file_bytes;   /* when it was opened; of all parts of a split model */
};

TOL_API void tol_gguf_describe(const struct tol_gguf *gguf,
                               struct tol_gguf_description *description);

/* ---- keys ---- */

struct tol_gguf_value {
    struct tol_gguf_text key;
    enum tol_gguf_kind kind;    /* TOL_GGUF_ARRAY if it is one */
    enum tol_gguf_kind element; /* the kind of an array's elements; otherwise the kind */
    uint64_t count;             /* of elements: 1 if it is no array */
    uint64_t offset;            /* of the key, in bytes from the start of the file */
    const unsigned char *bytes; /* private; not aligned */
    const uint64_t *starts;     /* private: where each string of an array begins */
};

/* The value at a position, in the file's order. NULL: index is not below the count. */
TOL_API const struct tol_gguf_value *tol_gguf_value_at(const struct tol_gguf *gguf, size_t index);

/* The value of a key. NULL: the file does not have it. Takes log2(keys) comparisons. */
TOL_API const struct tol_gguf_value *tol_gguf_find(const struct tol_gguf *gguf, const char *key);

/*
 * The value of a key as a C type. TOL_NOT_FOUND: the file does not have the key.
 * TOL_INVALID_FILE: it has it with a value that the type cannot hold. Integers are converted where
 * they fit, real numbers from both sizes and from integers. *value stays as it is on failure, so
 * that a default can be in it.
 */
TOL_API tol_status tol_gguf_get_unsigned(const struct tol_gguf *gguf, const char *key,
                                         uint64_t *value);
TOL_API tol_status tol_gguf_get_signed(const struct tol_gguf *gguf, const char *key,
                                       int64_t *value);
TOL_API tol_status tol_gguf_get_real(const struct tol_gguf *gguf, const char *key, double *value);
TOL_API tol_status tol_gguf_get_bool(const struct tol_gguf *gguf, const char *key, bool *value);
TOL_API tol_status tol_gguf_get_text(const struct tol_gguf *gguf, const char *key,
                                     struct tol_gguf_text *value);

/* An array of elements of one kind. TOL_INVALID_FILE: it is no array, or one of another kind. */
TOL_API tol_status tol_gguf_get_array(const struct tol_gguf *gguf, const char *key,
                                      enum tol_gguf_kind element,
                                      const struct tol_gguf_value **value);

/* Element index, below value->count, of a value whose element kind fits: integers and bool for the
 * first two, all numbers for the third, strings for the last. Otherwise 0 or an empty text. */
TOL_API uint64_t tol_gguf_unsigned_at(const struct tol_gguf_value *value, uint64_t index);
TOL_API int64_t tol_gguf_signed_at(const struct tol_gguf_value *value, uint64_t index);
TOL_API double tol_gguf_real_at(const struct tol_gguf_value *value, uint64_t index);
TOL_API struct tol_gguf_text tol_gguf_text_at(const struct tol_gguf_value *value, uint64_t index);

/* ---- tensors ---- */

struct tol_gguf_tensor {
    struct tol_gguf_text name;
    enum tol_tensor_type type;
    unsigned dimensions;                      /* 0 to 4 */
    uint64_t extent[TOL_GGUF_DIMENSIONS_MAX]; /* the fastest first; 1 beyond the dimensions */
    uint64_t elements;                        /* the product of the extents; never 0 */
    uint64_t bytes;                           /* of its data */
    uint64_t offset; /* of its data, from the start of the file that it is in */
    unsigned part;   /* of a split model, from 0: the file that it is in */
};

/* The tensor at a position, in the file's order. NULL: index is not below the count. */
TOL_API const struct tol_gguf_tensor *tol_gguf_tensor_at(const struct tol_gguf *gguf, size_t index);

/* The tensor of a name. NULL: the file does not have it. */
TOL_API const struct tol_gguf_tensor *tol_gguf_find_tensor(const struct tol_gguf *gguf,
                                                           const char *name);

/*
 * Reads bytes of a tensor's data, from byte from of it on, to to. Any number of threads may read at
 * once. TOL_INVALID_ARGUMENT: NULL. TOL_OUT_OF_RANGE: beyond the tensor. TOL_UNREADABLE: the system
 * cannot read it. TOL_INVALID_FILE: the file has become shorter since it was opened; what to then
 * holds is undefined.
 */
TOL_API tol_status tol_gguf_read(const struct tol_gguf *gguf, const struct tol_gguf_tensor *tensor,
                                 uint64_t from, void *to, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
