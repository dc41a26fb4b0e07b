/*
 * The video instructions, in 128 bits. Source: PTX ISA 9.0, section 9.7.19; where an H200 gives
 * something else (h200.record), its rule.
 */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

static oracle_wide video_power(unsigned bits) {
    return (oracle_wide)1 << bits;
}

static oracle_wide video_clamped(oracle_wide x, unsigned bits, bool is_signed) {
    oracle_wide least = is_signed ? -video_power(bits - 1) : 0;
    oracle_wide most = is_signed ? video_power(bits - 1) - 1 : video_power(bits) - 1;
    return x < least ? least : x > most ? most : x;
}

/* A number of bits of a word from a place on, as a number. */
static oracle_wide video_part(uint64_t word, unsigned at, unsigned bits, bool is_signed) {
    oracle_wide x = (oracle_wide)(word >> at) % video_power(bits);
    return is_signed && x >= video_power(bits - 1) ? x - video_power(bits) : x;
}

static void video_place_of(const struct table_operand *operand, unsigned *at, unsigned *bits) {
    *bits = operand->part[0] == 'b' ? 8 : operand->part[0] == 'h' ? 16 : 32;
    *at = operand->part[0] != '\0' ? *bits * (unsigned)(operand->part[1] - '0') : 0;
}

static oracle_wide video_shifted(const struct oracle_call *call, oracle_wide x, oracle_wide by) {
    by = oracle_has(call, "clamp") ? (by > 32 ? 32 : by) : by % 32;
    oracle_wide factor = video_power((unsigned)by);
    if (strstr(call->instruction->words[0], "shl") != NULL) return x * factor;
    oracle_wide quotient = x / factor;
    return quotient * factor > x ? quotient - 1 : quotient;
}

static oracle_wide video_computed(const struct oracle_call *call, oracle_wide x, oracle_wide y) {
    const char *name = call->instruction->words[0] + 1;
    if (strncmp(name, "add", 3) == 0) return x + y;
    if (strncmp(name, "sub", 3) == 0) return x - y;
    if (strncmp(name, "abs", 3) == 0) return x > y ? x - y : y - x;
    if (strncmp(name, "min", 3) == 0) return x < y ? x : y;
    if (strncmp(name, "max", 3) == 0) return x < y ? y : x;
    if (strncmp(name, "avr", 3) == 0) {
        oracle_wide sum = x + y; /* halves of negative sums go down, of others up */
        return sum < 0 ? -((1 - sum) / 2) : (sum + 1) / 2;
    }
    if (strncmp(name, "set", 3) == 0) {
        return oracle_has(call, "eq")   ? x == y
               : oracle_has(call, "ne") ? x != y
               : oracle_has(call, "lt") ? x < y
               : oracle_has(call, "le") ? x <= y
               : oracle_has(call, "gt") ? x > y
                                        : x >= y;
    }
    return video_shifted(call, x, y);
}

static bool video_begins(const struct oracle_call *call, const char *name) {
    return strncmp(call->instruction->words[0] + 1, name, strlen(name)) == 0;
}

/* The sum has 64 bits when it is scaled. */
static oracle_wide video_multiplied(const struct oracle_call *call, oracle_wide x, oracle_wide y,
                                    bool is_signed) {
    const struct table_operand *operands = call->row->operands;
    bool minus = operands[1].minus != operands[2].minus;
    oracle_wide c = video_part(call->source[2], 0, 32, true);
    oracle_wide sum = (minus ? -x * y : x * y) + (operands[3].minus ? -c : c);
    is_signed = is_signed || minus || operands[3].minus;
    if (oracle_has(call, "po")) sum++;
    unsigned shift = oracle_has(call, "shr7") ? 7 : oracle_has(call, "shr15") ? 15 : 0;
    if (shift != 0 && !is_signed && sum < 0) sum += video_power(64);
    oracle_wide quotient = sum / video_power(shift);
    if (quotient * video_power(shift) > sum) quotient--;
    return oracle_has(call, "sat") ? video_clamped(quotient, 32, is_signed) : quotient;
}

/* A shift is first cut to 34 bits. */
static oracle_wide video_saturated(const struct oracle_call *call, oracle_wide x, unsigned bits,
                                   bool is_signed) {
    if (video_begins(call, "sh")) {
        x = (x % video_power(34) + video_power(34)) % video_power(34);
        return video_clamped(x >= video_power(33) ? x - video_power(34) : x, 32, is_signed);
    }
    if (bits < 32) {
        oracle_wide most = video_power(is_signed ? bits - 1 : bits) - 1;
        return x < 0 || x > most ? most : x;
    }
    bool wraps = !is_signed && !video_begins(call, "min") && !video_begins(call, "max");
    return wraps ? (x < 0 ? 0 : x % video_power(32)) : video_clamped(x, 32, is_signed);
}

