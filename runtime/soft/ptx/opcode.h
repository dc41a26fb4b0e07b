/*
 * Opcodes: matches an instruction's spelling, such as "ld.global.v4.f32", against ptx.def.
 *
 * A module uses few spellings often, so each is matched once and cached. Source: PTX ISA 9.0,
 * chapter 9.
 */
#ifndef SOFT_OPCODE_H
#define SOFT_OPCODE_H

#include "base/arena.h"
#include "ptx.h"

/* A row of ptx.def: one form of one instruction. How it is lowered is in lower_row.c. */
struct ptx_row {
    const char *name;
    const char *pattern;  /* which modifiers, in which order: see ptx.def */
    const char *operands; /* see ptx.def */
    uint16_t version_min; /* its first PTX version, 10 * major + minor */
    uint16_t target_min;  /* the oldest target that has it */
};

enum { PTX_OPCODE_BUCKETS = 256 };

struct ptx_opcode_entry {
    struct ptx_opcode opcode;
    const char *spelling;
    size_t length;
    struct ptx_opcode_entry *next;
};

struct ptx_opcode_cache {
    struct ptx_opcode_entry *buckets[PTX_OPCODE_BUCKETS];
};

/* Resolves a spelling. NULL: it is not supported, and why has the reason as a clause (why_bytes at
 * most); *at is the place in the spelling. */
const struct ptx_opcode *ptx_opcode_find(struct ptx_opcode_cache *cache, struct soft_arena *arena,
                                         const char *spelling, size_t length, char *why,
                                         size_t why_bytes, size_t *at);

/* The modifier of a word without its dot; PTX_MODIFIERS if none. */
enum ptx_modifier ptx_modifier_find(const char *text, size_t length);

/* The number of rows in ptx.def, and one row: for tests and documentation. */
size_t ptx_row_count(void);
const struct ptx_row *ptx_row_at(size_t index);

/* A row's place in ptx.def, from 0. */
size_t ptx_row_index(const struct ptx_row *row);

#endif
