/*
 * Values of the PTX builder: their types, where they may be used, and how they are written.
 *
 * Blocks are nested, and the values of a block are gone when it is closed. So the code of an open
 * block was executed before, and no value can be read that was not written.
 */
#include "ptx_state.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned bytes;
    bool is_float, is_whole, is_signed;
} types[] = {
    [TOL_PTX_PRED] = {"pred", 0, false, false, false},
    [TOL_PTX_B16] = {"b16", 2, false, false, false},
    [TOL_PTX_U16] = {"u16", 2, false, true, false},
    [TOL_PTX_S16] = {"s16", 2, false, true, true},
    [TOL_PTX_F16] = {"f16", 2, true, false, true},
    [TOL_PTX_BF16] = {"bf16", 2, true, false, true},
    [TOL_PTX_B32] = {"b32", 4, false, false, false},
    [TOL_PTX_U32] = {"u32", 4, false, true, false},
    [TOL_PTX_S32] = {"s32", 4, false, true, true},
    [TOL_PTX_F32] = {"f32", 4, true, false, true},
    [TOL_PTX_F16X2] = {"f16x2", 4, false, false, false},
    [TOL_PTX_BF16X2] = {"bf16x2", 4, false, false, false},
    [TOL_PTX_B64] = {"b64", 8, false, false, false},
    [TOL_PTX_U64] = {"u64", 8, false, true, false},
    [TOL_PTX_S64] = {"s64", 8, false, true, true},
    [TOL_PTX_F64] = {"f64", 8, true, false, true},
};
_Static_assert(sizeof types / sizeof types[0] == TOL_PTX_TYPE_COUNT, "a row for each type");

unsigned tol_ptx_bytes(tol_ptx_type type) {
    return types[type].bytes;
}

enum tol_ptx_class tol_ptx_class_of(tol_ptx_type type) {
    unsigned bytes = types[type].bytes;
    return bytes == 0   ? TOL_PTX_CLASS_PRED
           : bytes == 2 ? TOL_PTX_CLASS_16
           : bytes == 4 ? TOL_PTX_CLASS_32
                        : TOL_PTX_CLASS_64;
}

const char *tol_ptx_type_name(tol_ptx_type type) {
    return (unsigned)type < TOL_PTX_TYPE_COUNT ? types[type].name : "no type";
}

const char *tol_ptx_bits_name(unsigned bytes) {
    return bytes == 2 ? "b16" : bytes == 4 ? "b32" : bytes == 8 ? "b64" : "pred";
}

bool tol_ptx_is_float(tol_ptx_type type) {
    return types[type].is_float;
}

bool tol_ptx_is_whole(tol_ptx_type type) {
    return types[type].is_whole;
}

bool tol_ptx_is_signed(tol_ptx_type type) {
    return types[type].is_signed;
}

/* ---- mistakes ---- */

void tol_ptx_mistake(struct tol_ptx *ptx, struct tol_ptx_place at, tol_status status,
                     const char *format, ...) {
    if (ptx == NULL || ptx->mistake != TOL_OK) return;
    int length = snprintf(ptx->why, sizeof ptx->why, "%s:%d: ", at.file, at.line);
    if (length < 0 || (size_t)length >= sizeof ptx->why) length = 0;
    va_list rest;
    va_start(rest, format);
    vsnprintf(ptx->why + length, sizeof ptx->why - (size_t)length, format, rest);
    va_end(rest);
    ptx->mistake = status;
}

bool tol_ptx_may(struct tol_ptx *ptx, struct tol_ptx_place at, const char *what) {
    if (ptx == NULL || ptx->mistake != TOL_OK) return false;
    if (ptx->finished) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "%s: the module is finished", what);
    } else if (ptx->depth == 0) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "%s: no kernel is open", what);
    }
    return ptx->mistake == TOL_OK;
}

bool tol_ptx_has(struct tol_ptx *ptx, struct tol_ptx_place at, const char *what, int capability,
                 int version) {
    if (capability > ptx->capability) {
        tol_ptx_mistake(ptx, at, TOL_UNSUPPORTED,
                        "%s: it needs compute capability %d.%d, and the module is for %d.%d", what,
                        capability / 10, capability % 10, ptx->capability / 10,
                        ptx->capability % 10);
        return false;
    }
    if (capability > ptx->needs) ptx->needs = capability;
    if (version > ptx->version) ptx->version = version;
    return true;
}

/* ---- values ---- */

static const struct tol_ptx_entry *ptx_value_entry_of(const struct tol_ptx *ptx,
                                                      tol_ptx_value value) {
    bool own = ptx != NULL && value.builder == ptx->serial;
    return own && value.id != 0 && value.id < ptx->entry_count ? &ptx->entries[value.id] : NULL;
}

tol_ptx_type tol_ptx_type_of(const struct tol_ptx *ptx, tol_ptx_value value) {
    const struct tol_ptx_entry *entry = ptx_value_entry_of(ptx, value);
    return entry != NULL ? entry->type : TOL_PTX_TYPE_COUNT;
}

