/*
 * The cut is before the first byte of the character that does not fit.
 */
#include "text_copy.h"

#include <string.h>

void hyp_text_copy(char *to, size_t bytes, const char *from) {
    size_t length = from != NULL ? strlen(from) : 0;
    if (length >= bytes) {
        length = bytes - 1;
        while (length > 0 && ((unsigned char)from[length] & 0xc0) == 0x80) length--;
    }
    if (length > 0) memcpy(to, from, length);
    to[length] = '\0';
}
