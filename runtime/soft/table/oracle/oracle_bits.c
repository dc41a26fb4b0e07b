/*
 * Bits, one at a time. Source: PTX ISA 9.0, sections 9.7.1.13 to 9.7.1.22, 9.7.8, 9.7.9.7.
 */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

static unsigned bits_bit(uint64_t word, unsigned at) {
    return at < 64 ? (unsigned)(word >> at & 1) : 0;
}

static uint64_t bits_logic(const struct oracle_call *call, uint64_t a, uint64_t b) {
    return oracle_is(call, "and") ? (a & b) : oracle_is(call, "or") ? (a | b) : (a ^ b);
}

/* Sources of a predicate row may be written with a '!'. */
static uint64_t bits_predicate(const struct oracle_call *call, unsigned source) {
    const struct table_row *row = call->row;
    return (call->source[source] & 1) ^ row->operands[row->sources[source]].negated;
}

/* The number that is this operand in the row; otherwise a source. */
static uint64_t bits_number(const struct oracle_call *call, unsigned operand) {
    const struct table_operand *at = &call->row->operands[operand];
    if (at->kind == TABLE_NUMBER) return strtoull(at->text, NULL, 0);
    return call->source[at->source];
}

static bool bits_shift(const struct oracle_call *call) {
    const struct table_type *type = call->type[0];
    uint64_t by = bits_number(call, 2), result = 0;
    bool left = oracle_is(call, "shl");
    for (uint64_t i = 0; i < type->bits; i++) {
        uint64_t from = left ? i - by : i + by;
        bool inside = left ? by <= i : from < type->bits;
        unsigned fill = type->kind == 'S' ? bits_bit(call->source[0], type->bits - 1u) : 0;
        result |= (uint64_t)(inside ? bits_bit(call->source[0], (unsigned)from) : fill) << i;
    }
    oracle_give(call, 0, result);
    return true;
}

static bool bits_funnel(const struct oracle_call *call) {
    uint64_t both = call->source[1] << 32 | call->source[0], by = call->source[2];
    if (oracle_has(call, "wrap")) by %= 32;
    if (by > 32) by = 32;
    oracle_give(call, 0, oracle_has(call, "l") ? both << by >> 32 : both >> by);
    if (by == 32 && oracle_has(call, "l")) oracle_give(call, 0, call->source[0]);
    return true;
}

static bool bits_find(const struct oracle_call *call) {
    const struct table_type *type = call->type[0];
    unsigned sign = type->kind == 'S' ? bits_bit(call->source[0], type->bits - 1u) : 0;
    for (unsigned at = type->bits; at-- > 0;) {
        if (bits_bit(call->source[0], at) == sign) continue;
        oracle_give(call, 0, oracle_has(call, "shiftamt") ? type->bits - 1u - at : at);
        return true;
    }
    oracle_give(call, 0, 0xffffffff);
    return true;
}

/* The manual takes positions and lengths modulo 256; of 64 bits an H200 does not. */
static bool bits_is_open(const struct oracle_call *call, unsigned first) {
    if (call->type[0]->bits == 32) return false;
    return call->source[first] > 255 || call->source[first + 1] > 255;
}

static bool bits_extract(const struct oracle_call *call) {
    const struct table_type *type = call->type[0];
    unsigned position = (unsigned)call->source[1] & 255, length = (unsigned)call->source[2] & 255;
    unsigned top = type->bits - 1u, last = position + length - 1;
    unsigned sign = 0;
    if (type->kind == 'S' && length > 0) sign = bits_bit(call->source[0], last < top ? last : top);
    uint64_t result = 0;
    for (unsigned i = 0; i < type->bits; i++) {
        bool inside = i < length && position + i <= top;
        result |= (uint64_t)(inside ? bits_bit(call->source[0], position + i) : sign) << i;
    }
    oracle_give(call, 0, result);
    if (bits_is_open(call, 1)) call->answer[0].kind = ORACLE_ANY;
    return true;
}

static bool bits_insert(const struct oracle_call *call) {
    unsigned position = (unsigned)call->source[2] & 255, length = (unsigned)call->source[3] & 255;
    uint64_t result = 0;
    for (unsigned i = 0; i < call->type[0]->bits; i++) {
        bool inside = i >= position && i - position < length;
        uint64_t one =
            inside ? bits_bit(call->source[0], i - position) : bits_bit(call->source[1], i);
        result |= one << i;
    }
    oracle_give(call, 0, result);
    if (bits_is_open(call, 2)) call->answer[0].kind = ORACLE_ANY;
    return true;
}

static bool bits_mask(const struct oracle_call *call) {
    uint64_t position = call->source[0], length = call->source[1], result = 0;
    if (oracle_has(call, "wrap")) position %= 32, length %= 32;
    for (uint64_t i = 0; i < 32; i++) {
        result |= (uint64_t)(i >= position && i - position < length) << i;
    }
    oracle_give(call, 0, result);
    return true;
}

static bool bits_extend(const struct oracle_call *call) {
    uint64_t length = call->source[1], result = 0;
    if (oracle_has(call, "wrap")) length %= 32;
    if (length > 32) length = 32;
    unsigned sign = call->type[0]->kind == 'S' && length > 0
                        ? bits_bit(call->source[0], (unsigned)length - 1)
                        : 0;
    for (unsigned i = 0; i < 32; i++) {
        result |= (uint64_t)(i < length ? bits_bit(call->source[0], i) : sign) << i;
    }
    oracle_give(call, 0, result);
    return true;
}

