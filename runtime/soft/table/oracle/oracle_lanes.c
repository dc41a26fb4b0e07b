/*
 * Operations between the lanes of a warp. Source: PTX ISA 9.0, sections 9.7.9.6, 9.7.13.9 and on.
 */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

struct warp {
    const struct table_row *row;
    const struct table_instruction *instruction;
    const uint64_t *sources;
    uint32_t there; /* the lanes that execute it */
    struct oracle_answer *answers;
};

static bool is_there(const struct warp *warp, unsigned lane) {
    return lane < 32 && (warp->there >> lane & 1) != 0;
}

/* The value of an operand of the row for a lane: a number, or a source. */
static uint64_t lanes_operand(const struct warp *warp, unsigned lane, unsigned place) {
    const struct table_operand *at = &warp->row->operands[place];
    if (at->kind == TABLE_NUMBER) return strtoull(at->text, NULL, 0);
    uint64_t bits = warp->sources[lane * warp->row->source_count + at->source];
    return at->type->kind == 'P' ? (bits & 1) ^ at->negated : bits;
}

static void lanes_give(const struct warp *warp, unsigned lane, unsigned result, uint64_t bits) {
    warp->answers[lane * warp->row->result_count + result] =
        (struct oracle_answer){.kind = ORACLE_BITS, .bits = bits};
}

/* Segments are what c's upper bits keep of the lane's number; c's lower bits end the walk. */
static void lanes_shuffle(const struct warp *warp, unsigned lane) {
    unsigned place = warp->row->result_count;
    int by = (int)(lanes_operand(warp, lane, place + 1) & 31);
    int c = (int)lanes_operand(warp, lane, place + 2), clamp = c & 31, segment = c >> 8 & 31;
    int me = (int)lane, bound = (me & segment) | (clamp & ~segment), from = 0;
    bool inside = false;
    if (table_has(warp->instruction, "up")) {
        from = me - by;
        inside = from >= bound;
    } else if (table_has(warp->instruction, "down")) {
        from = me + by;
        inside = from <= bound;
    } else if (table_has(warp->instruction, "bfly")) {
        from = me ^ by;
        inside = from <= bound;
    } else {
        from = (me & segment) | (by & ~segment);
        inside = from <= bound;
    }
    if (!inside) from = me;
    lanes_give(warp, lane, 0, lanes_operand(warp, (unsigned)from, place));
    if (warp->row->result_count > 1) lanes_give(warp, lane, 1, inside);
}

static void lanes_vote(const struct warp *warp, unsigned lane) {
    uint32_t votes = 0;
    for (unsigned i = 0; i < 32; i++) {
        if (is_there(warp, i)) votes |= (uint32_t)lanes_operand(warp, i, 1) << i;
    }
    bool all = votes == warp->there, none = votes == 0;
    lanes_give(warp, lane, 0,
               table_has(warp->instruction, "ballot") ? votes
               : table_has(warp->instruction, "all")  ? all
               : table_has(warp->instruction, "any")  ? !none
                                                      : all || none);
}

static void lanes_match(const struct warp *warp, unsigned lane) {
    unsigned place = warp->row->result_count;
    uint32_t same = 0;
    for (unsigned i = 0; i < 32; i++) {
        if (!is_there(warp, i)) continue;
        same |= (uint32_t)(lanes_operand(warp, i, place) == lanes_operand(warp, lane, place)) << i;
    }
    bool all = same == warp->there;
    if (table_has(warp->instruction, "any")) {
        lanes_give(warp, lane, 0, same);
        return;
    }
    lanes_give(warp, lane, 0, all ? warp->there : 0);
    lanes_give(warp, lane, 1, all);
}

static void lanes_reduce(const struct warp *warp, unsigned lane) {
    const struct table_type *type = warp->instruction->types[0];
    bool first = true;
    uint64_t sum = 0;
    for (unsigned i = 0; i < 32; i++) {
        if (!is_there(warp, i)) continue;
        uint64_t x = lanes_operand(warp, i, 1);
        bool less = oracle_value(type, x) < oracle_value(type, sum);
        sum = first                                 ? x
              : table_has(warp->instruction, "add") ? (sum + x) & 0xffffffff
              : table_has(warp->instruction, "min") ? (less ? x : sum)
              : table_has(warp->instruction, "max") ? (less ? sum : x)
              : table_has(warp->instruction, "and") ? (sum & x)
              : table_has(warp->instruction, "or")  ? (sum | x)
                                                    : (sum ^ x);
        first = false;
    }
    lanes_give(warp, lane, 0, sum);
}

static void lanes_elect(const struct warp *warp, unsigned lane) {
    unsigned lowest = 0;
    while (!is_there(warp, lowest)) lowest++;
    lanes_give(warp, lane, 0, lowest);
    lanes_give(warp, lane, 1, lane == lowest);
}

static void lanes_active(const struct warp *warp, unsigned lane) {
    lanes_give(warp, lane, 0, warp->there);
}

bool oracle_lanes(const struct table_row *row, const uint64_t *sources, unsigned lanes,
                  struct oracle_answer *answers) {
    static const struct {
        const char *name;
        void (*answer)(const struct warp *warp, unsigned lane);
    } families[] = {{"shfl", lanes_shuffle}, {"vote", lanes_vote},   {"match", lanes_match},
                    {"redux", lanes_reduce}, {"elect", lanes_elect}, {"activemask", lanes_active}};
    struct warp warp = {row, &row->instructions[0], sources, row->lanes, answers};
    if (lanes != 32) return false;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (strcmp(families[i].name, warp.instruction->words[0]) != 0) continue;
        for (unsigned lane = 0; lane < 32; lane++) {
            if (is_there(&warp, lane)) {
                families[i].answer(&warp, lane);
                continue;
            }
            for (unsigned r = 0; r < row->result_count; r++) lanes_give(&warp, lane, r, 0);
        }
        return true;
    }
    return false;
}
