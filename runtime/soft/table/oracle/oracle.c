/*
 * The oracle's interface: selects the family of an instruction, and defines agreement.
 */
#include "oracle.h"

#include "oracle_number.h"

#include <math.h>
#include <string.h>

bool oracle_is(const struct oracle_call *call, const char *name) {
    const char *word = call->instruction->words[0];
    /* Called dozens of times per value. */
    return word[0] == name[0] && strcmp(word, name) == 0;
}

bool oracle_has(const struct oracle_call *call, const char *word) {
    return table_has(call->instruction, word);
}

oracle_wide oracle_value(const struct table_type *type, uint64_t bits) {
    oracle_wide value = 0, weight = 1;
    for (int i = 0; i < type->bits; i++, weight *= 2) {
        bool top = i == type->bits - 1 && type->kind == 'S';
        if (bits >> i & 1) value += top ? -weight : weight;
    }
    return value;
}

void oracle_give(const struct oracle_call *call, unsigned result, uint64_t bits) {
    const struct table_row *row = call->row;
    unsigned store = row->operands[row->results[result]].type->store_bits;
    if (store < 64) bits &= (1ull << store) - 1;
    call->answer[result] = (struct oracle_answer){.kind = ORACLE_BITS, .bits = bits};
}

typedef bool family(const struct oracle_call *call);
static family *const families[] = {
    oracle_carry, oracle_integer,     oracle_bits,    oracle_video,  oracle_compare,
    oracle_float, oracle_approximate, oracle_convert, oracle_atomic, oracle_cluster};

/* Whether an instruction of the row has only numbers as operands, or none. */
static bool is_bare(const struct table_row *row, unsigned number) {
    const struct table_instruction *in = &row->instructions[number];
    for (unsigned i = 0; i < in->operand_count; i++) {
        if (row->operands[in->first_operand + i].kind != TABLE_NUMBER) return false;
    }
    return true;
}

bool oracle_warp(const struct table_row *row, const uint64_t *sources, unsigned lanes,
                 struct oracle_answer *answers) {
    enum { FAMILIES = sizeof families / sizeof families[0] };
    if (row->group && lanes == TABLE_GROUP && oracle_group(row, sources, answers)) return true;
    if (row->warp && lanes == 32 && oracle_tensor(row, sources, answers)) return true;
    if (row->warp && !row->group) return oracle_lanes(row, sources, lanes, answers);
    unsigned first = 0; /* fences and the like precede it, without effect */
    while (first + 1 < row->instruction_count && is_bare(row, first)) first++;
    size_t own = 0; /* the family that answered for the lane before: that of the instruction */
    for (unsigned lane = 0; lane < lanes; lane++) {
        struct oracle_call call = {.row = row,
                                   .instruction = &row->instructions[first],
                                   .source = sources + (size_t)lane * row->source_count,
                                   .answer = answers + (size_t)lane * row->result_count};
        memcpy(call.type, call.instruction->types, sizeof call.type);
        while (own < FAMILIES && !families[own](&call)) own++;
        if (own == FAMILIES) return false;
    }
    return true;
}

/* Whether an element is within the row's bound of a value, with the format's overflow and
 * underflow. */
static bool oracle_is_near(const struct table_row *row, const struct table_type *type,
                           uint64_t bits, double value, double sum_size) {
    struct oracle_format format = oracle_format_of(type);
    double got = oracle_number_to_double(oracle_decode(format, bits));
    if (isnan(value)) return isnan(got);
    double largest = oracle_number_to_double(oracle_decode(format, oracle_largest(format)));
    if (isinf(value)) return got == value;
    double error = fabs(got - value), size = fabs(value);
    /* Sums that come near the largest number may overflow on the way. */
    if (row->bound == TABLE_SUM && sum_size > largest / 4) return true;
    /* A result beyond the largest number may be it or infinity. */
    if (isinf(got)) return size > largest * (1 - 0x1p-20) && signbit(got) == signbit(value);
    int exponent = size > 0 ? ilogb(size) : -2000;
    int least = 2 - (1 << (format.exponent_bits - 1));
    double ulp = ldexp(1, (exponent < least ? least : exponent) - (int)format.fraction_bits);
    switch (row->bound) {
    case TABLE_ULP:
        return error <= row->bound_size * ulp;
    case TABLE_SUM:
        return error <= sum_size * exp2(-row->bound_size) + ulp;
    case TABLE_ABSOLUTE:
        return error <= exp2(-row->bound_size) + ulp / 2;
    default:
        /* Half a step of the format for the rounding of subnormal results. */
        return error <= size * exp2(-row->bound_size) || (exponent < least && error <= ulp / 2);
    }
}

bool oracle_agrees(const struct table_row *row, unsigned result, const struct oracle_answer *answer,
                   uint64_t bits) {
    const struct table_type *type = row->operands[row->results[result]].type;
    struct oracle_format format;
    switch (answer->kind) {
    case ORACLE_ANY:
        return true;
    case ORACLE_BITS:
        return answer->bits == bits;
    case ORACLE_NAN:
        format = oracle_format_of(type);
        if (strcmp(type->name, "tf32") == 0) bits >>= 13;
        return oracle_decode(format, bits).kind == ORACLE_NOT_A_NUMBER;
    default:
        for (unsigned i = 0; i < type->elements; i++) {
            unsigned width = type->bits / type->elements;
            uint64_t part = width == 64 ? bits : bits >> (i * width) & ((1ull << width) - 1);
            if (!oracle_is_near(row, type, part, answer->value[i], answer->size[i])) return false;
        }
        return true;
    }
}
