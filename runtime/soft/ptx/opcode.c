/*
 * Matches spellings against the patterns of ptx.def.
 */
#include "opcode.h"

#include <stdio.h>
#include <string.h>

static const struct ptx_row rows[] = {
#define PTX(name, pattern, operands, lower, base, version, target)                                 \
    {#name, pattern, operands, version, target},
#include "ptx.def"
};

_Static_assert(PTX_MODIFIERS <= 512, "struct ptx_opcode has a bit for each");

enum { ROWS = sizeof rows / sizeof rows[0], WORDS_MAX = 16 };

/* The length of each row's name: it and the first letter distinguish most rows. */
static const uint8_t name_lengths[ROWS] = {
#define PTX(name, pattern, operands, lower, base, version, target) sizeof #name - 1,
#include "ptx.def"
};

static const char *const modifier_texts[PTX_MODIFIERS] = {
#define PTX_MODIFIER(name, text) text,
#include "modifier.def"
};

static const uint8_t modifier_lengths[PTX_MODIFIERS] = {
#define PTX_MODIFIER(name, text) sizeof(text) - 1,
#include "modifier.def"
};

size_t ptx_row_count(void) {
    return ROWS;
}

const struct ptx_row *ptx_row_at(size_t index) {
    return &rows[index];
}

size_t ptx_row_index(const struct ptx_row *row) {
    return (size_t)(row - rows);
}

enum ptx_modifier ptx_modifier_find(const char *text, size_t length) {
    for (int i = 0; i < PTX_MODIFIERS; i++) {
        if (modifier_lengths[i] == length && memcmp(modifier_texts[i], text, length) == 0) {
            return (enum ptx_modifier)i;
        }
    }
    return PTX_MODIFIERS;
}

/* A spelling cut at its dots. */
struct spelling {
    const char *text;
    size_t name_length;
    size_t count;
    struct {
        size_t at, length;
        enum ptx_modifier modifier;
    } words[WORDS_MAX];
};

/* Whether the modifier's text is among the alternatives "a|b|c" of length characters. */
static bool opcode_is_among(const char *alternatives, size_t length, enum ptx_modifier modifier) {
    size_t wanted = modifier_lengths[modifier];
    for (size_t at = 0; at <= length;) {
        const char *bar = memchr(alternatives + at, '|', length - at);
        size_t one = bar != NULL ? (size_t)(bar - alternatives) - at : length - at;
        if (one == wanted && memcmp(alternatives + at, modifier_texts[modifier], one) == 0) {
            return true;
        }
        at += one + 1;
    }
    return false;
}

/* Matches the words from *word on against the rest of a pattern. Optional words are matched if they
 * fit and, if the rest then does not match, skipped after all. On failure *word is the furthest
 * match. */
static bool opcode_match(const char *pattern, const struct spelling *spelling, size_t word,
                         size_t *furthest, struct ptx_opcode *opcode) {
    while (*pattern == ' ') pattern++;
    if (word > *furthest) *furthest = word;
    if (*pattern == '\0') return word == spelling->count;
    bool optional = *pattern == '?';
    if (optional) pattern++;
    size_t length = strcspn(pattern, " ");
    const char *rest = pattern + length;
    if (word < spelling->count &&
        opcode_is_among(pattern, length, spelling->words[word].modifier)) {
        enum ptx_modifier modifier = spelling->words[word].modifier;
        if (opcode_match(rest, spelling, word + 1, furthest, opcode)) {
            opcode->has[modifier / 64] |= 1ull << (modifier % 64);
            return true;
        }
    }
    return optional && opcode_match(rest, spelling, word, furthest, opcode);
}

/* The order of types says which operands they belong to; likewise for state spaces and the layouts
 * of matrices. */
enum { UNBOUND, TYPE, SPACE, LAYOUT, KINDS };
static int opcode_kind_of(enum ptx_modifier modifier) {
    if ((int)modifier < PTX_TYPES) return TYPE;
    if (modifier == PTX_row || modifier == PTX_col) return LAYOUT;
    return modifier >= PTX_global && modifier <= PTX_param_func ? SPACE : UNBOUND;
}

/* The same in any order, as ptxas accepts: used has one bit per matched word. Only types keep their
 * order among themselves, and so do spaces and layouts. */
static bool match_shuffled(const char *pattern, const struct spelling *spelling, uint32_t used,
                           struct ptx_opcode *opcode) {
    while (*pattern == ' ') pattern++;
    if (*pattern == '\0') return used == (1u << spelling->count) - 1;
    bool optional = *pattern == '?';
    if (optional) pattern++;
    size_t length = strcspn(pattern, " ");
    bool passed[KINDS] = {false};
    for (size_t i = 0; i < spelling->count; i++) {
        enum ptx_modifier modifier = spelling->words[i].modifier;
        int kind = opcode_kind_of(modifier);
        if ((used >> i & 1) != 0 || passed[kind]) continue;
        passed[kind] = kind != UNBOUND;
        if (!opcode_is_among(pattern, length, modifier)) continue;
        if (match_shuffled(pattern + length, spelling, used | 1u << i, opcode)) {
            opcode->has[modifier / 64] |= 1ull << (modifier % 64);
            return true;
        }
        break;
    }
    return optional && match_shuffled(pattern + length, spelling, used, opcode);
}

static void note_types(const struct spelling *spelling, struct ptx_opcode *opcode) {
    for (int i = 0; i < 4; i++) opcode->type[i] = (enum ptx_modifier)PTX_TYPES;
    for (size_t i = 0; i < spelling->count && opcode->types < 4; i++) {
        if ((int)spelling->words[i].modifier < PTX_TYPES) {
            opcode->type[opcode->types++] = spelling->words[i].modifier;
        }
    }
}

static bool has_name(size_t row, const struct spelling *spelling) {
    return name_lengths[row] == spelling->name_length && rows[row].name[0] == spelling->text[0] &&
           memcmp(rows[row].name, spelling->text, spelling->name_length) == 0;
}

static bool opcode_resolve(const struct spelling *spelling, struct ptx_opcode *opcode, char *why,
                           size_t why_bytes, size_t *at) {
    size_t furthest = 0;
    for (size_t i = 0; i < 2 * (size_t)ROWS; i++) {
        const struct ptx_row *row = &rows[i % ROWS];
        if (!has_name(i % ROWS, spelling)) continue;
        memset(opcode, 0, sizeof *opcode);
        bool found = i < ROWS ? opcode_match(row->pattern, spelling, 0, &furthest, opcode)
                              : match_shuffled(row->pattern, spelling, 0, opcode);
        if (!found) continue;
        opcode->row = row;
        note_types(spelling, opcode);
        return true;
    }
    if (furthest < spelling->count) {
        *at = spelling->words[furthest].at;
        snprintf(why, why_bytes, "'%.*s' is not valid here or not supported by this device",
                 (int)spelling->words[furthest].length, spelling->text + *at);
    } else {
        *at = 0;
        snprintf(why, why_bytes, "a modifier or a type is missing");
    }
    return false;
}

static bool opcode_cut(const char *text, size_t length, struct spelling *spelling, char *why,
                       size_t why_bytes, size_t *at) {
    spelling->text = text;
    const char *dot = memchr(text, '.', length);
    spelling->name_length = dot != NULL ? (size_t)(dot - text) : length;
    for (size_t begin = spelling->name_length; begin < length;) {
        const char *next = memchr(text + begin + 1, '.', length - begin - 1);
        size_t end = next != NULL ? (size_t)(next - text) : length;
        *at = begin;
        if (spelling->count == WORDS_MAX) {
            snprintf(why, why_bytes, "more than %d modifiers", WORDS_MAX);
            return false;
        }
        enum ptx_modifier modifier = ptx_modifier_find(text + begin + 1, end - begin - 1);
        if (modifier == PTX_MODIFIERS) {
            snprintf(why, why_bytes, "'%.*s' is unknown or not supported by this device",
                     (int)(end - begin), text + begin);
            return false;
        }
        spelling->words[spelling->count].at = begin;
        spelling->words[spelling->count].length = end - begin;
        spelling->words[spelling->count].modifier = modifier;
        spelling->count++;
        begin = end;
    }
    return true;
}

static bool is_known_name(const struct spelling *spelling) {
    for (size_t i = 0; i < ROWS; i++) {
        if (has_name(i, spelling)) return true;
    }
    return false;
}

/* Eight characters at a time: this is done for every instruction. */
static unsigned opcode_bucket_of(const char *text, size_t length) {
    uint64_t hash = length, eight = 0;
    for (; length > 8; text += 8, length -= 8) {
        memcpy(&eight, text, 8);
        hash = (hash ^ eight) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    eight = 0;
    for (size_t i = 0; i < length; i++) eight = eight << 8 | (unsigned char)text[i];
    hash = (hash ^ eight) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    return (unsigned)(hash % PTX_OPCODE_BUCKETS);
}

const struct ptx_opcode *ptx_opcode_find(struct ptx_opcode_cache *cache, struct soft_arena *arena,
                                         const char *text, size_t length, char *why,
                                         size_t why_bytes, size_t *at) {
    struct ptx_opcode_entry **bucket = &cache->buckets[opcode_bucket_of(text, length)];
    for (const struct ptx_opcode_entry *entry = *bucket; entry != NULL; entry = entry->next) {
        if (entry->length == length && memcmp(entry->spelling, text, length) == 0) {
            return &entry->opcode;
        }
    }
    struct spelling spelling = {0};
    struct ptx_opcode opcode;
    bool cut_well = opcode_cut(text, length, &spelling, why, why_bytes, at);
    if (!is_known_name(&spelling)) {
        *at = 0;
        snprintf(why, why_bytes, "this instruction is unknown or not supported by this device");
        return NULL;
    }
    if (!cut_well || !opcode_resolve(&spelling, &opcode, why, why_bytes, at)) return NULL;

    struct ptx_opcode_entry *entry = soft_arena_alloc(arena, sizeof *entry);
    char *copy = soft_arena_text(arena, text, length);
    if (entry == NULL || copy == NULL) {
        snprintf(why, why_bytes, "out of host memory");
        return NULL;
    }
    *entry = (struct ptx_opcode_entry){
        .opcode = opcode, .spelling = copy, .length = length, .next = *bucket};
    *bucket = entry;
    return &entry->opcode;
}
