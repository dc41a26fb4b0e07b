/*
 * The V2 encoding: a fixed header, then counts as ZigZag LEB128 with runs of zeros folded. This is
 * deflated, preceded by a second header, and encoded in Base64. All numbers in the headers are
 * big-endian. Source: HdrHistogram_py ENCODING.rst; AbstractHistogram.java (encodeIntoByteBuffer).
 */
#include "hdr_encode.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* The low byte of a cookie says how wide the counts may be; readers ignore its upper nibble. */
enum {
    COOKIE_V2 = 0x1c849303,
    COOKIE_COMPRESSED_V2 = 0x1c849304,
    COOKIE_WORD = 0x10,
    HEADER_BYTES = 40,
    OUTER_BYTES = 8,
    LEB_BYTES_MAX = 9,
    COUNTS_MAX = 1 << 24 /* what a reader believes: more than any digits and range we make */
};

static void put_32(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void put_64(uint8_t *at, uint64_t value) {
    put_32(at, (uint32_t)(value >> 32));
    put_32(at + 4, (uint32_t)value);
}

static uint32_t get_32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint64_t get_64(const uint8_t *at) {
    return (uint64_t)get_32(at) << 32 | get_32(at + 4);
}

/* Seven bits a byte, lowest first; a ninth byte holds eight and no continuation bit. */
static size_t put_leb(uint8_t *at, int64_t value) {
    uint64_t zigzag = ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
    size_t used = 0;
    while (zigzag >> 7 != 0 && used < LEB_BYTES_MAX - 1) {
        at[used++] = (uint8_t)(zigzag | 0x80);
        zigzag >>= 7;
    }
    at[used++] = (uint8_t)zigzag;
    return used;
}

/* Returns the bytes read; 0 when the number is cut off. */
static size_t get_leb(const uint8_t *at, size_t left, int64_t *value) {
    uint64_t zigzag = 0;
    for (size_t i = 0; i < left && i < LEB_BYTES_MAX; i++) {
        bool last = i == LEB_BYTES_MAX - 1;
        zigzag |= (uint64_t)(last ? at[i] : at[i] & 0x7f) << (7 * i);
        if (last || (at[i] & 0x80) == 0) {
            *value = (int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1);
            return i + 1;
        }
    }
    return 0;
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char *hdr_encode_to_base64(const uint8_t *bytes, size_t count) {
    char *text = malloc((count + 2) / 3 * 4 + 1), *to = text;
    if (text == NULL) return NULL;
    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        uint32_t group = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (left > 2 ? bytes[i + 2] : 0);
        *to++ = digits[group >> 18];
        *to++ = digits[group >> 12 & 63];
        *to++ = left > 1 ? digits[group >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[group & 63] : '=';
    }
    *to = '\0';
    return text;
}

/* Returns the bytes written to out, at most length / 4 * 3; -1 if the text is not Base64. */
static long from_base64(const char *text, size_t length, uint8_t *out) {
    size_t used = 0;
    if (length % 4 != 0) return -1;
    for (size_t i = 0; i < length; i += 4) {
        uint32_t group = 0;
        int padding = 0;
        for (size_t k = 0; k < 4; k++) {
            char c = text[i + k];
            const char *found = c != '\0' && c != '=' ? strchr(digits, c) : NULL;
            bool pads = c == '=' && i + 4 == length && k >= 2;
            if ((found == NULL && !pads) || (found != NULL && padding > 0)) return -1;
            padding += pads;
            group = group << 6 | (found != NULL ? (uint32_t)(found - digits) : 0);
        }
        for (int k = 0; k < 3 - padding; k++) out[used++] = (uint8_t)(group >> (16 - 8 * k));
    }
    return (long)used;
}

/* The counts up to the one of the largest value; a run of n zeros is the number -n. */
static size_t put_counts(const struct tol_hdr *hdr, uint8_t *at) {
    int32_t end = hdr->total > 0 ? tol_hdr_index(hdr, hdr->max) + 1 : 0;
    size_t used = 0;
    for (int32_t i = 0; i < end;) {
        int32_t zeros = 0;
        while (i + zeros < end && hdr->counts[i + zeros] == 0) zeros++;
        if (zeros > 0) {
            used += put_leb(at + used, -(int64_t)zeros);
            i += zeros;
        } else {
            used += put_leb(at + used, hdr->counts[i++]);
        }
    }
    return used;
}

char *hyp_hdr_encode(const struct tol_hdr *hdr) {
    char *text = NULL;
    size_t room = HEADER_BYTES + (size_t)hdr->count_of_counts * LEB_BYTES_MAX;
    uint8_t *plain = malloc(room), *packed = NULL;
    if (plain == NULL) return NULL;
    size_t payload = put_counts(hdr, plain + HEADER_BYTES);
    double ratio = 1;
    uint64_t ratio_bits = 0;
    memcpy(&ratio_bits, &ratio, sizeof ratio_bits);
    put_32(plain, COOKIE_V2 | COOKIE_WORD);
    put_32(plain + 4, (uint32_t)payload);
    put_32(plain + 8, 0); /* normalizing index offset */
    put_32(plain + 12, (uint32_t)hdr->digits);
    put_64(plain + 16, (uint64_t)hdr->lowest);
    put_64(plain + 24, (uint64_t)hdr->highest);
    put_64(plain + 32, ratio_bits);

    uLongf packed_bytes = compressBound((uLong)(HEADER_BYTES + payload));
    packed = malloc(OUTER_BYTES + packed_bytes);
    if (packed != NULL && compress2(packed + OUTER_BYTES, &packed_bytes, plain,
                                    (uLong)(HEADER_BYTES + payload), 9) == Z_OK) {
        put_32(packed, COOKIE_COMPRESSED_V2 | COOKIE_WORD);
        put_32(packed + 4, (uint32_t)packed_bytes);
        text = hdr_encode_to_base64(packed, OUTER_BYTES + packed_bytes);
    }
    free(packed);
    free(plain);
    return text;
}

static bool read_counts(struct tol_hdr *hdr, const uint8_t *at, size_t bytes) {
    int64_t index = 0;
    while (bytes > 0) {
        int64_t count = 0;
        size_t used = get_leb(at, bytes, &count);
        if (used == 0) return false;
        at += used;
        bytes -= used;
        if (count < 0) {
            if (count < -(int64_t)hdr->count_of_counts) return false;
            index -= count;
            continue;
        }
        if (index >= hdr->count_of_counts) return false;
        hdr->counts[index] = count;
        if (count > INT64_MAX - hdr->total) return false;
        hdr->total += count;
        if (count > 0) {
            int32_t place = (int32_t)index;
            if (hdr->min == INT64_MAX) hdr->min = tol_hdr_lowest_at(hdr, place);
            hdr->max = tol_hdr_highest_at(hdr, place);
        }
        index++;
    }
    return index <= hdr->count_of_counts;
}

static tol_hdr_error read_plain(const uint8_t *plain, size_t bytes, struct tol_hdr **result) {
    struct tol_hdr *hdr = NULL;
    if (bytes < HEADER_BYTES || (get_32(plain) & ~0xf0u) != COOKIE_V2) return TOL_HDR_BAD_DATA;
    uint32_t payload = get_32(plain + 4);
    if (payload > bytes - HEADER_BYTES || get_32(plain + 8) != 0) return TOL_HDR_BAD_DATA;
    tol_hdr_error error = tol_hdr_new((int64_t)get_64(plain + 16), (int64_t)get_64(plain + 24),
                                      (int)get_32(plain + 12), &hdr);
    if (error != TOL_HDR_OK) return error == TOL_HDR_NO_MEMORY ? error : TOL_HDR_BAD_DATA;
    if (!read_counts(hdr, plain + HEADER_BYTES, payload)) {
        tol_hdr_free(hdr);
        return TOL_HDR_BAD_DATA;
    }
    *result = hdr;
    return TOL_HDR_OK;
}

/* Deflate makes at most 1032 bytes of one. */
static uLongf plain_bytes_max(uint32_t packed) {
    const uLongf most = HEADER_BYTES + (uLongf)COUNTS_MAX, makes = 1032 * (uLongf)packed + 1;
    return makes < most ? makes : most;
}

tol_hdr_error hyp_hdr_decode(const char *base64, size_t length, struct tol_hdr **result) {
    *result = NULL;
    uint8_t *packed = malloc(length / 4 * 3 + 3);
    if (packed == NULL) return TOL_HDR_NO_MEMORY;
    tol_hdr_error error = TOL_HDR_BAD_DATA;
    long bytes = from_base64(base64, length, packed);
    if (bytes >= OUTER_BYTES && (get_32(packed) & ~0xf0u) == COOKIE_COMPRESSED_V2 &&
        get_32(packed + 4) <= (uint32_t)bytes - OUTER_BYTES) {
        uLongf room = plain_bytes_max(get_32(packed + 4));
        uint8_t *plain = malloc(room);
        if (plain == NULL) {
            error = TOL_HDR_NO_MEMORY;
        } else if (uncompress(plain, &room, packed + OUTER_BYTES, get_32(packed + 4)) == Z_OK) {
            error = read_plain(plain, room, result);
        }
        free(plain);
    }
    free(packed);
    return error;
}
