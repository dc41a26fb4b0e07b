/*
 * Pickle: Python's own format of values, read without executing anything.
 *
 * A pickle is a program for a machine with a stack, and the general machine imports and calls what
 * the file names. This reader has only the opcodes of protocols 2 to 5 that make None, booleans,
 * whole numbers, floating-point numbers, text, lists, tuples and dictionaries with text as keys,
 * and those that refer to an earlier value. It refuses each other opcode by its name and offset.
 * Source: Python's Lib/pickletools.py (the opcodes), PEP 3154 and PEP 574 (protocols 4 and 5).
 *
 * A file may be hostile. Memory is in proportion to its size, values nest at most
 * HYP_PICKLE_DEPTH_MAX deep, and no value can contain itself: a list or dictionary that is part of
 * another one can no longer be changed. Python's pickler never needs that for a value without
 * cycles.
 */
#ifndef HYP_TRACE_PICKLE_H
#define HYP_TRACE_PICKLE_H

#include <jansson.h>
#include <stddef.h>

enum { HYP_PICKLE_DEPTH_MAX = 64 };

/* Reads a whole pickle as JSON values: a tuple becomes an array, and a number that JSON or 64 bits
 * cannot hold becomes null. Parts that the pickle shares are shared. json_decref the result. NULL:
 * hyp_error() names path and byte. */
json_t *hyp_pickle_read(const char *path, const unsigned char *bytes, size_t count);

#endif
