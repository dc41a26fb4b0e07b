/*
 * The syntax tree of PTX: the reader creates it, and the lowering translates it to code.
 *
 * All of it is in the module's arena. Offsets are positions in the text, kept for error messages.
 * Source: PTX ISA 9.0, chapters 4 to 7 and 11.
 */
#ifndef SOFT_PTX_H
#define SOFT_PTX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ptx_modifier {
#define PTX_MODIFIER(name, text) PTX_##name,
#include "modifier.def"
    PTX_MODIFIERS
};

/* The types are the first modifiers; PTX_TYPES is their number, and also means "no type". */
enum {
    PTX_TYPES = 0
#define PTX_TYPE(name, text, bits, kind) +1
#include "modifier.def"
};

enum ptx_special {
#define PTX_SPECIAL(name, text, bits) PTX_SPECIAL_##name,
#include "special.def"
    PTX_SPECIALS
};

/* An instruction's resolved spelling: its row of ptx.def and its modifiers. */
struct ptx_opcode {
    const struct ptx_row *row;
    uint64_t has[8];           /* a bit for each modifier written */
    enum ptx_modifier type[4]; /* the types in the written order; PTX_TYPES if there is none */
    unsigned types;
};

static inline bool ptx_has(const struct ptx_opcode *opcode, enum ptx_modifier modifier) {
    return opcode->has[modifier / 64] >> (modifier % 64) & 1;
}

enum ptx_symbol_kind {
    PTX_REGISTER, /* one, or a range: .reg .b32 %r<10> */
    PTX_VARIABLE,
    PTX_LABEL,
    PTX_FUNCTION,
    PTX_PROTOTYPE, /* the label of a .callprototype */
    PTX_TARGETS    /* the label of a .branchtargets or .calltargets */
};

struct ptx_symbol {
    enum ptx_symbol_kind kind;
    const char *name;
    uint32_t length;
    uint32_t offset;
    struct ptx_symbol *next; /* in its bucket or among the ranges */
    union {
        struct {
            uint32_t first; /* the number of the register, or of the range's first */
            uint32_t count; /* 0 for a single register */
            uint32_t width; /* the components of each: 1, or a vector's 2 or 4 */
            enum ptx_modifier type;
        } reg;
        struct ptx_variable *variable;
        struct ptx_function *function;
        uint32_t label; /* the instruction after it */
        struct ptx_list *targets;
    } is;
};

/* The linkage of a module's declarations outside functions. */
enum ptx_linkage {
    PTX_LINKAGE_OWN, /* this text alone */
    PTX_LINKAGE_EXTERN,
    PTX_LINKAGE_VISIBLE,
    PTX_LINKAGE_WEAK,
    PTX_LINKAGE_COMMON
};

/* A list of names, of .branchtargets or .calltargets. */
struct ptx_list {
    struct ptx_operand *items;
    uint32_t count;
};

enum { PTX_BUCKETS = 64 };

struct ptx_scope {
    struct ptx_scope *parent;
    uint32_t before;           /* outer names declared before this offset are visible; 0: all are */
    bool has_percent;          /* one of the names in its buckets begins with '%' */
    struct ptx_symbol *ranges; /* of registers; found by their stems */
    struct ptx_symbol *buckets[PTX_BUCKETS];
};

enum ptx_operand_kind {
    PTX_OPERAND_NONE, /* the sink "_" */
    PTX_OPERAND_REGISTER,
    PTX_OPERAND_INTEGER,
    PTX_OPERAND_FLOAT32, /* the bits are given */
    PTX_OPERAND_FLOAT64, /* the bits are given; also decimal literals */
    PTX_OPERAND_SPECIAL,
    PTX_OPERAND_SYMBOL,  /* a variable, function or label, plus an addend */
    PTX_OPERAND_ADDRESS, /* [base + addend]: base is items[0] */
    PTX_OPERAND_VECTOR,  /* { a, b, ... } */
    PTX_OPERAND_LIST,    /* ( a, b, ... ), of a call */
    PTX_OPERAND_PAIR     /* a|b */
};

struct ptx_operand {
    enum ptx_operand_kind kind;
    bool negated; /* !p */
    bool indexed; /* SYMBOL: x[2] */
    bool whole;   /* VECTOR: a register of several components, named as a whole */
    bool chosen;  /* REGISTER: one of those components, v.x */
    uint32_t offset;
    union {
        uint32_t reg;             /* REGISTER: its number in the function */
        enum ptx_special special; /* SPECIAL */
    };
    enum ptx_modifier type; /* REGISTER: as declared */
    uint8_t picked;         /* REGISTER: the number of bytes or half-words in .b7654 or .h1 */
    bool picks_halves;      /* they are half-words */
    uint8_t picks[4];       /* which, the highest first */
    bool minus;             /* REGISTER: -r, of a video instruction */
    uint32_t count;         /* of items */
    int64_t integer;        /* INTEGER; the addend of SYMBOL and ADDRESS */
    uint64_t bits;          /* FLOAT32, FLOAT64 */
    struct ptx_symbol *symbol;
    struct ptx_operand *items;
};

