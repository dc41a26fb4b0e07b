/*
 * Lowering: PTX instructions to micro-operations.
 *
 * Every instruction becomes one or a few drafts, whose operands are values: PTX registers,
 * temporaries, constants, parameters, special registers. Then the drafts are divided into blocks to
 * find where diverged lanes reconverge (control_flow.c), values get slots (slots.c), and the drafts
 * become code. Values that do not change during a launch are filled in before it, so moving one
 * into a register costs nothing.
 */
#ifndef SOFT_LOWER_H
#define SOFT_LOWER_H

#include "base/arena.h"
#include "code.h"
#include "ptx/diagnostic.h"
#include "ptx/opcode.h"
#include "ptx/ptx.h"

#include "tollens/cuda_abi.h"

enum soft_value_kind {
    SOFT_VALUE_REGISTER, /* of the PTX, or a temporary: it changes */
    SOFT_VALUE_CONSTANT,
    SOFT_VALUE_PARAMETER,
    SOFT_VALUE_SPECIAL,
    SOFT_VALUE_CTA,
    SOFT_VALUE_DYNAMIC_SHARED, /* the offset of dynamic shared memory, plus a number */
    SOFT_VALUE_LOCAL           /* the address of the call's local memory, plus a number */
};

/* Something an instruction can read. Its number is its identity. */
struct soft_value {
    enum soft_value_kind kind;
    uint8_t bits; /* 1 (a predicate), 16, 32, 64, 128; 0: bytes says */
    uint8_t parameter_bytes;
    bool parameter_signed;
    uint32_t bytes;    /* of a parameter of a call, or 16: for each lane, in order */
    uint64_t constant; /* the constant, the parameter's offset, the special register */
    uint32_t alias;    /* of a register that is only ever this value; its own number otherwise */
    uint32_t definitions;
    uint32_t slot;        /* its place in the frame; 0 until it has one */
    uint32_t first, last; /* where it is live, as positions of drafts */
    bool used;
    bool pinned; /* a wgmma uses it until the wait: it does not share its slot */
};

#define SOFT_NO_VALUE UINT32_MAX
#define SOFT_NO_LABEL UINT32_MAX

/* A further operand of a draft: a value, or a literal number. */
enum soft_extra_kind { SOFT_EXTRA_NUMBER, SOFT_EXTRA_USE, SOFT_EXTRA_DEFINE };
struct soft_extra {
    enum soft_extra_kind kind;
    uint32_t value;
};

struct soft_draft {
    int64_t immediate;
    uint32_t *targets;           /* of a branch by table: as target, several */
    struct ptx_function *callee; /* of a call */
    struct soft_extra *extras;
    enum soft_op op;
    uint32_t mode;
    uint32_t d, a, b, c;
    uint32_t e;      /* a value whose slot goes into the immediate */
    uint32_t target; /* of a branch: the PTX instruction; once all are drafted: the draft */
    uint32_t join;   /* of a branch: the draft of the join, or SOFT_NO_LABEL */
    uint32_t target_count, extra_count;
    uint32_t origin; /* the PTX instruction */
    uint32_t number; /* the first of the instructions without code before it, or its own */
    bool has_site, d_is_read, guarded;
    bool keeps; /* it writes a part of d, and the rest is unchanged */
    bool polls; /* it may be the access by which a loop waits for another thread */
};

struct soft_lowering {
    struct soft_diagnostic *diagnostic;
    struct soft_arena *arena;   /* for what the code keeps */
    struct soft_arena *scratch; /* for temporary data of the lowering of a function */
    struct ptx_module *module;
    struct ptx_function *function;
    struct ptx_function *callees; /* a list of incomplete functions that the code calls */
    struct soft_value *values;
    uint32_t value_count, value_room;
    struct soft_draft *drafts;
    uint32_t draft_count, draft_room;
    uint32_t *begins; /* for each PTX instruction, its first draft */
    uint32_t current; /* the PTX instruction being lowered */
    uint32_t local_bytes;
    uint32_t frame_bytes;
    bool has_carry;
    uint32_t carry; /* the value of the carry flag, if needed */
    bool has_wgmma; /* some of the registers are pinned */
    struct soft_code *code;
};

