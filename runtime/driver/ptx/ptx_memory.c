/*
 * Instructions of the PTX builder that reach memory or other threads. PTX ISA 9.0, sections 9.7.9,
 * 9.7.13 and 9.7.14.
 */
#include "ptx_state.h"

#include <string.h>

enum { VECTOR_BYTES_MAX = 16, LANES = 32 };
static const char *const spaces[] = {"global", "shared"};

/* Whether values can be at an address; type: of each. */
static bool ptx_memory_check_place(struct tol_ptx *ptx, struct tol_ptx_place at, const char *what,
                                   tol_ptx_space space, tol_ptx_type type, unsigned count,
                                   tol_ptx_value address, int32_t offset) {
    if ((unsigned)space >= TOL_PTX_SPACE_COUNT) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "%s: there is no such space", what);
        return false;
    }
    if ((unsigned)type >= TOL_PTX_TYPE_COUNT || tol_ptx_bytes(type) == 0) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "%s: a .%s is not kept in memory", what,
                        tol_ptx_type_name(type));
        return false;
    }
    unsigned bytes = tol_ptx_bytes(type) * count;
    if ((count != 1 && count != 2 && count != 4) || bytes > VECTOR_BYTES_MAX) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "%s: there are no vectors of %u .%s", what,
                        count, tol_ptx_type_name(type));
        return false;
    }
    if (offset % (int32_t)bytes != 0) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT,
                        "%s: the offset %d is not a multiple of the %u bytes accessed", what,
                        offset, bytes);
        return false;
    }
    tol_ptx_type wide = space == TOL_PTX_GLOBAL ? TOL_PTX_U64 : TOL_PTX_U32;
    return tol_ptx_use_type(ptx, at, what, "the address", address, wide);
}

/* "%r1", or "{%r1, %r2}" */
static void ptx_memory_put_vector(struct tol_ptx *ptx, unsigned count,
                                  const tol_ptx_value values[]) {
    FILE *file = ptx->body.file;
    for (unsigned i = 0; i < count; i++) {
        fprintf(file, "%s%s", i > 0 ? ", " : count > 1 ? "{" : "", TOL_PTX_WORD(ptx, values[i]));
    }
    if (count > 1) fputc('}', file);
}

static void ptx_memory_put_place(struct tol_ptx *ptx, tol_ptx_value address, int32_t offset) {
    fprintf(ptx->body.file, "[%s", TOL_PTX_WORD(ptx, address));
    if (offset != 0) fprintf(ptx->body.file, "%+d", offset);
    fputc(']', ptx->body.file);
}

/* "ld.global.v4.b32 " */
static void put_word(struct tol_ptx *ptx, const char *word, tol_ptx_space space, tol_ptx_type type,
                     unsigned count) {
    static const char *const vectors[] = {"", "", ".v2", "", ".v4"};
    fprintf(ptx->body.file, "\t%s.%s%s.%s ", word, spaces[space], vectors[count],
            tol_ptx_bits_name(tol_ptx_bytes(type)));
}

void tol_ptx_load_vector_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_space space,
                            tol_ptx_type type, unsigned count, tol_ptx_value address,
                            int32_t offset, tol_ptx_value values[]) {
    for (unsigned i = 0; i < count && i < 4; i++) values[i] = tol_ptx_none();
    if (!tol_ptx_may(ptx, at, "load") ||
        !ptx_memory_check_place(ptx, at, "load", space, type, count, address, offset)) {
        return;
    }
    for (unsigned i = 0; i < count; i++) values[i] = tol_ptx_new(ptx, type);
    if (ptx->mistake != TOL_OK) return;
    put_word(ptx, "ld", space, type, count);
    ptx_memory_put_vector(ptx, count, values);
    fputs(", ", ptx->body.file);
    ptx_memory_put_place(ptx, address, offset);
    fputs(";\n", ptx->body.file);
    ptx->has_body = true;
}

void tol_ptx_store_vector_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_space space,
                             unsigned count, tol_ptx_value address, int32_t offset,
                             const tol_ptx_value values[]) {
    if (!tol_ptx_may(ptx, at, "store")) return;
    const struct tol_ptx_entry *first = tol_ptx_use(ptx, at, "store", "the value", values[0]);
    if (first == NULL) return;
    tol_ptx_type type = first->type;
    if (!ptx_memory_check_place(ptx, at, "store", space, type, count, address, offset)) return;
    for (unsigned i = 1; i < count; i++) {
        if (!tol_ptx_use_type(ptx, at, "store", "a value", values[i], type)) return;
    }
    put_word(ptx, "st", space, type, count);
    ptx_memory_put_place(ptx, address, offset);
    fputs(", ", ptx->body.file);
    ptx_memory_put_vector(ptx, count, values);
    fputs(";\n", ptx->body.file);
    ptx->has_body = true;
}

