/*
 * Where the factors of a product are in shared memory, and which of their mistakes are reported.
 * Source: PTX ISA 9.0, section 9.7.15.5.1 (layouts, descriptors).
 */
#include "wgmma_factor.h"

#include "tollens/cuda_abi.h"
#include "base/options.h"
#include "machine/finding.h"
#include "machine/shared_layout.h"

#include <string.h>

/* A factor: rows (of A) or columns (of B) of k elements. */
struct matrix {
    uint32_t start, leading, stride, base, atom; /* atom: adjacent chunks that are swizzled */
    bool k_major;
};

static struct matrix wgmma_factor_matrix_of(uint64_t descriptor, bool k_major) {
    static const uint8_t atoms[] = {1, 8, 4, 2};
    return (struct matrix){.start = (uint32_t)(descriptor & 0x3fff) << 4,
                           .leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                           .stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4,
                           .base = (uint32_t)(descriptor >> 49 & 7),
                           .atom = atoms[descriptor >> 62],
                           .k_major = k_major};
}

/* The place of a chunk. K-major: along is the row, across the chunk of its 32 bytes. Else: along is
 * k, and across the chunk of eight rows. In units of chunks, the layouts are the manual's
 * (PTX ISA 9.0, section 9.7.15.5.1.2, strides):
 *
 *     K-major, no swizzle   ((8, rows / 8), 2)      : ((1, stride), leading)
 *     K-major, atom x       ((8, rows / 8), 2)      : ((x, stride), 1)
 *     MN-major, no swizzle  (rows / 8, (8, k / 8))  : (stride, (1, leading))
 *     MN-major, atom x      ((x, n), (8, k / 8))    : ((1, leading), (x, stride))
 */
static uint32_t wgmma_factor_place_of(const struct matrix *m, uint32_t along, uint32_t across) {
    uint32_t row = along % 8 * m->atom * SOFT_WGMMA_CHUNK, block = along / 8, at = m->start + row;
    if (m->k_major) {
        at += block * m->stride + across * (m->atom == 1 ? m->leading : SOFT_WGMMA_CHUNK);
    } else if (m->atom == 1) {
        at += block * m->leading + across * m->stride;
    } else {
        at +=
            block * m->stride + across / m->atom * m->leading + across % m->atom * SOFT_WGMMA_CHUNK;
    }
    /* The chunk's number is XORed with the number of the 128-byte row within the pattern. */
    return at ^ (((at >> 7) - m->base) & (m->atom - 1)) << 4;
}

static uint32_t chunk_place(const struct matrix *m, uint32_t rows_from, uint32_t rows, uint32_t i) {
    if (m->k_major) return wgmma_factor_place_of(m, rows_from + i / 2, i % 2);
    uint32_t groups = rows / 8;
    return wgmma_factor_place_of(m, i / groups, rows_from / 8 + i % groups);
}

static struct matrix a_of(const struct soft_wgmma_op *op) {
    return wgmma_factor_matrix_of(op->a_descriptor, (op->in->mode & SOFT_WGMMA_TRANSPOSE_A) == 0);
}

static struct matrix b_of(const struct soft_wgmma_op *op) {
    return wgmma_factor_matrix_of(op->b_descriptor, (op->in->mode & SOFT_WGMMA_TRANSPOSE_B) == 0);
}

static uint32_t wgmma_factor_rows_from(const struct soft_warp *warp) {
    return warp->index % SOFT_WGMMA_WARPS * SOFT_WGMMA_ROWS;
}

/* What is checked of a factor's chunks when a product is issued. */
struct told {
    uint32_t unwritten, unwritten_at;
    uint32_t swizzled; /* chunks that boxes wrote with another swizzle, which is: */
    unsigned swizzle;
    bool any; /* one of those is not zero: zeros are the same in any order */
};

static void wgmma_factor_look_at(const struct soft_cta *cta, const struct matrix *m, uint32_t at,
                                 struct told *told) {
    static const uint8_t zeros[SOFT_WGMMA_CHUNK];
    if (cta->shared_shadow != NULL) {
        uint32_t marks;
        memcpy(&marks, cta->shared_shadow + at / 4, sizeof marks);
        if (marks == 0 && told->unwritten++ == 0) told->unwritten_at = at;
    }
    unsigned swizzle = soft_layout_at(cta, at);
    if (swizzle == 0 || swizzle == m->atom) return;
    told->swizzled++;
    told->swizzle = swizzle;
    told->any |= memcmp(cta->shared + at, zeros, sizeof zeros) != 0;
}

