/*
 * All uses of a name refer to its symbol, so it is enough to redirect the symbols: each unit's
 * symbol of a name then refers to the one definition. As in "Linking Directives" of PTX ISA 9.0: of
 * several weak definitions one counts, and none beside a definition that is not weak; of several
 * common ones the largest.
 */
#include "unite.h"

#include "tollens/cuda_abi.h"
#include "symbol.h"

static bool is_definition(const struct ptx_symbol *symbol) {
    if (symbol->kind == PTX_FUNCTION) return symbol->is.function->has_body;
    return symbol->kind == PTX_VARIABLE && !symbol->is.variable->external;
}

static enum ptx_linkage linkage_of(const struct ptx_symbol *symbol) {
    return symbol->kind == PTX_FUNCTION ? symbol->is.function->linkage
                                        : symbol->is.variable->linkage;
}

/* Whether other units may mean it. */
static bool is_offered(const struct ptx_symbol *symbol) {
    if (symbol->kind != PTX_FUNCTION && symbol->kind != PTX_VARIABLE) return false;
    return linkage_of(symbol) != PTX_LINKAGE_OWN;
}

/* Whether two symbols mean the same already. */
static bool unite_is_same(const struct ptx_symbol *one, const struct ptx_symbol *other) {
    if (one->kind != other->kind) return false;
    return one->kind == PTX_FUNCTION ? one->is.function == other->is.function
                                     : one->is.variable == other->is.variable;
}

/* Whether one definition takes precedence over another of the same name. */
static bool goes_before(const struct ptx_symbol *one, const struct ptx_symbol *other) {
    enum ptx_linkage a = linkage_of(one), b = linkage_of(other);
    if (a != b) return a == PTX_LINKAGE_VISIBLE;
    return a == PTX_LINKAGE_COMMON && one->is.variable->bytes > other->is.variable->bytes;
}

/* The definition of a name among all units; NULL if there is none. clash and where: an invalid
 * second definition, and its unit. */
static struct ptx_symbol *find_definition(const struct soft_unit *units, unsigned count,
                                          const struct ptx_symbol *like,
                                          const struct ptx_symbol **clash,
                                          const struct soft_unit **where) {
    struct ptx_symbol *best = NULL;
    for (unsigned u = 0; u < count; u++) {
        const struct soft_unit *unit = &units[u];
        struct ptx_symbol *symbol = ptx_symbol_here(unit->ptx.scope, like->name, like->length);
        if (symbol == NULL || !is_offered(symbol) || !is_definition(symbol)) continue;
        if (best != NULL && unite_is_same(best, symbol)) continue;
        if (best != NULL && linkage_of(best) == PTX_LINKAGE_VISIBLE &&
            linkage_of(symbol) == PTX_LINKAGE_VISIBLE) {
            *clash = symbol;
            *where = unit;
        }
        if (best == NULL || goes_before(symbol, best)) best = symbol;
    }
    return best;
}

/* Redirects a symbol, which keeps its place in its unit. */
static bool unite_redirect(struct ptx_symbol *symbol, const struct ptx_symbol *definition) {
    if (symbol->kind != definition->kind) return false;
    if (unite_is_same(symbol, definition)) return true;
    if (symbol->kind == PTX_FUNCTION) {
        symbol->is.function = definition->is.function;
    } else {
        if (symbol->is.variable->space != definition->is.variable->space) return false;
        symbol->is.variable->elsewhere = true;
        symbol->is.variable = definition->is.variable;
    }
    return true;
}

static bool unite_fail(struct soft_diagnostic *diagnostic, const struct soft_unit *unit,
                       const struct ptx_symbol *symbol, const char *what) {
    soft_unit_look_at(diagnostic, unit);
    return soft_error(diagnostic, symbol->offset, CUDA_ERROR_INVALID_PTX, "'%.*s' is %s",
                      (int)symbol->length, symbol->name, what);
}

static bool unite_symbol(struct soft_diagnostic *diagnostic, const struct soft_unit *units,
                         unsigned count, const struct soft_unit *unit, struct ptx_symbol *symbol) {
    const struct ptx_symbol *clash = NULL;
    const struct soft_unit *where = NULL;
    if (!is_offered(symbol)) return true;
    /* A shared array without a size is the launch's dynamic memory, in every unit. */
    if (symbol->kind == PTX_VARIABLE && symbol->is.variable->is_unsized) return true;
    const struct ptx_symbol *definition = find_definition(units, count, symbol, &clash, &where);
    if (clash != NULL) {
        return unite_fail(diagnostic, where, clash, "defined in more than one linked input");
    }
    if (definition == NULL) {
        if (symbol->kind == PTX_VARIABLE) symbol->is.variable->elsewhere = true;
        return true;
    }
    if (unite_redirect(symbol, definition)) return true;
    return unite_fail(diagnostic, unit, symbol, "declared differently in another linked input");
}

bool soft_unite(struct soft_diagnostic *diagnostic, const struct soft_unit *units, unsigned count) {
    for (unsigned u = 0; u < count; u++) {
        const struct soft_unit *unit = &units[u];
        if (!unit->linked) continue;
        for (unsigned b = 0; b < PTX_BUCKETS; b++) {
            for (struct ptx_symbol *s = unit->ptx.scope->buckets[b]; s != NULL; s = s->next) {
                if (!unite_symbol(diagnostic, units, count, unit, s)) return false;
            }
        }
    }
    return true;
}
