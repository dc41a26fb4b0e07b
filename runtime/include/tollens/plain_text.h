/*
 * Plain text: what a terminal shows of a text from outside, such as a file name, a kernel's name, a
 * compiler's log or a variable. An escape sequence in it could hide or change what was printed.
 */
#ifndef TOLLENS_PLAIN_TEXT_H
#define TOLLENS_PLAIN_TEXT_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Puts ? in the place of control characters, except line breaks and tabs. Of UTF-8 these are also
 * U+0080 to U+009F, which have two bytes. */
static inline void tol_plain_text(char *text) {
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++) {
        const int is_two = c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f;
        if (is_two) c[1] = '?';
        if (is_two || (*c < ' ' && *c != '\n' && *c != '\t') || *c == 0x7f) *c = '?';
    }
}

/* As vfprintf and fprintf, with plain text. */
static inline void tol_plain_vprint(FILE *out, const char *format, va_list arguments) {
    char room[1024], *text = room;
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(room, sizeof room, format, arguments);
    if (length >= (int)sizeof room && (text = (char *)malloc((size_t)length + 1)) != NULL) {
        vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    if (text == NULL) text = room; /* no memory: the end is missing */
    if (length >= 0) tol_plain_text(text);
    if (length >= 0) fputs(text, out);
    if (text != room) free(text);
}

static inline void tol_plain_print(FILE *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline void tol_plain_print(FILE *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    tol_plain_vprint(out, format, arguments);
    va_end(arguments);
}

#endif
