/*
 * Fuzz target: any bytes, compressed and in Base64, are an HDR histogram, or are refused. A fuzzer
 * of the log would have to guess the checksum of the compression; this one need not.
 */
#include "fuzz_input.h"

#include "files/hdr_encode.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { COOKIE_COMPRESSED_V2 = 0x1c849314 };

static char *hdr_to_base64(const uint8_t *bytes, size_t count) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc(count / 3 * 4 + 5), *to = text;
    if (text == NULL) exit(2);
    for (size_t i = 0; i < count; i += 3) {
        uint32_t group = 0;
        for (size_t k = 0; k < 3; k++) group = group << 8 | (i + k < count ? bytes[i + k] : 0);
        for (size_t k = 0; k < 4; k++) {
            *to++ = i + k <= count ? digits[group >> (18 - 6 * k) & 63] : '=';
        }
    }
    *to = '\0';
    return text;
}

/* The outer header before the compressed bytes. */
static char *hdr_pack(const uint8_t *data, size_t size) {
    uLongf bytes = compressBound((uLong)size);
    uint8_t *packed = malloc(8 + bytes);
    if (packed == NULL || compress2(packed + 8, &bytes, data, (uLong)size, 1) != Z_OK) exit(2);
    for (int i = 0; i < 4; i++) {
        packed[i] = (uint8_t)(COOKIE_COMPRESSED_V2 >> (24 - 8 * i));
        packed[4 + i] = (uint8_t)(bytes >> (24 - 8 * i));
    }
    char *text = hdr_to_base64(packed, 8 + bytes);
    free(packed);
    return text;
}

static void hdr_check_sense(const struct tol_hdr *hdr) {
    int64_t total = 0;
    for (int32_t i = 0; i < hdr->count_of_counts; i++) {
        FUZZ_HOLDS(hdr->counts[i] >= 0);
        total += hdr->counts[i];
    }
    FUZZ_HOLDS(total == hdr->total);
    FUZZ_HOLDS(tol_hdr_percentile(hdr, 0) <= tol_hdr_percentile(hdr, 50));
    FUZZ_HOLDS(tol_hdr_percentile(hdr, 50) <= tol_hdr_percentile(hdr, 100));
    FUZZ_HOLDS(hdr->total == 0 || tol_hdr_percentile(hdr, 100) == tol_hdr_max(hdr));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct tol_hdr *hdr = NULL, *again = NULL;
    char *text = hdr_pack(data, size);
    tol_hdr_error error = hyp_hdr_decode(text, strlen(text), &hdr);
    free(text);
    if (error != TOL_HDR_OK) {
        FUZZ_HOLDS(hdr == NULL && tol_hdr_sentence(error)[0] != '\0');
        return 0;
    }
    hdr_check_sense(hdr);
    text = hyp_hdr_encode(hdr);
    FUZZ_HOLDS(text != NULL);
    FUZZ_HOLDS(hyp_hdr_decode(text, strlen(text), &again) == TOL_HDR_OK);
    FUZZ_HOLDS(again->lowest == hdr->lowest && again->highest == hdr->highest);
    FUZZ_HOLDS(again->digits == hdr->digits && again->total == hdr->total);
    FUZZ_HOLDS(again->min == hdr->min && again->max == hdr->max);
    FUZZ_HOLDS(again->count_of_counts == hdr->count_of_counts);
    FUZZ_HOLDS(memcmp(again->counts, hdr->counts,
                      (size_t)hdr->count_of_counts * sizeof hdr->counts[0]) == 0);
    free(text);
    tol_hdr_free(again);
    tol_hdr_free(hdr);
    return 0;
}
