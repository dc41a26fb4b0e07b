/*
 * Scopes as small hash tables. Names are compared in place: they point into the module's text.
 */
#include "symbol.h"

#include <string.h>

const struct ptx_type_info ptx_types[PTX_TYPES] = {
#define PTX_TYPE(name, text, bits, kind) {text, bits, #kind},
#include "modifier.def"
};

static unsigned symbol_bucket_of(const char *name, size_t length) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return (hash ^ hash >> 16) % PTX_BUCKETS;
}

static bool symbol_is_name(const struct ptx_symbol *symbol, const char *name, size_t length) {
    return symbol->length == length && symbol->name[length - 1] == name[length - 1] &&
           memcmp(symbol->name, name, length - 1) == 0;
}

static struct ptx_symbol *find_in(const struct ptx_scope *scope, unsigned bucket, const char *name,
                                  size_t length) {
    struct ptx_symbol *symbol = scope->buckets[bucket];
    while (symbol != NULL && !symbol_is_name(symbol, name, length)) symbol = symbol->next;
    return symbol;
}

/* Ranges are few, and have a list of their own: a range's stem is no name, p<5> declares p0 to p4,
 * and p may be a parameter. */
static struct ptx_symbol *find_range(const struct ptx_scope *scope, const char *stem,
                                     size_t length) {
    struct ptx_symbol *range = scope->ranges;
    while (range != NULL && !symbol_is_name(range, stem, length)) range = range->next;
    return range;
}

struct ptx_symbol *ptx_symbol_here(const struct ptx_scope *scope, const char *name, size_t length) {
    return find_in(scope, symbol_bucket_of(name, length), name, length);
}

/* Whether a name is declared before an offset of the text. */
static bool stands_before(const struct ptx_symbol *symbol, uint32_t before) {
    return before == 0 || symbol->offset < before;
}

struct ptx_symbol *ptx_symbol_find(const struct ptx_scope *scope, const char *name, size_t length) {
    unsigned bucket = symbol_bucket_of(name, length);
    uint32_t before = 0;
    for (; scope != NULL; scope = scope->parent) {
        struct ptx_symbol *symbol = find_in(scope, bucket, name, length);
        if (symbol != NULL && stands_before(symbol, before)) return symbol;
        before = scope->before;
    }
    return NULL;
}

/* A register's name as a stem and an index. %r007 and %r7 are not the same name, and only the
 * second is one of a range. false: it cannot be of a range. */
static bool split_name(const char *name, size_t length, size_t *stem, uint32_t *index) {
    *stem = length;
    while (*stem > 0 && name[*stem - 1] >= '0' && name[*stem - 1] <= '9') --*stem;
    if (*stem == length || length - *stem > 9) return false;
    if (name[*stem] == '0' && length - *stem > 1) return false;
    *index = 0;
    for (size_t i = *stem; i < length; i++) *index = *index * 10 + (uint32_t)(name[i] - '0');
    return true;
}

struct ptx_symbol *ptx_symbol_register(const struct ptx_scope *scope, const char *name,
                                       size_t length, uint32_t *number) {
    size_t stem = 0;
    uint32_t index = 0;
    bool may_be_of_range = split_name(name, length, &stem, &index);
    unsigned own_bucket = 0;
    uint32_t before = 0;
    bool has_bucket = false;
    for (; scope != NULL; before = scope->before, scope = scope->parent) {
        struct ptx_symbol *symbol = NULL;
        /* Compilers declare ranges: most functions have no single register of that form. */
        if (name[0] != '%' || scope->has_percent) {
            if (!has_bucket) own_bucket = symbol_bucket_of(name, length);
            has_bucket = true;
            symbol = find_in(scope, own_bucket, name, length);
        }
        if (symbol != NULL && stands_before(symbol, before)) {
            if (symbol->kind != PTX_REGISTER) return NULL;
            *number = symbol->is.reg.first;
            return symbol;
        }
        if (!may_be_of_range) continue;
        symbol = find_range(scope, name, stem);
        if (symbol != NULL && index < symbol->is.reg.count) {
            *number = symbol->is.reg.first + index * symbol->is.reg.width;
            return symbol;
        }
    }
    return NULL;
}

bool ptx_symbol_register_taken(const struct ptx_scope *scope, const char *name, size_t length,
                               uint32_t count) {
    size_t stem = 0;
    uint32_t index = 0;
    const struct ptx_symbol *known =
        count > 0 ? find_range(scope, name, length) : ptx_symbol_here(scope, name, length);
    if (known != NULL) return true;
    if (count == 0 && split_name(name, length, &stem, &index)) {
        const struct ptx_symbol *range = find_range(scope, name, stem);
        return range != NULL && index < range->is.reg.count;
    }
    /* A range: any single register whose stem it shares and whose index it covers. */
    for (unsigned bucket = 0; bucket < PTX_BUCKETS && count > 0; bucket++) {
        const struct ptx_symbol *symbol = scope->buckets[bucket];
        for (; symbol != NULL; symbol = symbol->next) {
            if (split_name(symbol->name, symbol->length, &stem, &index) && stem == length &&
                index < count && memcmp(symbol->name, name, length) == 0) {
                return true;
            }
        }
    }
    return false;
}

static struct ptx_symbol *symbol_add(struct soft_arena *arena, struct ptx_symbol **list,
                                     enum ptx_symbol_kind kind, const char *name, size_t length) {
    struct ptx_symbol *symbol = soft_arena_alloc(arena, sizeof *symbol);
    if (symbol == NULL) return NULL;
    symbol->kind = kind;
    symbol->name = name;
    symbol->length = (uint32_t)length;
    symbol->next = *list;
    *list = symbol;
    return symbol;
}

struct ptx_symbol *ptx_symbol_add(struct soft_arena *arena, struct ptx_scope *scope,
                                  enum ptx_symbol_kind kind, const char *name, size_t length) {
    scope->has_percent |= name[0] == '%';
    return symbol_add(arena, &scope->buckets[symbol_bucket_of(name, length)], kind, name, length);
}

struct ptx_symbol *ptx_symbol_add_range(struct soft_arena *arena, struct ptx_scope *scope,
                                        const char *stem, size_t length) {
    return symbol_add(arena, &scope->ranges, PTX_REGISTER, stem, length);
}