static const char *wgmma_factor_name_of(unsigned swizzle) {
    static const char *const names[] = {"0", "0", "32", "", "64", "", "", "", "128"};
    return names[swizzle];
}

static void wgmma_factor_tell(struct soft_warp *warp, const struct soft_wgmma_op *op,
                              const struct matrix *m, uint32_t count, const struct told *told) {
    if (told->unwritten > 0) {
        soft_launch_note(warp, op->in, "uninitialized read", warp->mask, told->unwritten_at,
                         "%u of %u pieces of 16 bytes of a factor, the first at offset 0x%x of "
                         "shared memory, were never written",
                         told->unwritten, count, told->unwritten_at);
    }
    if (told->swizzled < count || !told->any) return;
    /* Without a swizzle of the map, global memory may hold the elements in the factor's order. */
    struct soft_finding finding = {.kind = "other swizzle",
                                   .lanes = warp->mask,
                                   .address = m->start,
                                   .minor = told->swizzle == 1};
    soft_launch_find(warp, op->in, &finding,
                     "the factor at offset 0x%x of shared memory came by a tensor map with a "
                     "swizzle of %s bytes, and its descriptor has one of %s",
                     m->start, wgmma_factor_name_of(told->swizzle), wgmma_factor_name_of(m->atom));
}

static bool read_chunks(struct soft_warp *warp, const struct soft_wgmma_op *op,
                        const struct matrix *m, uint32_t from, uint32_t rows, uint8_t *bytes,
                        bool first, bool *changed) {
    const struct soft_cta *cta = warp->cta;
    uint32_t count = rows * 2;
    struct told told = {0};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = chunk_place(m, from, rows, i);
        if (at > cta->shared_bytes || cta->shared_bytes - at < SOFT_WGMMA_CHUNK) {
            soft_launch_fail(
                warp, op->in, CUDA_ERROR_ILLEGAL_ADDRESS, warp->mask, at,
                "a factor's 16 bytes at offset 0x%x are outside the %u bytes of shared "
                "memory",
                at, cta->shared_bytes);
            return false;
        }
        if (first) wgmma_factor_look_at(cta, m, at, &told);
        uint8_t *to = bytes + (size_t)i * SOFT_WGMMA_CHUNK;
        if (!first) *changed |= memcmp(to, cta->shared + at, SOFT_WGMMA_CHUNK) != 0;
        memcpy(to, cta->shared + at, SOFT_WGMMA_CHUNK);
    }
    wgmma_factor_tell(warp, op, m, count, &told);
    return true;
}

bool soft_wgmma_read_a(struct soft_warp *warp, struct soft_wgmma_op *op, bool first,
                       bool *changed) {
    if ((op->in->mode & SOFT_WGMMA_A_IN_REGISTERS) != 0) return true;
    struct matrix a = a_of(op);
    return read_chunks(warp, op, &a, wgmma_factor_rows_from(warp), SOFT_WGMMA_ROWS, op->a_bytes,
                       first, changed);
}

bool soft_wgmma_read_b(struct soft_warp *warp, struct soft_wgmma_op *op, bool first,
                       bool *changed) {
    struct matrix b = b_of(op);
    return read_chunks(warp, op, &b, 0, op->n, op->product->b_bytes, first, changed);
}

uint32_t soft_wgmma_part(const struct soft_warp *warp, const struct soft_wgmma_op *op,
                         uint32_t offsets[SOFT_WGMMA_PART]) {
    struct matrix a = a_of(op), b = b_of(op);
    uint32_t count = 0, which = warp->index % SOFT_WGMMA_WARPS, of_b = op->n * 2;
    bool in_registers = (op->in->mode & SOFT_WGMMA_A_IN_REGISTERS) != 0;
    for (uint32_t i = 0; i < SOFT_WGMMA_A_CHUNKS && !in_registers; i++) {
        offsets[count++] = chunk_place(&a, wgmma_factor_rows_from(warp), SOFT_WGMMA_ROWS, i);
    }
    for (uint32_t i = of_b / 4 * which; i < of_b / 4 * (which + 1); i++) {
        offsets[count++] = chunk_place(&b, 0, op->n, i);
    }
    return count;
}