tol_ptx_value tol_ptx_load_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_space space,
                              tol_ptx_type type, tol_ptx_value address, int32_t offset) {
    tol_ptx_value value = tol_ptx_none();
    tol_ptx_load_vector_at(ptx, at, space, type, 1, address, offset, &value);
    return value;
}

void tol_ptx_store_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_space space,
                      tol_ptx_value address, int32_t offset, tol_ptx_value value) {
    tol_ptx_store_vector_at(ptx, at, space, 1, address, offset, &value);
}

void tol_ptx_add_to_memory_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_space space,
                              tol_ptx_value address, int32_t offset, tol_ptx_value value) {
    if (!tol_ptx_may(ptx, at, "add_to_memory")) return;
    const struct tol_ptx_entry *entry = tol_ptx_use(ptx, at, "add_to_memory", "the value", value);
    if (entry == NULL) return;
    tol_ptx_type type = entry->type;
    if (type != TOL_PTX_U32 && type != TOL_PTX_S32 && type != TOL_PTX_U64 && type != TOL_PTX_F32) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "add_to_memory: there is no form for .%s",
                        tol_ptx_type_name(type));
        return;
    }
    if (!ptx_memory_check_place(ptx, at, "add_to_memory", space, type, 1, address, offset)) return;
    fprintf(ptx->body.file, "\tred.%s.add.%s ", spaces[space], tol_ptx_type_name(type));
    ptx_memory_put_place(ptx, address, offset);
    fprintf(ptx->body.file, ", %s;\n", TOL_PTX_WORD(ptx, value));
    ptx->has_body = true;
}

void tol_ptx_barrier_at(struct tol_ptx *ptx, struct tol_ptx_place at) {
    if (tol_ptx_may(ptx, at, "barrier")) tol_ptx_line(ptx, "bar.sync 0");
}

tol_ptx_value tol_ptx_shuffle_xor_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                     tol_ptx_value value, unsigned lanes) {
    if (!tol_ptx_may(ptx, at, "shuffle_xor")) return tol_ptx_none();
    const struct tol_ptx_entry *entry = tol_ptx_use(ptx, at, "shuffle_xor", "the value", value);
    if (entry == NULL) return tol_ptx_none();
    tol_ptx_type type = entry->type;
    if (tol_ptx_bytes(type) != 4 || lanes == 0 || lanes >= LANES) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT,
                        "shuffle_xor: there is no form for .%s with %u, which must be 1 to 31",
                        tol_ptx_type_name(type), lanes);
        return tol_ptx_none();
    }
    tol_ptx_value d = tol_ptx_new(ptx, type);
    if (ptx->mistake != TOL_OK) return tol_ptx_none();
    tol_ptx_line(ptx, "shfl.sync.bfly.b32 %s, %s, %u, 31, 4294967295", TOL_PTX_WORD(ptx, d),
                 TOL_PTX_WORD(ptx, value), lanes);
    return d;
}

void tol_ptx_mma_at(struct tol_ptx *ptx, struct tol_ptx_place at, const tol_ptx_value a[4],
                    const tol_ptx_value b[2], const tol_ptx_value c[4], tol_ptx_value d[4]) {
    tol_ptx_value sums[4] = {{0, 0}};
    const tol_ptx_type type = tol_ptx_type_of(ptx, a[0]);
    bool may =
        tol_ptx_may(ptx, at, "mma") && tol_ptx_has(ptx, at, "mma.sync.aligned.m16n8k16", 80, 70);
    if (may && type != TOL_PTX_F16X2 && type != TOL_PTX_BF16X2) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "mma: there is no form for .%s",
                        tol_ptx_type_name(type));
        may = false;
    }
    for (int i = 0; may && i < 4; i++) {
        may = tol_ptx_use_type(ptx, at, "mma", "a register of a", a[i], type) &&
              tol_ptx_use_type(ptx, at, "mma", "a register of b", b[i % 2], type) &&
              tol_ptx_use_type(ptx, at, "mma", "a register of c", c[i], TOL_PTX_F32);
    }
    for (int i = 0; may && i < 4; i++) sums[i] = tol_ptx_new(ptx, TOL_PTX_F32);
    if (may && ptx->mistake == TOL_OK) {
        const char *name = type == TOL_PTX_F16X2 ? "f16" : "bf16";
        fprintf(ptx->body.file, "\tmma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 ", name, name);
        ptx_memory_put_vector(ptx, 4, sums);
        fputs(", ", ptx->body.file);
        ptx_memory_put_vector(ptx, 4, a);
        fputs(", ", ptx->body.file);
        ptx_memory_put_vector(ptx, 2, b);
        fputs(", ", ptx->body.file);
        ptx_memory_put_vector(ptx, 4, c);
        fputs(";\n", ptx->body.file);
        ptx->has_body = true;
    }
    memcpy(d, sums, sizeof sums); /* d may be c */
}
