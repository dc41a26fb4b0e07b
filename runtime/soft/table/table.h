/*
 * The instruction table: one row and one kernel per form of an instruction.
 *
 * The rows are text, files in fixtures/ptx/instructions (README there). Each becomes a kernel whose
 * threads read one tuple of operands each, execute the instruction and store its results. The same
 * kernels run on any driver; the results are compared with an oracle and with a GPU's. Nothing here
 * depends on the soft device.
 */
#ifndef SOFT_TABLE_H
#define SOFT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TABLE_WORDS = 16,       /* modifiers of one instruction */
    TABLE_INSTRUCTIONS = 5, /* of one row */
    TABLE_OPERANDS = 20,    /* of one row, and of one instruction */
    TABLE_SOURCES = 32,
    TABLE_RESULTS = 16,
    TABLE_GROUP = 128, /* threads of a warpgroup */
    TABLE_ROW_BYTES = 512
};

/* A type of the table. Floating point types have the widths of their fields; packed types have
 * several elements with these fields. */
struct table_type {
    const char *name;
    uint8_t bits;       /* of the type itself */
    uint8_t store_bits; /* of the register that holds it, and of its place in memory: 16, 32, 64 */
    char kind;          /* Unsigned, Signed, Bits, Float, Predicate */
    uint8_t elements, exponent_bits, fraction_bits;
};

const struct table_type *table_type_find(const char *name, size_t length);

enum table_operand_kind {
    TABLE_SOURCE, /* a value */
    TABLE_RESULT, /* a register to write */
    TABLE_CELL,   /* a memory cell: its content before is a source, and after it a result */
    TABLE_TILE,   /* memory of a warp, a register's worth of each thread after another's */
    TABLE_SPARE,  /* registers that are written, and read by a later instruction of the row */
    TABLE_NUMBER, /* literal text */
    TABLE_AGAIN   /* an earlier operand */
};

struct table_operand {
    enum table_operand_kind kind;
    const struct table_type *type;
    uint8_t count; /* of registers in braces, or of a tile for each thread; 0: one, and no braces */
    bool read, written; /* of a tile: it is a source, it is a result */
    char set[16];       /* the value set; empty for the type's own */
    bool negated;       /* of a predicate */
    bool minus;         /* -r, of a video instruction */
    char part[8];       /* of a register: b0, h1, b7654 and so on; empty for all of it */
    char before;        /* '{' where a vector begins, '|' after the first of a pair, or 0 */
    char after;         /* '}' where a vector ends, or 0 */
    char text[24];      /* of a NUMBER */
    uint8_t source;     /* which source it is, the first of several, or which operand AGAIN */
    uint8_t result;     /* which result it is */
};

struct table_instruction {
    char spelling[96];
    char words[TABLE_WORDS][32]; /* the spelling, cut at its dots; [0] is the name */
    uint8_t word_count;
    const struct table_type *types[4]; /* the types among the words */
    uint8_t type_count;
    uint8_t first_operand, operand_count;
};

/* The maximum distance of a result from the oracle's value. */
enum table_bound_kind { TABLE_EXACT, TABLE_ULP, TABLE_ABSOLUTE, TABLE_RELATIVE, TABLE_SUM };

struct table_row {
    char text[TABLE_ROW_BYTES]; /* the row without its attributes: its name */
    uint64_t seed;              /* of its values: a hash of the name */
    struct table_instruction instructions[TABLE_INSTRUCTIONS];
    uint8_t instruction_count;
    struct table_operand operands[TABLE_OPERANDS];
    uint8_t operand_count;
    uint8_t sources[TABLE_SOURCES], results[TABLE_RESULTS]; /* operands */
    uint8_t source_count, result_count;
    enum table_bound_kind bound;
    double bound_size;
    uint32_t version; /* 10 * major + minor */
    uint32_t target;
    char suffix;    /* of the target: 'a', or 0 */
    uint32_t lanes; /* the lanes of each warp that execute it */
    bool shared;    /* cells are in shared memory */
    bool warp;      /* it uses other lanes: warps are whole */
    bool group;     /* and at other warps of its warpgroup */
    uint32_t tuples;
};

/* The rows of one file, or of several. */
struct table {
    struct table_row *rows;
    size_t count, room;
    char message[512]; /* why reading failed: file, line and reason */
};

/* Adds the rows of a file; alternatives in braces make several of one line. */
bool table_read(struct table *table, const char *path);

/* Adds the rows of every .table file of a folder, in the order of their names. */
bool table_read_folder(struct table *table, const char *folder);

void table_free(struct table *table);

/* Whether the spelling has a word. */
bool table_has(const struct table_instruction *instruction, const char *word);

/* An operand of a tuple, in the low bits of the type's store width. The same on every machine. */
uint64_t table_value(const struct table_row *row, uint32_t tuple, unsigned source);

/* The same for an operand whose set is "matrix": a part of one that a warp holds. */
uint64_t table_matrix_value(const struct table_operand *operand, uint32_t tuple, uint64_t *state);

/* The same for the sets "probe_a", "probe_b" and "probe_c": the operand's register so and so. */
uint64_t table_probe_value(const struct table_operand *operand, uint32_t tuple, unsigned index);
uint32_t table_probe_count(void);

/* Whether results are held against a record by the bound, too, and not by the bit. */
static inline bool table_is_loose(const struct table_row *row) {
    return row->bound != TABLE_EXACT && row->bound != TABLE_SUM;
}

/* The number of sources or results of an operand. */
static inline unsigned table_width(const struct table_operand *operand) {
    return operand->count > 0 ? operand->count : 1;
}

/* A seeded generator, the same everywhere. */
uint64_t table_random(uint64_t *state);

/* The kernel's PTX: with its header, or only the entry. The text is malloc'd; NULL: no memory. */
char *table_kernel(const struct table_row *row, const char *entry, bool header);

/* In a tile whose set is "rows" lane i has the address of row (i * FACTOR + FIRST) modulo the rows
 * there are, of 16 bytes each: all of them, in another order. */
enum { TABLE_ROWS_FACTOR = 5, TABLE_ROWS_FIRST = 3 };

/* The strides of a descriptor of wgmma, in 16 bytes: between the halves of columns, and from eight
 * columns to the next. */
#define TABLE_FACTOR_STRIDES (8ull << 16 | 16ull << 32)

/* The operands of all tuples, and space for all results: 8 bytes each, those of a tuple
 * adjacent. */
enum { TABLE_BYTES = 8 };

/* FNV-1a of bytes, continued from hash; 64 bits. */
uint64_t table_hash(uint64_t hash, const void *bytes, size_t count);
#define TABLE_HASH_BEGIN 0xcbf29ce484222325ull

#endif
