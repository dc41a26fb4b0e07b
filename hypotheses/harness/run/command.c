/*
 * How a command complains.
 */
#include "command.h"

#include <stdarg.h>
#include <stdio.h>

int hyp_command_complain(const char *format, ...) {
    va_list arguments;
    fputs("tollens: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return HYP_EXIT_ERROR;
}
