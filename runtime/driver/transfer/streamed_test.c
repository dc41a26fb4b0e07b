/*
 * Every width, at every alignment of both ends, copies these bytes and no other.
 */
#include "streamed.h"
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM = 20000, EDGE = 128 };

static void check(enum tol_stream_copy_width width, size_t to, size_t from, size_t bytes) {
    static unsigned char source[ROOM + 2 * EDGE], target[ROOM + 2 * EDGE];
    for (size_t i = 0; i < sizeof source; i++) {
        source[i] = (unsigned char)(i * 131 + (i >> 8) * 7 + 1);
    }
    memset(target, 0xee, sizeof target);
    tol_stream_copy_as(width, target + to, source + from, bytes);
    for (size_t i = 0; i < sizeof target; i++) {
        const bool is_inside = i >= to && i < to + bytes;
        const unsigned char expected = is_inside ? source[from + i - to] : 0xee;
        cr_assert_eq(target[i], expected, "width %d, %zu bytes from %zu to %zu: byte %zu",
                     (int)width, bytes, from, to, i);
    }
}

Test(streamed, every_width_copies_the_same) {
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 8192, 10007, ROOM};
    for (int width = 0; width <= (int)tol_stream_copy_widest(); width++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (size_t shift = 0; shift < EDGE; shift += 13) {
                check((enum tol_stream_copy_width)width, shift, EDGE - shift, sizes[i]);
            }
        }
    }
}