static bool ptx_value_is_open(const struct tol_ptx *ptx, uint32_t block) {
    for (unsigned i = 0; i < ptx->depth; i++) {
        if (ptx->blocks[i].number == block) return true;
    }
    return false;
}

const struct tol_ptx_entry *tol_ptx_use(struct tol_ptx *ptx, struct tol_ptx_place at,
                                        const char *what, const char *which, tol_ptx_value value) {
    const struct tol_ptx_entry *entry = ptx_value_entry_of(ptx, value);
    if (entry == NULL) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "%s: %s is not a value of this builder",
                        what, which);
    } else if (!entry->constant && !ptx_value_is_open(ptx, entry->block)) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "%s: %s was made in a block that is closed",
                        what, which);
        return NULL;
    }
    return entry;
}

bool tol_ptx_use_type(struct tol_ptx *ptx, struct tol_ptx_place at, const char *what,
                      const char *which, tol_ptx_value value, tol_ptx_type type) {
    const struct tol_ptx_entry *entry = tol_ptx_use(ptx, at, what, which, value);
    if (entry == NULL || entry->type == type) return entry != NULL;
    tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "%s: %s is a .%s and must be a .%s", what, which,
                    tol_ptx_type_name(entry->type), tol_ptx_type_name(type));
    return false;
}

static tol_ptx_value add_entry(struct tol_ptx *ptx, struct tol_ptx_entry entry) {
    if (ptx == NULL || ptx->mistake != TOL_OK) return tol_ptx_none();
    if (ptx->entry_count == ptx->entry_room) {
        size_t room = 2 * ptx->entry_room + 64;
        struct tol_ptx_entry *more = realloc(ptx->entries, room * sizeof *more);
        if (more == NULL) {
            tol_ptx_mistake(ptx, TOL_PTX_HERE, TOL_OUT_OF_HOST_MEMORY,
                            "no host memory for %zu values", room);
            return tol_ptx_none();
        }
        ptx->entries = more;
        ptx->entry_room = room;
    }
    if (ptx->entry_count == 0) memset(&ptx->entries[ptx->entry_count++], 0, sizeof *ptx->entries);
    ptx->entries[ptx->entry_count] = entry;
    return (tol_ptx_value){(uint32_t)ptx->entry_count++, ptx->serial};
}

tol_ptx_value tol_ptx_new(struct tol_ptx *ptx, tol_ptx_type type) {
    return add_entry(ptx, (struct tol_ptx_entry){.type = type,
                                                 .block = ptx->blocks[ptx->depth - 1].number,
                                                 .bits = ++ptx->registers[tol_ptx_class_of(type)]});
}

static tol_ptx_value ptx_value_constant(struct tol_ptx *ptx, tol_ptx_type type, uint64_t bits) {
    return add_entry(ptx, (struct tol_ptx_entry){.type = type, .constant = true, .bits = bits});
}

tol_ptx_value tol_ptx_u32(struct tol_ptx *ptx, uint32_t number) {
    return ptx_value_constant(ptx, TOL_PTX_U32, number);
}

tol_ptx_value tol_ptx_s32(struct tol_ptx *ptx, int32_t number) {
    return ptx_value_constant(ptx, TOL_PTX_S32, (uint64_t)(int64_t)number);
}

tol_ptx_value tol_ptx_u64(struct tol_ptx *ptx, uint64_t number) {
    return ptx_value_constant(ptx, TOL_PTX_U64, number);
}

tol_ptx_value tol_ptx_f32(struct tol_ptx *ptx, float number) {
    uint32_t bits = 0;
    memcpy(&bits, &number, sizeof bits);
    return ptx_value_constant(ptx, TOL_PTX_F32, bits);
}

tol_ptx_value tol_ptx_f64(struct tol_ptx *ptx, double number) {
    uint64_t bits = 0;
    memcpy(&bits, &number, sizeof bits);
    return ptx_value_constant(ptx, TOL_PTX_F64, bits);
}

struct tol_ptx_word tol_ptx_word_of(const struct tol_ptx *ptx, tol_ptx_value value) {
    static const char *const letters[] = {"p", "h", "r", "d"};
    struct tol_ptx_word word;
    const struct tol_ptx_entry *entry = &ptx->entries[value.id];
    unsigned long long bits = entry->bits;
    if (!entry->constant) {
        snprintf(word.text, sizeof word.text, "%%%s%llu", letters[tol_ptx_class_of(entry->type)],
                 bits);
    } else if (entry->type == TOL_PTX_F32) {
        snprintf(word.text, sizeof word.text, "0f%08llX", bits);
    } else if (entry->type == TOL_PTX_F64) {
        snprintf(word.text, sizeof word.text, "0d%016llX", bits);
    } else if (tol_ptx_is_signed(entry->type)) {
        snprintf(word.text, sizeof word.text, "%lld", (long long)bits);
    } else {
        snprintf(word.text, sizeof word.text, "%llu", bits);
    }
    return word;
}
