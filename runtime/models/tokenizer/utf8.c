/*
 * UTF-8. Source: the Unicode Standard, section 3.9.
 */
#include "utf8.h"

/* How many bytes a lead byte announces; 0: it is none. */
static size_t utf8_announced(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead < 0xc0) return 0;
    if (lead < 0xe0) return 2;
    if (lead < 0xf0) return 3;
    return lead < 0xf8 ? 4 : 0;
}

uint32_t tol_utf8_read(const char *bytes, size_t count, size_t *used) {
    static const unsigned char of_lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    size_t length = utf8_announced((unsigned char)bytes[0]);
    *used = 1;
    if (length == 0 || length > count) return TOL_UTF8_REPLACEMENT;
    uint32_t code = (unsigned char)bytes[0] & of_lead[length];
    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)bytes[i] & 0xc0) != 0x80) return TOL_UTF8_REPLACEMENT;
        code = code << 6 | ((unsigned char)bytes[i] & 0x3f);
    }
    if (code > 0x10ffff) return TOL_UTF8_REPLACEMENT;
    *used = length;
    return code;
}

size_t tol_utf8_write(uint32_t code, char to[4]) {
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length; i-- > 1; code >>= 6) to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(leads[length] | code);
    return length;
}

enum tol_utf8_state tol_utf8_check(const unsigned char *bytes, size_t count) {
    unsigned char lead = bytes[0], low = 0x80, high = 0xbf;
    size_t length = utf8_announced(lead);
    if (length == 0 || lead == 0xc0 || lead == 0xc1 || lead > 0xf4) return TOL_UTF8_BROKEN;
    /* The second byte excludes long forms, surrogates and what is above U+10FFFF. */
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
    for (size_t i = 1; i < length && i < count; i++) {
        if (bytes[i] < low || bytes[i] > high) return TOL_UTF8_BROKEN;
        low = 0x80;
        high = 0xbf;
    }
    return count < length ? TOL_UTF8_BEGUN : TOL_UTF8_WHOLE;
}
