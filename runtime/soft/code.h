/*
 * Code: a function ready to run, as the lowering makes it and the machine executes it.
 *
 * A register is a slot: 32 lanes side by side, 128 bytes for up to 32 bits a lane and 256 for 64.
 * Constants, parameters and special registers are slots as well, filled before a warp begins, so
 * every operand of every instruction is an offset into the warp's frame. A predicate is one word,
 * a bit a lane.
 */
#ifndef SOFT_CODE_H
#define SOFT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SOFT_LANES = 32, SOFT_SLOT_BYTES = 128, SOFT_WIDE_SLOT_BYTES = 256 };

enum soft_op {
#define SOFT_OP(name) SOFT_OP_##name,
#include "ops.def"
    SOFT_OPS
};

struct soft_warp;
struct soft_instruction;

/* Runs one instruction and returns the next; NULL when the warp must stop, and
 * its state says why. */
typedef const struct soft_instruction *soft_handler(struct soft_warp *warp,
                                                    const struct soft_instruction *instruction);

struct soft_instruction {
    soft_handler *run[2]; /* [0] for a full warp, [1] for some lanes */
    uint32_t d, a, b, c;  /* offsets in the frame */
    union {
        int64_t immediate;
        const struct soft_instruction *join; /* of a branch: where lanes that part meet again */
        const struct soft_code *callee;      /* of a call */
    } u;
    const struct soft_instruction *target; /* of a branch */
    uint32_t mode;                         /* SOFT_MODE_ bits, or what the operation says */
    uint32_t more;                         /* where its further operands begin in code->operands */
    uint32_t site;   /* which memory access of the function this is: the index of its view */
    uint16_t op;     /* enum soft_op: for reports */
    uint16_t length; /* instructions since the last count: what a branch adds to the budget */
};

/* How a floating point operation rounds, and what it does besides. */
enum {
    SOFT_MODE_RN = 0,
    SOFT_MODE_RZ = 1,
    SOFT_MODE_RM = 2,
    SOFT_MODE_RP = 3,
    SOFT_MODE_RNA = 4,
    SOFT_MODE_ROUND = 7,
    SOFT_MODE_FTZ = 8,
    SOFT_MODE_SAT = 16,
    SOFT_MODE_INTEGER = 32, /* round to an integer, in the format */
    SOFT_MODE_RELU = 64,
    SOFT_MODE_SATFINITE = 128,
    SOFT_MODE_NAN = 256,     /* min, max: a NaN in gives a NaN out */
    SOFT_MODE_XORSIGN = 512, /* min, max: the result takes the product's sign */
    SOFT_MODE_ABS = 1024,    /* min, max: of the magnitudes */
    SOFT_MODE_APPROX = 2048,
};

/* The mode of a branch, an exit or a trap, and of a barrier. */
enum {
    SOFT_BRANCH_BACKWARD = 1,
    SOFT_BRANCH_NEGATED = 2,
    SOFT_BRANCH_GUARDED = 4, /* an exit or a trap of the lanes whose predicate holds */
    SOFT_BARRIER_COUNTED = 1
};

/* Where an instruction came from, for reports. */
struct soft_origin {
    uint32_t offset;     /* in the PTX text */
    uint32_t file, line; /* in the source; 0 where the PTX does not say */
};

/* What a slot holds before a warp begins. */
enum soft_fill_kind {
    SOFT_FILL_CONSTANT,  /* value, in every lane */
    SOFT_FILL_PARAMETER, /* value is the offset in the parameter buffer */
    SOFT_FILL_SPECIAL,   /* value is an enum ptx_special that is the same in all CTAs of a launch */
    SOFT_FILL_CTA        /* value is the component of %ctaid, 0 to 2 */
};

struct soft_fill {
    enum soft_fill_kind kind;
    uint32_t slot;  /* offset in the frame */
    uint32_t bytes; /* of a parameter: 1, 2, 4, 8 */
    bool wide;      /* a 64-bit slot */
    bool predicate; /* one word, a bit a lane */
    bool is_signed; /* a parameter to be sign-extended */
    uint64_t value;
};

struct soft_code {
    const char *name;
    struct soft_instruction *instructions;
    struct soft_origin *origins; /* one an instruction */
    uint32_t instruction_count;
    uint32_t *operands; /* the further operands of instructions */
    uint32_t frame_bytes;
    struct soft_fill *fills;
    uint32_t fill_count;
    uint32_t sites;        /* memory accesses */
    uint32_t local_bytes;  /* per thread, of this function alone */
    uint32_t shared_bytes; /* static, of the module's variables it can reach */
    uint32_t parameter_bytes;
    uint32_t parameter_count;
    const uint32_t *parameter_offsets, *parameter_sizes;
    uint32_t registers; /* what would be reported as registers a thread */
    uint32_t block_threads_max;
    uint32_t block_required[3]; /* .reqntid; 0 for none */
    bool calls;                 /* it calls functions, so it needs a stack */
};

#endif
