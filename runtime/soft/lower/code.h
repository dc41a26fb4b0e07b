/*
 * Code: an executable function; the lowering creates it, and the machine executes it.
 *
 * A register is a slot of 32 adjacent lanes: 128 bytes for lanes of up to 32 bits, and 256 for 64.
 * Constants, parameters and special registers are slots too, filled before a warp starts. So every
 * operand of every instruction is an offset into the warp's frame. A predicate is one word, one bit
 * for each lane.
 */
#ifndef SOFT_CODE_H
#define SOFT_CODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SOFT_LANES = 32, SOFT_SLOT_BYTES = 128, SOFT_WIDE_SLOT_BYTES = 256 };

enum soft_op {
#define SOFT_OP(name) SOFT_OP_##name,
#include "ops.def"
    SOFT_OPS
};

/* Operations that all 32 lanes of a warp execute together: ".sync.aligned", without a mask. */
static inline bool soft_is_whole(enum soft_op op) {
    return op >= SOFT_OP_mma_float && op <= SOFT_OP_wgmma_wait;
}

struct soft_warp;
struct soft_instruction;

/* Runs one instruction and returns the next; NULL when the warp must stop, and
 * its state says why. */
typedef const struct soft_instruction *soft_handler(struct soft_warp *warp,
                                                    const struct soft_instruction *instruction);

struct soft_instruction {
    soft_handler *run[2]; /* [0] for a full warp, [1] for partial warps */
    uint32_t d, a, b, c;  /* offsets in the frame; d of a jump: see below */
    union {
        int64_t immediate;
        const struct soft_instruction *join; /* of a branch: where diverged lanes reconverge */
        const struct soft_code *callee;      /* of a call */
    } u;
    const struct soft_instruction *target; /* of a branch; of an indirect call, its end */
    uint32_t mode;                         /* SOFT_MODE_ bits, or what the operation says */
    uint32_t more;                         /* where its further operands begin in code->operands */
    uint32_t site; /* which memory access of the function this is: the index of its view */
    uint16_t op;   /* enum soft_op: for reports */
};

/* The rounding of a floating point operation, and its other modifiers. */
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
    SOFT_MODE_NAN = 256,     /* min, max: a NaN source gives a NaN */
    SOFT_MODE_XORSIGN = 512, /* min, max: the result takes the product's sign */
    SOFT_MODE_ABS = 1024,    /* min, max: of the magnitudes */
    SOFT_MODE_APPROX = 2048,
};

/* The mode of a sum, a difference or a product with a carry. */
enum {
    SOFT_CARRY_READ = 1,
    SOFT_CARRY_WRITE = 2,
    SOFT_CARRY_HIGH = 4, /* of the product */
    SOFT_CARRY_SIGNED = 8
};

/* The mode of reading a special register: which one, and whether it has 64 bits. */
#define SOFT_SPECIAL_WIDE (1u << 16)

/* The mode of a video instruction. Parts: 0 all, 1 to 4 a byte, 5 and 6 a half-word. */
enum {
    SOFT_VIDEO_ADD = 0,
    SOFT_VIDEO_SUB = 1,
    SOFT_VIDEO_ABSDIFF = 2,
    SOFT_VIDEO_MIN = 3,
    SOFT_VIDEO_MAX = 4,
    SOFT_VIDEO_AVRG = 5,
    SOFT_VIDEO_SET = 6,
    SOFT_VIDEO_SHL = 7,
    SOFT_VIDEO_SHR = 8,
    SOFT_VIDEO_OPERATION = 15,
    SOFT_VIDEO_D_SIGNED = 1 << 4,
    SOFT_VIDEO_A_SIGNED = 1 << 5,
    SOFT_VIDEO_B_SIGNED = 1 << 6,
    SOFT_VIDEO_SAT = 1 << 7,
    SOFT_VIDEO_CLAMP = 1 << 8, /* of a shift count; it wraps otherwise */
    SOFT_VIDEO_PO = 1 << 9,
    SOFT_VIDEO_BYTES = 1 << 10,   /* four packed, not two */
    SOFT_VIDEO_SECOND_SHIFT = 11, /* 1 add, 2 min, 3 max */
    SOFT_VIDEO_COMPARE_SHIFT = 14,
    SOFT_VIDEO_SCALE_SHIFT = 17, /* 1 by 2^7, 2 by 2^15 */
    SOFT_VIDEO_D_SHIFT = 20,
    SOFT_VIDEO_A_SHIFT = 23,
    SOFT_VIDEO_B_SHIFT = 26,
    SOFT_VIDEO_LANES_SHIFT = 20, /* of a packed one: one bit per computed part */
    SOFT_VIDEO_LANES = 15,
    SOFT_VIDEO_MINUS_PRODUCT = 1 << 29, /* of vmad */
    SOFT_VIDEO_MINUS_C = 1 << 30
};

/* The mode of a branch, an exit or a trap, and of a barrier. */
enum {
    SOFT_BRANCH_BACKWARD = 1,
    SOFT_BRANCH_NEGATED = 2,
    SOFT_BRANCH_POLLS = 8,   /* backward, around a load or an atomic that may wait for others */
    SOFT_BRANCH_GUARDED = 4, /* an exit or a trap of the lanes with a true predicate */
    SOFT_BRANCH_BREAKS = 16, /* a trap that is a breakpoint */
    SOFT_BARRIER_COUNTED = 1,
    SOFT_BARRIER_ALIGNED = 2,
    SOFT_BARRIER_POPC = 4, /* barrier.red: what becomes of the threads' predicates */
    SOFT_BARRIER_AND = 8,
    SOFT_BARRIER_OR = 12,
    SOFT_BARRIER_RED = 12,
    SOFT_BARRIER_NEGATED = 16
};

