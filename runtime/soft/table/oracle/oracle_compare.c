/*
 * Comparisons, selections, moves. Source: PTX ISA 9.0, sections 9.3.1, 9.7.6, 9.7.9.3.
 */
#include "oracle_number.h"

#include <string.h>

static const char *const comparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",
                                          "lo",  "ls",  "hi",  "hs",  "equ", "neu",
                                          "ltu", "leu", "gtu", "geu", "num", "nan"};

/* -1, 0, 1, or 2 if one is NaN. */
static int compare_order(const struct table_type *type, uint64_t a, uint64_t b, bool ftz) {
    if (type->kind != 'F') {
        oracle_wide x = oracle_value(type, a), y = oracle_value(type, b);
        return x < y ? -1 : x > y;
    }
    struct oracle_format format = oracle_format_of(type);
    struct oracle_number x[2] = {oracle_decode(format, a), oracle_decode(format, b)};
    for (int i = 0; i < 2; i++) {
        if (x[i].kind == ORACLE_NOT_A_NUMBER) return 2;
        bool tiny = x[i].kind == ORACLE_FINITE && x[i].significand >> format.fraction_bits == 0;
        if (ftz && tiny) x[i].kind = ORACLE_ZERO;
    }
    return oracle_order(x[0], x[1]);
}

static bool compare_holds(const struct oracle_call *call, const struct table_type *type, uint64_t a,
                          uint64_t b) {
    int is = compare_order(type, a, b, oracle_has(call, "ftz"));
    const char *word = "";
    for (size_t i = 0; i < sizeof comparisons / sizeof comparisons[0]; i++) {
        if (oracle_has(call, comparisons[i])) word = comparisons[i];
    }
    if (strcmp(word, "num") == 0) return is != 2;
    if (strcmp(word, "nan") == 0) return is == 2;
    bool unordered = word[2] == 'u' && word[3] == '\0';
    if (is == 2) return unordered;
    if (strncmp(word, "eq", 2) == 0) return is == 0;
    if (strncmp(word, "ne", 2) == 0) return is != 0;
    if (strncmp(word, "lt", 2) == 0 || strcmp(word, "lo") == 0) return is < 0;
    if (strncmp(word, "le", 2) == 0 || strcmp(word, "ls") == 0) return is <= 0;
    if (strncmp(word, "gt", 2) == 0 || strcmp(word, "hi") == 0) return is > 0;
    return is >= 0;
}

static bool compare_combined(const struct oracle_call *call, bool result, bool with) {
    if (oracle_has(call, "and")) return result && with;
    if (oracle_has(call, "or")) return result || with;
    return oracle_has(call, "xor") ? result != with : result;
}

static bool compare_third(const struct oracle_call *call) {
    const struct table_row *row = call->row;
    if (row->source_count < 3) return false;
    return (call->source[2] & 1) != row->operands[row->sources[2]].negated;
}

static bool compare_set(const struct oracle_call *call) {
    const struct table_type *to = call->type[0], *type = call->type[1];
    unsigned width = type->bits / type->elements;
    uint64_t mask = width == 64 ? UINT64_MAX : (1ull << width) - 1, all = 0;
    for (unsigned e = 0; e < type->elements; e++) {
        struct table_type one = *type;
        one.bits = (uint8_t)width;
        bool result = compare_holds(call, &one, call->source[0] >> (e * width) & mask,
                                    call->source[1] >> (e * width) & mask);
        result = compare_combined(call, result, compare_third(call));
        unsigned to_width = to->bits / to->elements;
        uint64_t yes = to_width == 64 ? UINT64_MAX : (1ull << to_width) - 1;
        if (to->elements == 1 && type->elements == 2) yes = mask; /* a mask for each half */
        if (to->kind == 'F') {
            struct oracle_number number = oracle_from_integer(1);
            yes = oracle_encode(oracle_format_of(to), number, ORACLE_NEAREST);
        }
        if (result) all |= yes << (e * width) % 64;
    }
    oracle_give(call, 0, all);
    return true;
}

static bool compare_setp(const struct oracle_call *call) {
    const struct table_type *type = call->type[0];
    unsigned width = type->bits / type->elements;
    uint64_t mask = width == 64 ? UINT64_MAX : (1ull << width) - 1;
    struct table_type one = *type;
    one.bits = (uint8_t)width;
    if (type->elements == 2) { /* a predicate for each half */
        for (unsigned e = 0; e < 2; e++) {
            bool result = compare_holds(call, &one, call->source[0] >> (e * width) & mask,
                                        call->source[1] >> (e * width) & mask);
            oracle_give(call, e, compare_combined(call, result, compare_third(call)));
        }
        return true;
    }
    bool result = compare_holds(call, type, call->source[0], call->source[1]);
    oracle_give(call, 0, compare_combined(call, result, compare_third(call)));
    if (call->row->result_count > 1)
        oracle_give(call, 1, compare_combined(call, !result, compare_third(call)));
    return true;
}

static bool compare_testp(const struct oracle_call *call) {
    struct oracle_format format = oracle_format_of(call->type[0]);
    struct oracle_number x = oracle_decode(format, call->source[0]);
    /* Zero counts as normal. */
    bool is_zero = x.kind == ORACLE_ZERO, finite = x.kind == ORACLE_FINITE;
    bool is_normal = is_zero || (finite && x.significand >> format.fraction_bits != 0);
    bool is_nan = x.kind == ORACLE_NOT_A_NUMBER, is_infinite = x.kind == ORACLE_INFINITE;
    oracle_give(call, 0,
                oracle_has(call, "finite")       ? !is_nan && !is_infinite
                : oracle_has(call, "infinite")   ? is_infinite
                : oracle_has(call, "number")     ? !is_nan
                : oracle_has(call, "notanumber") ? is_nan
                : oracle_has(call, "normal")     ? is_normal
                                                 : x.kind == ORACLE_FINITE && !is_normal);
    return true;
}

/* mov between one register and several: the first is the low part. */
static bool compare_move(const struct oracle_call *call) {
    const struct table_row *row = call->row;
    uint64_t all = 0;
    unsigned at = 0;
    for (unsigned s = 0; s < row->source_count; s++) {
        unsigned bits = row->operands[row->sources[s]].type->store_bits;
        all |= call->source[s] << at;
        at += bits;
    }
    if (call->type[0]->kind == 'P') all &= 1;
    at = 0;
    for (unsigned r = 0; r < row->result_count; r++) {
        oracle_give(call, r, all >> at);
        at += row->operands[row->results[r]].type->store_bits;
    }
    return true;
}

bool oracle_compare(const struct oracle_call *call) {
    if (oracle_is(call, "setp")) return compare_setp(call);
    if (oracle_is(call, "set")) return compare_set(call);
    if (oracle_is(call, "testp")) return compare_testp(call);
    if (oracle_is(call, "mov")) return compare_move(call);
    if (oracle_is(call, "selp")) {
        oracle_give(call, 0, call->source[compare_third(call) ? 0 : 1]);
        return true;
    }
    if (oracle_is(call, "slct")) {
        /* -0 counts as zero, a NaN as negative. */
        uint64_t c = call->source[2];
        int is = compare_order(call->type[1], c, 0, oracle_has(call, "ftz"));
        oracle_give(call, 0, call->source[is == 0 || is == 1 ? 0 : 1]);
        return true;
    }
    return false;
}
