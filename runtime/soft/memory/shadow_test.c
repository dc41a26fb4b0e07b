/*
 * The shadow of written bytes has one bit per byte, four per element: every range of a few
 * elements, marked alone and beside another, is compared with marking one bit at a time.
 */
#include "space.h"

#include <criterion/criterion.h>
#include <string.h>

enum { BYTES = 40, ELEMENTS = BYTES / 4 };

static bool is_marked(const uint8_t *shadow, unsigned byte) {
    return (shadow[byte / 4] >> byte % 4 & 1) != 0;
}

Test(shadow, has_a_bit_for_each_byte_that_is_written) {
    for (unsigned offset = 0; offset < BYTES; offset++) {
        for (unsigned bytes = 0; offset + bytes <= BYTES; bytes++) {
            uint8_t shadow[ELEMENTS] = {0};
            soft_shadow_set(&shadow[ELEMENTS - 1], 8); /* the last byte is there already */
            soft_shadow_mark(shadow, offset, bytes);
            for (unsigned byte = 0; byte < BYTES; byte++) {
                bool expected = (byte >= offset && byte < offset + bytes) || byte == BYTES - 1;
                cr_assert_eq(is_marked(shadow, byte), expected, "byte %u of %u at %u", byte, bytes,
                             offset);
            }
            for (unsigned i = 0; i < ELEMENTS; i++) cr_assert_leq(shadow[i], 0xf);
        }
    }
    soft_shadow_mark(NULL, 0, 4); /* an allocation that nobody watches has none */
}
