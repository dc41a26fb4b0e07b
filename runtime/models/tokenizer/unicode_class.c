/*
 * A search in the table that ci/tidying/unicode_ranges.py writes.
 */
#include "unicode_class.h"

#include <stdbool.h>
#include <stddef.h>

static const struct range {
    uint32_t first, last;
    enum tol_unicode_class in;
} ranges[] = {
#define UNICODE_RANGE(first, last, name) {first, last, TOL_UNICODE_##name},
#include "unicode_ranges.def"
#undef UNICODE_RANGE
};

/* Source: the Unicode Character Database, PropList.txt. */
static bool is_space(uint32_t code) {
    if (code >= 0x09 && code <= 0x0d) return true;
    if (code >= 0x2000 && code <= 0x200a) return true;
    return code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

enum tol_unicode_class tol_unicode_class(uint32_t code) {
    size_t low = 0, high = sizeof ranges / sizeof ranges[0];
    if (is_space(code)) return TOL_UNICODE_SPACE;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (code < ranges[middle].first)
            high = middle;
        else if (code > ranges[middle].last)
            low = middle + 1;
        else
            return ranges[middle].in;
    }
    return TOL_UNICODE_OTHER;
}