/* The mode of a call: to a known function, or to an address. */
enum { SOFT_CALL_INDIRECT = 1 };

/* Where an instruction came from, for reports. */
struct soft_origin {
    uint32_t offset;     /* in the PTX text */
    uint32_t file, line; /* in the source; 0 if the PTX has none */
    uint32_t number;     /* among the function's PTX instructions */
};

/* Which operands of an instruction are slots that it reads, and which it writes. */
enum {
    SOFT_USES_A = 1,
    SOFT_USES_B = 2,
    SOFT_USES_C = 4,
    SOFT_USES_D = 8,
    SOFT_USES_E = 16, /* the slot in the immediate */
    SOFT_USES_DEFINES_D = 32,
    SOFT_USES_KEEPS = 64, /* a part of d */
    SOFT_USES_EXTRAS = 16 /* the further operands that are recorded: no more are defined by any
                           * instruction whose results are followed */
};
struct soft_uses {
    uint8_t fields;
    uint16_t used, defined; /* a bit for each further operand */
};

/* Values that are equal for all threads of a CTA, and differ between CTAs. */
enum soft_cta_value {
    SOFT_CTA_CTAID = 0,         /* three, and so of the next two */
    SOFT_CTA_CLUSTERID = 3,     /* in the grid of clusters */
    SOFT_CTA_CLUSTER_CTAID = 6, /* in the cluster */
    SOFT_CTA_CLUSTER_CTARANK = 9,
    SOFT_CTA_VALUES = 10
};

/* What a slot holds before a warp begins. */
enum soft_fill_kind {
    SOFT_FILL_CONSTANT,  /* value, in every lane */
    SOFT_FILL_PARAMETER, /* value is the offset in the parameter buffer */
    SOFT_FILL_SPECIAL,   /* value is an enum ptx_special that is the same in all CTAs of a launch */
    SOFT_FILL_CTA,       /* value is an enum soft_cta_value */
    SOFT_FILL_DYNAMIC_SHARED, /* value is added to the begin of dynamic shared memory */
    SOFT_FILL_LOCAL           /* value is added to the begin of the call's local memory */
};

/* Where a call finds an argument in the callee's frame, or a return its result: a number of bytes
 * per lane, lanes in order; a predicate takes one bit per lane. Slot 0: unused. */
#define SOFT_PASSED_PREDICATE UINT32_MAX
struct soft_passed {
    uint32_t slot, bytes;
};

struct soft_fill {
    enum soft_fill_kind kind;
    uint32_t slot;  /* offset in the frame */
    uint32_t bytes; /* of a parameter: 1, 2, 4, 8 */
    bool wide;      /* a 64-bit slot */
    bool predicate; /* one word, one bit per lane */
    bool is_signed; /* a parameter to be sign-extended */
    uint64_t value;
};

/* A function is drafted when its module is loaded, and completed when it is first launched or
 * called, or when a query needs the complete code; see soft_module_complete. */
struct soft_code {
    const char *name;
    atomic_bool is_complete; /* complete; before that, members marked with (c) are unset */
    struct soft_instruction *instructions; /* (c) */
    struct soft_origin *origins;           /* (c) one an instruction */
    struct soft_uses *uses;                /* (c) one an instruction */
    uint32_t instruction_count;            /* (c) */
    uint32_t *operands;                    /* (c) the further operands of instructions */
    uint32_t frame_bytes;                  /* (c) */
    struct soft_fill *fills;               /* (c) */
    uint32_t fill_count;                   /* (c) */
    uint32_t cta_fill_count;               /* (c) the first of them: those of SOFT_FILL_CTA */
    uint32_t sites;                        /* memory accesses */
    uint32_t local_bytes;                  /* per thread, of this function alone */
    uint32_t shared_bytes;                 /* static, of the module's variables it can reach */
    uint32_t parameter_bytes;
    uint32_t parameter_count;
    const uint32_t *parameter_offsets, *parameter_sizes;
    uint32_t registers; /* (c) reported as registers per thread */
    uint32_t block_threads_max;
    uint32_t block_required[3];   /* .reqntid; 0 for none */
    uint32_t cluster_required[3]; /* .reqnctapercluster; 0 for none */
    uint32_t cluster_max;         /* .maxclusterrank; 0 for none */
    bool cluster_needed;          /* .explicitcluster */
    bool blocks_are_clusters;     /* a launch counts clusters */
    bool is_function;             /* not a kernel */
    bool has_alloca;
    uint32_t shared_end; /* of the module's shared variables it reads or writes itself */
    struct soft_passed *arguments, *results; /* (c) */
    uint32_t argument_count, result_count;   /* (c) */
};

/* How executed instructions are counted: a split that runs from one place to another has executed
 * the difference of their numbers. So a split subtracts the number of its first place, adds that of
 * its last, and a jump adds the difference in between; straight-line code counts nothing. A jump's
 * difference is in its d; for an exit, a call, a return or a brx, d is the number after it. */
static inline uint32_t soft_code_number(const struct soft_code *code,
                                        const struct soft_instruction *instruction) {
    return code->origins[instruction - code->instructions].number;
}

#endif
