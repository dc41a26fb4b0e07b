/*
 * Finds the two elements and exchanges them.
 */
#include "swapped.h"

#include <string.h>

bool kn_swap_last(void *elements, size_t element_bytes, size_t count) {
    enum { ELEMENT_BYTES_MAX = 8 };
    unsigned char kept[ELEMENT_BYTES_MAX], *bytes = elements;
    if (count == 0 || element_bytes > ELEMENT_BYTES_MAX) return false;
    unsigned char *last = bytes + (count - 1) * element_bytes;
    for (size_t i = count - 1; i-- > 0;) {
        unsigned char *other = bytes + i * element_bytes;
        if (memcmp(other, last, element_bytes) == 0) continue;
        memcpy(kept, last, element_bytes);
        memcpy(last, other, element_bytes);
        memcpy(other, kept, element_bytes);
        return true;
    }
    return false;
}