/* Drafts a function with a body, which finds all of its errors, keeps the drafts in the arena, and
 * fills the part of function->code that the checks of a launch need. Called once for each function.
 * Functions of a module may be drafted in parallel, each with its own arenas. */
bool soft_lower_draft(struct soft_lowering *lowering);

/* Fills in the executable code of a drafted function. Fails only without memory; then it may be
 * called again. */
bool soft_lower_complete(struct soft_lowering *lowering);

/* lower_wgmma.c: finds the registers that wgmma uses, before anything is drafted; and inserts a
 * check before each instruction that uses one of them. */
void soft_wgmma_pin(struct soft_lowering *lowering);
bool soft_wgmma_check_use(struct soft_lowering *lowering, const struct ptx_instruction *in);

/* control_flow.c: whether control may leave for another draft than the next. */
bool soft_ends_block(const struct soft_draft *draft);

/* control_flow.c: finds the reconvergence points of all branches and inserts a join at each. */
bool soft_graph_joins(struct soft_lowering *lowering);

/* slots.c: gives every used value its place in the frame; and whether they may not all fit, which
 * only this pass finds out. */
bool soft_slots_assign(struct soft_lowering *lowering);
bool soft_slots_may_lack(const struct soft_lowering *lowering);

/* count.c: finds where drafts begin among the PTX instructions: an instruction without a draft
 * counts with the next one, and after a label with one that follows the label. */
void soft_count_from(struct soft_lowering *lowering);

/* The difference that a jump adds to the count of executed instructions. */
void soft_count_to(const struct soft_lowering *lowering, const struct soft_draft *draft,
                   uint32_t *difference);

/* code_write.c: makes code of the drafts. */
bool soft_code_write(struct soft_lowering *lowering);

/* fuse.c: lets the first of several adjacent instructions execute all of them. */
void soft_fuse(struct soft_lowering *lowering);

/* For the lower_*.c files: an error at an operand or at the instruction. */
#define LOWER_FAIL(lowering, where, ...)                                                           \
    soft_error((lowering)->diagnostic, (where)->offset, CUDA_ERROR_INVALID_PTX, __VA_ARGS__)
#define LOWER_NO_MEMORY(lowering)                                                                  \
    soft_error((lowering)->diagnostic, 0, CUDA_ERROR_OUT_OF_MEMORY, "out of host memory")

/* Adds a draft; NULL without memory (the error is noted). All operands are absent. The pointer is
 * valid until the next draft is added. */
struct soft_draft *soft_draft(struct soft_lowering *lowering, enum soft_op op);

/* Adds a further operand to a draft. */
bool soft_extra(struct soft_lowering *lowering, struct soft_draft *draft, enum soft_extra_kind kind,
                uint32_t value);

/* Values: a fresh temporary, a constant, ... SOFT_NO_VALUE without memory. */
uint32_t soft_value_temporary(struct soft_lowering *lowering, unsigned bits);
uint32_t soft_value_constant(struct soft_lowering *lowering, unsigned bits, uint64_t constant);
uint32_t soft_value_special(struct soft_lowering *lowering, enum ptx_special special);
uint32_t soft_value_find(struct soft_lowering *lowering, enum soft_value_kind kind, unsigned bits,
                         uint64_t constant, unsigned parameter_bytes, bool parameter_signed);

/* Makes a register with a single definition an alias of a value that never changes. false: not
 * applicable; a move is needed. */
bool soft_value_alias(struct soft_lowering *lowering, const struct ptx_instruction *instruction,
                      uint32_t destination, uint32_t source);

/* Adds an operation on one value and returns the temporary that it writes. */
uint32_t soft_convert(struct soft_lowering *lowering, enum soft_op op, unsigned bits,
                      uint32_t source);