static bool bits_find_nth(const struct oracle_call *call) {
    int32_t offset = (int32_t)(uint32_t)call->source[2], bits_count = 0;
    uint32_t base = (uint32_t)call->source[1];
    if (base > 31 || offset == INT32_MIN) {
        call->answer[0].kind = ORACLE_ANY; /* the manual wants 0 to 31, and a magnitude */
        return true;
    }
    int64_t wanted = offset < 0 ? -(int64_t)offset : offset;
    if (offset == 0) {
        oracle_give(call, 0, bits_bit(call->source[0], base) ? base : 0xffffffff);
        return true;
    }
    for (int at = (int)base; at >= 0 && at<32; at += offset> 0 ? 1 : -1) {
        bits_count += (int32_t)bits_bit(call->source[0], (unsigned)at);
        if (bits_count == wanted) return oracle_give(call, 0, (uint64_t)at), true;
    }
    oracle_give(call, 0, 0xffffffff);
    return true;
}

static bool bits_logic3(const struct oracle_call *call) {
    uint64_t table = bits_number(call, call->row->result_count + 3u), result = 0;
    for (unsigned i = 0; i < 32; i++) {
        unsigned row = 4 * bits_bit(call->source[0], i) + 2 * bits_bit(call->source[1], i) +
                       bits_bit(call->source[2], i);
        result |= (table >> row & 1) << i;
    }
    oracle_give(call, 0, result);
    if (call->row->result_count > 1) {
        uint64_t with = bits_predicate(call, 3);
        oracle_give(call, 1, oracle_has(call, "and") ? (result != 0) & with : (result != 0) | with);
    }
    return true;
}

/* Which byte each place takes, by the form and the selector's two low bits. */
static unsigned bits_permuted(const char *form, unsigned place, unsigned low) {
    if (strcmp(form, "f4e") == 0) return place + low;
    if (strcmp(form, "b4e") == 0) return (low + 8 - place) % 8;
    if (strcmp(form, "rc8") == 0) return low;
    if (strcmp(form, "ecl") == 0) return place > low ? place : low;
    if (strcmp(form, "ecr") == 0) return place < low ? place : low;
    return (low & 1) * 2 + (place & 1); /* rc16 */
}

static bool bits_permute(const struct oracle_call *call) {
    uint64_t both = call->source[1] << 32 | call->source[0], selector = bits_number(call, 3);
    uint64_t result = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned pick = (unsigned)(selector >> (4 * i)) & 15;
        if (call->instruction->word_count > 2) {
            pick = bits_permuted(call->instruction->words[2], i, (unsigned)selector & 3);
        }
        uint64_t byte = both >> (8 * (pick & 7)) & 255;
        if (pick & 8) byte = byte >= 128 ? 255 : 0;
        result |= byte << (8 * i);
    }
    oracle_give(call, 0, result);
    return true;
}

static bool bits_count(const struct oracle_call *call, bool leading) {
    unsigned result = 0;
    for (unsigned at = call->type[0]->bits; at-- > 0;) {
        if (leading && bits_bit(call->source[0], at)) break;
        result += leading || bits_bit(call->source[0], at);
    }
    oracle_give(call, 0, result);
    return true;
}

static bool bits_reverse(const struct oracle_call *call) {
    uint64_t result = 0;
    for (unsigned i = 0; i < call->type[0]->bits; i++) {
        result |= (uint64_t)bits_bit(call->source[0], call->type[0]->bits - 1u - i) << i;
    }
    oracle_give(call, 0, result);
    return true;
}

bool oracle_bits(const struct oracle_call *call) {
    static const struct {
        const char *name;
        bool (*answer)(const struct oracle_call *call);
    } families[] = {
        {"shl", bits_shift},   {"shr", bits_shift},    {"shf", bits_funnel},
        {"bfind", bits_find},  {"bfe", bits_extract},  {"bfi", bits_insert},
        {"bmsk", bits_mask},   {"szext", bits_extend}, {"fns", bits_find_nth},
        {"lop3", bits_logic3}, {"prmt", bits_permute}, {"brev", bits_reverse},
    };
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (oracle_is(call, families[i].name)) return families[i].answer(call);
    }
    const struct table_type *type = call->type[0];
    if (type == NULL) return false;
    bool pred = type->kind == 'P';
    uint64_t mask_of_type = type->bits == 64 ? UINT64_MAX : (1ull << type->bits) - 1;
    if (oracle_is(call, "popc")) return bits_count(call, false);
    if (oracle_is(call, "clz")) return bits_count(call, true);
    if (oracle_is(call, "and") || oracle_is(call, "or") || oracle_is(call, "xor")) {
        bool same = call->row->source_count == 1;
        uint64_t a = pred ? bits_predicate(call, 0) : call->source[0];
        uint64_t b = same ? a : pred ? bits_predicate(call, 1) : call->source[1];
        oracle_give(call, 0, bits_logic(call, a, b));
        return true;
    }
    if (oracle_is(call, "not")) {
        oracle_give(call, 0, ~call->source[0] & mask_of_type);
        return true;
    }
    if (oracle_is(call, "cnot")) {
        oracle_give(call, 0, (call->source[0] & mask_of_type) == 0);
        return true;
    }
    return false;
}