struct ptx_instruction {
    const struct ptx_opcode *opcode;
    uint32_t offset;
    int32_t guard; /* the register of @p; -1 for none */
    bool guard_negated;
    bool has_symbols;    /* among its operands */
    uint32_t file, line; /* of the source, from .loc; 0 if there is none */
    struct ptx_operand *operands;
    uint32_t operand_count;
};

/* A place in a variable's data that holds an address. */
struct ptx_relocation {
    uint64_t at;
    uint32_t bytes;
    int64_t addend;
    struct ptx_symbol *symbol;
    bool generic;       /* generic(x): the generic address */
    uint8_t mask_shift; /* 0xff00(x) forms: which byte of the address, times 8 */
    bool masked;
    struct ptx_relocation *next;
};

struct ptx_variable {
    struct ptx_symbol *symbol;
    enum ptx_modifier space;
    enum ptx_modifier type;
    uint32_t alignment;
    uint64_t bytes; /* 0 for an unsized array */
    uint8_t dimensions;
    bool external; /* .extern */
    enum ptx_linkage linkage;
    bool elsewhere; /* another linked text defines it, or must */
    bool is_array, is_unsized;
    bool is_managed;     /* .attribute(.managed): the host can use it at the same address */
    bool is_opaque;      /* a .texref or .surfref: the handle of the bound object */
    bool is_surface;     /* a .surfref */
    bool is_pointer;     /* a parameter marked .ptr */
    unsigned char *data; /* NULL where nothing is initialised */
    struct ptx_relocation *relocations;
    uint64_t address; /* an offset in its space, or a device address, once it is placed */
    bool placed;
    const struct ptx_function *user; /* of a shared one: a function that names it */
    bool common;                     /* another function names it too, or it is no kernel */
    bool is_register;                /* a parameter declared with .reg */
    uint32_t value; /* a parameter's register; for one in a call, the lowering's value */
    bool has_value;
    bool is_spilled; /* a function's parameter whose address is taken: it is in local memory */
    struct ptx_variable *next;
};

struct ptx_function {
    struct ptx_symbol *symbol;
    bool entry;
    bool external;
    enum ptx_linkage linkage;
    bool has_body;
    bool no_return;
    struct ptx_variable **returns, **parameters;
    uint32_t return_count, parameter_count;
    uint32_t block_threads[3];   /* .reqntid or .maxntid; 0 for none */
    bool block_threads_required; /* .reqntid */
    uint32_t registers_max;      /* .maxnreg */
    uint32_t cluster[3];         /* .reqnctapercluster; 0 for none */
    uint32_t cluster_max;        /* .maxclusterrank; 0 for none */
    bool cluster_needed;         /* .explicitcluster */
    bool blocks_are_clusters;    /* .blocksareclusters: a launch counts clusters */
    struct ptx_scope *scope;
    struct ptx_variable *variables; /* declared in the body: .local, .shared, .param */
    enum ptx_modifier *register_types;
    uint32_t register_count;
    struct ptx_instruction *instructions;
    uint32_t instruction_count;
    uint32_t number;                  /* among the module's functions with a body */
    uint64_t address;                 /* where calls find it */
    struct soft_code *code;           /* made when the module is linked, filled by the lowering */
    struct soft_lowering *drafted;    /* what the lowering keeps until the code is completed */
    uint32_t first_site, sites;       /* its memory accesses, counted over the module */
    struct ptx_function *next_callee; /* in a list of functions whose code will be completed */
    bool is_listed;
    struct ptx_function *next;
};

struct ptx_file {
    uint32_t number;
    const char *name;
    struct ptx_file *next;
};

struct ptx_module {
    uint32_t version;         /* 10 * major + minor */
    uint32_t target;          /* 90 for sm_90 */
    atomic_bool programmatic; /* it has griddepcontrol */
    char target_suffix;       /* 'a' or 'f' for sm_90a, sm_100f; 0 */
    struct ptx_scope *scope;
    struct ptx_variable *variables; /* in the order declared */
    struct ptx_function *functions; /* in the order declared */
    struct ptx_file *files;
};

/* Whether code for a target runs on a device of a compute capability (90: 9.0): without a suffix
 * also on later devices, with 'f' on later ones of the same major version, with 'a' on no other. */
static inline bool ptx_target_fits(unsigned target, char suffix, unsigned capability) {
    if (target > capability) return false;
    if (suffix == 'a') return target == capability;
    return suffix != 'f' || target / 10 == capability / 10;
}

/* What is known of a type. */
struct ptx_type_info {
    const char *text;
    uint16_t bits;
    char kind[5];
};
extern const struct ptx_type_info ptx_types[PTX_TYPES];

/* The register width of a type in bits: predicates have 1, 8-bit types 16. */
static inline unsigned ptx_register_bits(enum ptx_modifier type) {
    unsigned bits = ptx_types[type].bits;
    return bits == 1 ? 1 : bits < 16 ? 16 : bits;
}

#endif
