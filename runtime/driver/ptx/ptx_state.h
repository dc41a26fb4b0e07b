/*
 * The state of a PTX builder, and what its parts share. Every function that emits begins with
 * tol_ptx_may, which is false after a mistake.
 */
#ifndef TOLLENS_PTX_STATE_H
#define TOLLENS_PTX_STATE_H

#include "core/check.h"
#include "tollens/ptx_builder.h"

#include <stdio.h>

enum { TOL_PTX_NAME_BYTES = 128, TOL_PTX_MISTAKE_BYTES = 512, TOL_PTX_DEPTH_MAX = 64 };

/* A register's class: all registers of one size are declared together. */
enum tol_ptx_class { TOL_PTX_CLASS_PRED, TOL_PTX_CLASS_16, TOL_PTX_CLASS_32, TOL_PTX_CLASS_64 };
enum { TOL_PTX_CLASS_COUNT = TOL_PTX_CLASS_64 + 1 };

struct tol_ptx_entry {
    tol_ptx_type type;
    bool constant, variable;
    uint32_t block; /* that made it; of constants 0 */
    uint64_t bits;  /* of a constant; the number of a register */
};

enum tol_ptx_block_kind { TOL_PTX_KERNEL, TOL_PTX_THEN, TOL_PTX_ELSE, TOL_PTX_LOOP };

struct tol_ptx_block {
    enum tol_ptx_block_kind kind;
    uint32_t number; /* unique in the module; its labels have it */
    bool left;       /* of a loop: there is a way out */
    struct tol_ptx_place at;
};

/* Text that grows. */
struct tol_ptx_text {
    FILE *file;
    char *bytes;
    size_t count;
};

struct tol_ptx {
    uint32_t serial;    /* in the values that it gives out */
    int capability;     /* of the device */
    int needs, version; /* of what was used: 10 * major + minor */
    bool finished, has_kernel;
    tol_status mistake;
    char why[TOL_PTX_MISTAKE_BYTES];
    struct tol_ptx_entry *entries; /* by id; the first is no value */
    size_t entry_count, entry_room;
    struct tol_ptx_block blocks[TOL_PTX_DEPTH_MAX]; /* open, from the kernel inwards */
    unsigned depth;
    uint32_t block_count;
    /* The open kernel: its name, how much of it there is, and its body. */
    char name[TOL_PTX_NAME_BYTES];
    unsigned threads, parameters;
    size_t shared_bytes;
    bool has_body;
    uint32_t registers[TOL_PTX_CLASS_COUNT];
    struct tol_ptx_text parameter_list, body, kernels, whole;
    char (*names)[TOL_PTX_NAME_BYTES];
    size_t name_count;
};

/* ---- mistakes ---- */

/* Keeps the first mistake: "file:line: what: text". */
TOL_COLD void tol_ptx_mistake(struct tol_ptx *ptx, struct tol_ptx_place at, tol_status status,
                              const char *format, ...) TOL_PRINTF(4, 5);

/* Whether an instruction can be added: in an open kernel, and without a mistake. what: its name. */
bool tol_ptx_may(struct tol_ptx *ptx, struct tol_ptx_place at, const char *what);

/* Whether the device has it, which the module then needs. */
bool tol_ptx_has(struct tol_ptx *ptx, struct tol_ptx_place at, const char *what, int capability,
                 int version);

/* ---- types ---- */

unsigned tol_ptx_bytes(tol_ptx_type type); /* 0 of predicates */
enum tol_ptx_class tol_ptx_class_of(tol_ptx_type type);
const char *tol_ptx_type_name(tol_ptx_type type); /* "f32" */
const char *tol_ptx_bits_name(unsigned bytes);    /* "b32" */
bool tol_ptx_is_float(tol_ptx_type type);         /* of one number */
bool tol_ptx_is_whole(tol_ptx_type type);         /* U or S */
bool tol_ptx_is_signed(tol_ptx_type type);

/* ---- values ---- */

/* The entry of a value that may be used here, or NULL with a mistake. which: "the first operand" */
const struct tol_ptx_entry *tol_ptx_use(struct tol_ptx *ptx, struct tol_ptx_place at,
                                        const char *what, const char *which, tol_ptx_value value);

/* The same of a value that must have a type. */
bool tol_ptx_use_type(struct tol_ptx *ptx, struct tol_ptx_place at, const char *what,
                      const char *which, tol_ptx_value value, tol_ptx_type type);

/* A new register in the innermost block. */
tol_ptx_value tol_ptx_new(struct tol_ptx *ptx, tol_ptx_type type);

/* How a value is written as an operand: "%r3", "0f3F800000". */
struct tol_ptx_word {
    char text[24];
};
struct tol_ptx_word tol_ptx_word_of(const struct tol_ptx *ptx, tol_ptx_value value);
#define TOL_PTX_WORD(ptx, value) tol_ptx_word_of(ptx, value).text

/* Adds a line to the body. */
void tol_ptx_line(struct tol_ptx *ptx, const char *format, ...) TOL_PRINTF(2, 3);

/* ---- text ---- */

bool tol_ptx_text_open(struct tol_ptx_text *text);
void tol_ptx_text_close(struct tol_ptx_text *text); /* frees it */
/* What is in it now, or NULL where memory ran out. */
const char *tol_ptx_text_read(struct tol_ptx_text *text);
void tol_ptx_text_clear(struct tol_ptx_text *text);

#endif
