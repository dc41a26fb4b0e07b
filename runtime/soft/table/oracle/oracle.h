/*
 * Oracle: computes the results of the table's instructions a second time.
 *
 * It shares nothing with the machine that it judges: integers have 128 bits and never wrap, bits
 * are counted one by one, and floating point uses integers, so that it depends on no processor's
 * rounding. Only the approximate functions use libm, in double precision.
 */
#ifndef SOFT_ORACLE_H
#define SOFT_ORACLE_H

#include "table/table.h"

__extension__ typedef __int128 oracle_wide;
__extension__ typedef unsigned __int128 oracle_uwide;

struct oracle_answer {
    enum {
        ORACLE_BITS, /* exactly these */
        ORACLE_ANY,  /* the manual leaves it open */
        ORACLE_NAN,  /* a NaN, any */
        ORACLE_NEAR  /* value[element], within the row's bound */
    } kind;
    uint64_t bits;
    double value[2];
    double size[2]; /* of the summands, for a bound on sums */
};

/* One instruction for one lane. */
struct oracle_call {
    const struct table_row *row;
    const struct table_instruction *instruction;
    const struct table_type *type[4]; /* of the spelling */
    const uint64_t *source;           /* in the order of the row */
    struct oracle_answer *answer;     /* in the order of the row */
};

/* Computes the answers for the lanes of a warp, or of a warpgroup: sources[lane][source],
 * answers[lane][result]. false: the instruction is unknown. */
bool oracle_warp(const struct table_row *row, const uint64_t *sources, unsigned lanes,
                 struct oracle_answer *answers);

/* Whether a result agrees with the answer. */
bool oracle_agrees(const struct table_row *row, unsigned result, const struct oracle_answer *answer,
                   uint64_t bits);

/* The families; each returns whether it has the instruction. */
bool oracle_integer(const struct oracle_call *call);
bool oracle_carry(const struct oracle_call *call);
bool oracle_bits(const struct oracle_call *call);
bool oracle_video(const struct oracle_call *call);
bool oracle_float(const struct oracle_call *call);
bool oracle_approximate(const struct oracle_call *call);
bool oracle_compare(const struct oracle_call *call);
bool oracle_convert(const struct oracle_call *call);
bool oracle_atomic(const struct oracle_call *call);
bool oracle_cluster(const struct oracle_call *call);
/* Products of matrices, and matrices in memory. */
bool oracle_tensor(const struct table_row *row, const uint64_t *sources,
                   struct oracle_answer *answers);
bool oracle_group(const struct table_row *row, const uint64_t *sources,
                  struct oracle_answer *answers);
bool oracle_lanes(const struct table_row *row, const uint64_t *sources, unsigned lanes,
                  struct oracle_answer *answers);

/* A result's bits, cut to its place. */
void oracle_give(const struct oracle_call *call, unsigned result, uint64_t bits);

/* The value of an integer of a type. */
oracle_wide oracle_value(const struct table_type *type, uint64_t bits);

/* Whether the instruction has this name and this word. */
bool oracle_is(const struct oracle_call *call, const char *name);
bool oracle_has(const struct oracle_call *call, const char *word);

#endif
