#include "table_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void table_put(struct table_text *text, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int needed = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (text->failed || needed < 0) return;
    if (text->used + (size_t)needed + 1 > text->room) {
        size_t room = text->room * 2 + (size_t)needed + 1024;
        char *bytes = realloc(text->bytes, room);
        if (bytes == NULL) {
            text->failed = true;
            return;
        }
        text->bytes = bytes;
        text->room = room;
    }
    va_start(list, format);
    vsnprintf(text->bytes + text->used, text->room - text->used, format, list);
    va_end(list);
    text->used += (size_t)needed;
}

char *table_text_end(struct table_text *text) {
    if (!text->failed) return text->bytes;
    free(text->bytes);
    return NULL;
}
