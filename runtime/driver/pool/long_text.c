/*
 * A buffer that doubles.
 */
#include "long_text.h"

#include "core/c_locale.h"

#include <stdio.h>
#include <stdlib.h>

static bool long_text_make_room(struct tol_long_text *text, size_t more) {
    size_t room = text->room > 0 ? text->room : 4096;
    while (room - text->length <= more) room *= 2;
    if (room == text->room) return true;
    char *at = realloc(text->at, room);
    if (at == NULL) {
        text->is_cut = true;
        return false;
    }
    text->at = at;
    text->room = room;
    return true;
}

void tol_long_text_add(struct tol_long_text *text, const char *format, ...) {
    for (int try = 0; try < 2 && !text->is_cut; try++) {
        va_list arguments;
        size_t rest = text->room - text->length;
        va_start(arguments, format);
        const locale_t before = tol_c_locale_begin();
        int length = vsnprintf(rest > 0 ? text->at + text->length : NULL, rest, format, arguments);
        tol_c_locale_end(before);
        va_end(arguments);
        if (length < 0) return;
        if ((size_t)length < rest) {
            text->length += (size_t)length;
            return;
        }
        if (!long_text_make_room(text, (size_t)length)) return;
    }
}

void tol_long_text_quote(struct tol_long_text *text, const char *string) {
    tol_long_text_add(text, "\"");
    for (; *string != '\0'; string++) {
        unsigned char c = (unsigned char)*string;
        if (c < ' ' || c == 0x7f) {
            tol_long_text_add(text, "\\u%04x", c);
        } else {
            tol_long_text_add(text, c == '"' || c == '\\' ? "\\%c" : "%c", c);
        }
    }
    tol_long_text_add(text, "\"");
}

tol_status tol_long_text_end(struct tol_long_text *text, char **result) {
    tol_status status = TOL_OK;
    TOL_CHECK(!text->is_cut && long_text_make_room(text, 1), TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a text of more than %zu bytes", text->length);
    text->at[text->length] = '\0';
    *result = text->at;
    text->at = NULL;
out:
    free(text->at);
    *text = (struct tol_long_text){0};
    return status;
}
