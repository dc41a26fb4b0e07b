/*
 * Hex: bytes as test vectors are printed. For tests. Internal.
 */
#ifndef KN_HEX_H
#define KN_HEX_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The bytes of pairs of hexadecimal digits, between which there may be blanks; how many. */
static inline size_t kn_hex(const char *text, uint8_t *bytes, size_t room) {
    size_t count = 0;
    unsigned value = 0;
    int length = 0;
    while (count < room && sscanf(text, "%2x%n", &value, &length) == 1) {
        bytes[count++] = (uint8_t)value;
        text += length;
    }
    return count;
}

#endif