/* The result, or c. */
static oracle_wide video_ordered(const struct oracle_call *call, oracle_wide x, bool d_signed,
                                 bool both_signed) {
    bool sum = video_begins(call, "add") || video_begins(call, "sub");
    if (sum) x = video_part((uint64_t)x, 0, 32, d_signed);
    bool c_signed = video_begins(call, "set") ? both_signed : d_signed;
    oracle_wide c = video_part(call->source[2], 0, 32, c_signed);
    bool c_is_less = c < x;
    if (sum && !d_signed && c >= video_power(31) && x >= video_power(31)) c_is_less = true;
    return c_is_less == oracle_has(call, "min") ? c : x;
}

/* The offset of a lane in the two concatenated sources: "b7654" lists them from the highest lane
 * down. */
static unsigned from_of(const struct table_operand *operand, unsigned lane, unsigned lanes,
                        unsigned first) {
    if (operand->part[0] == '\0') return first + lane;
    return (unsigned)(operand->part[lanes - lane] - '0');
}

static bool packed_video(const struct oracle_call *call, unsigned bits, bool d_signed,
                         bool a_signed, bool b_signed) {
    const struct table_operand *operands = call->row->operands;
    uint64_t both = call->source[0] | call->source[1] << 32, all = call->source[2];
    unsigned lanes = 32 / bits;
    oracle_wide sum = (oracle_wide)call->source[2];
    for (unsigned lane = 0; lane < lanes; lane++) {
        unsigned at = lane * bits;
        char digit = (char)('0' + lane);
        if (operands[0].part[0] != '\0' && strchr(operands[0].part, digit) == NULL) continue;
        unsigned a_at = bits * from_of(&operands[1], lane, lanes, 0);
        unsigned b_at = bits * from_of(&operands[2], lane, lanes, lanes);
        oracle_wide x = video_computed(call, video_part(both >> a_at, 0, bits, a_signed),
                                       video_part(both >> b_at, 0, bits, b_signed));
        if (oracle_has(call, "sat")) x = video_clamped(x, bits, d_signed);
        sum += x;
        uint64_t mask = ((1ull << bits) - 1) << at;
        all = (all & ~mask) | ((uint64_t)x << at & mask);
    }
    oracle_give(call, 0, oracle_has(call, "add") ? (uint64_t)sum : all);
    return true;
}

bool oracle_video(const struct oracle_call *call) {
    const char *name = call->instruction->words[0];
    const struct table_row *row = call->row;
    if (name[0] != 'v' || strcmp(name, "vote") == 0) return false;
    bool typed = call->instruction->type_count == 3;
    bool d_signed = typed && call->type[0]->kind == 'S';
    bool a_signed = call->type[typed ? 1 : 0]->kind == 'S';
    bool b_signed = call->type[typed ? 2 : 1]->kind == 'S';
    char last = name[strlen(name) - 1];
    if (last == '2' || last == '4') {
        return packed_video(call, last == '2' ? 16 : 8, d_signed, a_signed, b_signed);
    }
    unsigned at = 0, bits = 0;
    video_place_of(&row->operands[1], &at, &bits);
    bool is_product = strcmp(name, "vmad") == 0; /* of signed numbers, if they are whole words */
    oracle_wide x = video_part(call->source[0], at, bits, a_signed || (is_product && bits == 32));
    video_place_of(&row->operands[2], &at, &bits);
    oracle_wide y = video_part(call->source[1], at, bits, b_signed || (is_product && bits == 32));
    if (is_product) {
        oracle_give(call, 0, (uint64_t)video_multiplied(call, x, y, a_signed || b_signed));
        return true;
    }
    oracle_wide result = video_computed(call, x, y);
    video_place_of(&row->operands[0], &at, &bits);
    if (oracle_has(call, "sat")) result = video_saturated(call, result, bits, d_signed);
    if (bits < 32) { /* the upper half-word takes the result's own upper half */
        uint64_t mask = ((1ull << bits) - 1) << at;
        uint64_t moved = bits == 16 ? (uint64_t)result : (uint64_t)result << at;
        oracle_give(call, 0, (call->source[2] & ~mask) | (moved & mask));
        return true;
    }
    if (oracle_has(call, "add")) result += (oracle_wide)call->source[2];
    if (oracle_has(call, "min") || oracle_has(call, "max")) {
        result = video_ordered(call, result, d_signed, a_signed && b_signed);
    }
    oracle_give(call, 0, (uint64_t)result);
    return true;
}
