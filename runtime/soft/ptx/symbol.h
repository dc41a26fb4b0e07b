/*
 * Symbols: names in nested scopes. A range of registers is found by its stem: %r12 under "%r".
 */
#ifndef SOFT_SYMBOL_H
#define SOFT_SYMBOL_H

#include "base/arena.h"
#include "ptx.h"

/* Finds a name in a scope or the scopes around it; NULL if it is nowhere. */
struct ptx_symbol *ptx_symbol_find(const struct ptx_scope *scope, const char *name, size_t length);

/* Finds a register: *number is its number in the function. NULL if there is none. */
struct ptx_symbol *ptx_symbol_register(const struct ptx_scope *scope, const char *name,
                                       size_t length, uint32_t *number);

/* Whether the name of a register, or with a count above 0 of any in that range, is already taken in
 * this scope. */
bool ptx_symbol_register_taken(const struct ptx_scope *scope, const char *name, size_t length,
                               uint32_t count);

/* Finds a name in this scope alone. */
struct ptx_symbol *ptx_symbol_here(const struct ptx_scope *scope, const char *name, size_t length);

/* Adds a symbol without checking whether the name is taken; NULL without memory. */
struct ptx_symbol *ptx_symbol_add(struct soft_arena *arena, struct ptx_scope *scope,
                                  enum ptx_symbol_kind kind, const char *name, size_t length);

/* The same for a range of registers, by its stem. */
struct ptx_symbol *ptx_symbol_add_range(struct soft_arena *arena, struct ptx_scope *scope,
                                        const char *stem, size_t length);

#endif
