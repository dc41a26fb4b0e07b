/*
 * Line, column and caret.
 */
#include "diagnostic.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

unsigned soft_line_of(const char *text, size_t length, size_t offset) {
    unsigned line = 1;
    for (size_t i = 0; i < offset && i < length; i++) line += text[i] == '\n';
    return line;
}

/* Appends printf-style; excess text is cut. */
__attribute__((format(printf, 2, 3))) static void diagnostic_add(struct soft_diagnostic *diagnostic,
                                                                 const char *format, ...) {
    va_list arguments;
    size_t used = strlen(diagnostic->message);
    va_start(arguments, format);
    vsnprintf(diagnostic->message + used, sizeof diagnostic->message - used, format, arguments);
    va_end(arguments);
}

bool soft_error(struct soft_diagnostic *diagnostic, size_t offset, int result, const char *format,
                ...) {
    enum { SHOWN_MAX = 160 };
    if (diagnostic->failed) return false;
    diagnostic->failed = true;
    diagnostic->result = result;
    if (offset > diagnostic->length) offset = diagnostic->length;

    size_t begin = offset, end = offset;
    while (begin > 0 && diagnostic->text[begin - 1] != '\n') begin--;
    while (end < diagnostic->length && diagnostic->text[end] != '\n') end++;
    size_t column = offset - begin;

    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    diagnostic_add(diagnostic, "%.200s:%u:%zu: error: %s\n",
                   diagnostic->name != NULL ? diagnostic->name : "ptx",
                   soft_line_of(diagnostic->text, diagnostic->length, offset), column + 1, what);

    /* A very long line is shown from shortly before the place. */
    size_t shown = column > SHOWN_MAX / 2 ? column - SHOWN_MAX / 2 : 0;
    size_t count = end - begin - shown < SHOWN_MAX ? end - begin - shown : SHOWN_MAX;
    char line[SHOWN_MAX + 1], caret[SHOWN_MAX + 2];
    size_t marks = 0;
    for (size_t i = 0; i < count; i++) {
        char c = diagnostic->text[begin + shown + i];
        line[i] = (c >= ' ' && c <= '~') || c == '\t' ? c : '?';
        if (i < column - shown) caret[marks++] = c == '\t' ? '\t' : ' ';
    }
    line[count] = '\0';
    caret[marks] = '^';
    caret[marks + 1] = '\0';
    diagnostic_add(diagnostic, "    %s\n    %s\n", line, caret);
    return false;
}