/* The value an operand reads, as a number of a type and width. */
bool soft_source(struct soft_lowering *lowering, const struct ptx_operand *operand, unsigned bits,
                 enum ptx_modifier type, uint32_t *value);

/* The register an operand writes, as a number of a type and width; "_" gives a temporary. */
bool soft_destination(struct soft_lowering *lowering, const struct ptx_operand *operand,
                      unsigned bits, enum ptx_modifier type, uint32_t *value);

/* A predicate operand, perhaps negated. */
bool soft_predicate(struct soft_lowering *lowering, const struct ptx_operand *operand,
                    uint32_t *value, bool *negated);

/* Room in local memory; its offset. */
bool soft_local_room(struct soft_lowering *lowering, const struct ptx_operand *where,
                     uint64_t bytes, uint32_t alignment, uint64_t *offset);

/* The address of a variable in its space; places local variables on first use. */
bool soft_variable_address(struct soft_lowering *lowering, const struct ptx_operand *operand,
                           const struct ptx_variable *variable, int64_t addend, unsigned bits,
                           uint32_t *value);

/* lower_call.c: parameters of calls, both of this function and of its callees. */

/* Whether a variable is such a parameter, rather than a kernel's. */
static inline bool soft_is_passed(const struct ptx_variable *variable) {
    return variable->space == PTX_param && !variable->placed;
}

/* The value that such a parameter is. */
uint32_t soft_passed_value(struct soft_lowering *lowering, struct ptx_variable *variable);

/* Loads and stores of them: bytes from an offset on, from or to registers of a width in bits. */
struct soft_passed_access {
    struct ptx_variable *variable;
    int64_t offset;
    unsigned bytes, bits, count; /* of a component in the parameter, of its register; components */
    bool is_signed;
    const uint32_t *registers;
};
bool soft_load_passed(struct soft_lowering *lowering, const struct ptx_instruction *in,
                      const struct soft_passed_access *access);
bool soft_store_passed(struct soft_lowering *lowering, const struct ptx_instruction *in,
                       const struct soft_passed_access *access);

/* At the begin of a function: defines its parameters. At its end: returns its results. */
bool soft_begin_function(struct soft_lowering *lowering);
bool soft_end_function(struct soft_lowering *lowering);

/* Records the slots of the parameters and results. */
bool soft_write_passed(struct soft_lowering *lowering);

/* Matches an instruction's operands against its row's letters: see ptx.def. */
struct soft_operands {
    uint32_t d, q; /* the destination; the second one of a pair d|q, or SOFT_NO_VALUE */
    uint32_t source[4];
    bool negated[4];
    unsigned count;
};
bool soft_operands(struct soft_lowering *lowering, const struct ptx_instruction *instruction,
                   struct soft_operands *operands);

/* Adds one draft of an operation with unchanged operands. */
bool soft_emit(struct soft_lowering *lowering, const struct ptx_instruction *instruction,
               unsigned op, uint32_t mode);

/* The mode bits of the modifiers: rounding, .ftz, .sat and others. */
uint32_t soft_mode_of(const struct ptx_opcode *opcode);

/* Whether a type is of sixteen-bit floating point, one or two. */
static inline bool soft_is_half(enum ptx_modifier type) {
    return type == PTX_f16 || type == PTX_bf16 || type == PTX_f16x2 || type == PTX_bf16x2;
}

/* The register width for a type, in bits. */
unsigned soft_bits(enum ptx_modifier type);

/* lower_row.c: the first micro-operation of an instruction's group in ops.def; and its lowering. */
uint16_t soft_first_op(const struct ptx_instruction *in);
bool soft_lower_row(struct soft_lowering *lowering, const struct ptx_instruction *in);

/* The lowerings that ptx.def names. */
#define PTX(name, pattern, operands, lower, base, version, target)                                 \
    bool soft_lower_##lower(struct soft_lowering *lowering, const struct ptx_instruction *in);
#include "ptx/ptx.def"

#endif
