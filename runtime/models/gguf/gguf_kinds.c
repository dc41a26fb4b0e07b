/*
 * The kinds of values and the types of tensors, by number; and texts of a file, for messages.
 */
#include "gguf_state.h"

#include <stdio.h>
#include <string.h>

const char *tol_gguf_kind_name(unsigned kind) {
    switch (kind) {
#define GGUF_KIND(name, word, number, bytes)                                                       \
    case number:                                                                                   \
        return word;
#include "tollens/gguf_types.def"
    default:
        return NULL;
    }
}

unsigned tol_gguf_kind_bytes(unsigned kind) {
    switch (kind) {
#define GGUF_KIND(name, word, number, bytes)                                                       \
    case number:                                                                                   \
        return bytes;
#include "tollens/gguf_types.def"
    default:
        return 0;
    }
}

const char *tol_tensor_type_name(unsigned type) {
    switch (type) {
#define GGUF_TENSOR(name, number, elements, bytes)                                                 \
    case number:                                                                                   \
        return #name;
#include "tollens/gguf_types.def"
    default:
        return NULL;
    }
}

unsigned tol_tensor_block_elements(unsigned type) {
    switch (type) {
#define GGUF_TENSOR(name, number, elements, bytes)                                                 \
    case number:                                                                                   \
        return elements;
#include "tollens/gguf_types.def"
    default:
        return 0;
    }
}

unsigned tol_tensor_block_bytes(unsigned type) {
    switch (type) {
#define GGUF_TENSOR(name, number, elements, bytes)                                                 \
    case number:                                                                                   \
        return bytes;
#include "tollens/gguf_types.def"
    default:
        return 0;
    }
}

const char *tol_gguf_removed_name(unsigned type, const char **instead) {
    switch (type) {
#define GGUF_REMOVED(name, number, replacement)                                                    \
    case number:                                                                                   \
        *instead = (replacement);                                                                  \
        return #name;
#include "tollens/gguf_types.def"
    default:
        return NULL;
    }
}

const char *tol_gguf_quote(struct tol_gguf_text text, char to[TOL_GGUF_QUOTED_BYTES]) {
    enum { SHOWN = 64 };
    static const char digits[] = "0123456789abcdef";
    size_t shown = text.count < SHOWN ? text.count : SHOWN, at = 0;
    to[at++] = '"';
    for (size_t i = 0; i < shown; i++) {
        unsigned char byte = (unsigned char)text.bytes[i];
        if (byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\') {
            to[at++] = (char)byte;
        } else {
            to[at++] = '\\';
            to[at++] = 'x';
            to[at++] = digits[byte >> 4];
            to[at++] = digits[byte & 15];
        }
    }
    snprintf(to + at, TOL_GGUF_QUOTED_BYTES - at, "%s\"", shown < text.count ? "..." : "");
    return to;
}

int tol_gguf_compare(struct tol_gguf_text a, struct tol_gguf_text b) {
    size_t shorter = a.count < b.count ? a.count : b.count;
    int order = shorter > 0 ? memcmp(a.bytes, b.bytes, shorter) : 0;
    if (order != 0) return order;
    return a.count < b.count ? -1 : a.count > b.count;
}
