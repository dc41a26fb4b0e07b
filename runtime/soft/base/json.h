/*
 * Json: a small, strict reader of JSON (RFC 8259), for the files that configure the soft device.
 * The soft device has no dependencies, because users copy it as a single file.
 *
 * Stricter than the standard: names in an object must differ, and nesting is limited.
 */
#ifndef SOFT_JSON_H
#define SOFT_JSON_H

#include "arena.h"

#include <stdbool.h>
#include <stdint.h>

enum soft_json_kind {
    SOFT_JSON_NULL,
    SOFT_JSON_TRUTH,
    SOFT_JSON_NUMBER,
    SOFT_JSON_STRING,
    SOFT_JSON_ARRAY,
    SOFT_JSON_OBJECT
};

/* Lines and columns count from 1, a column being a byte. */
struct soft_json_place {
    unsigned line, column;
};

struct soft_json {
    enum soft_json_kind kind;
    struct soft_json_place place, name_place; /* where the value begins, and its name */
    const char *name;                         /* as a member of an object */
    const char *text;                         /* of a string; without a NUL in it */
    double number;
    bool whole;     /* the number is an integer that fits into count */
    uint64_t count; /* of a whole number */
    bool truth;
    struct soft_json *first, *next; /* elements or members, in the order written */
};

struct soft_json_error {
    struct soft_json_place place;
    char text[160];
};

/* Parses a text into an arena. NULL: it is not JSON, and the error has the place and the reason. */
const struct soft_json *soft_json_read(struct soft_arena *arena, const char *text, size_t bytes,
                                       struct soft_json_error *error);

/* A member of an object; NULL. */
const struct soft_json *soft_json_member(const struct soft_json *object, const char *name);

#endif
