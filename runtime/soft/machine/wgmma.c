/*
 * Products that wait to be waited for, and where their factors lie in shared memory. Source: PTX
 * ISA 9.0, sections 9.7.15.5.1 (fragments, layouts, descriptors) and 9.7.15.6 to 9.7.15.8.
 */
#include "wgmma.h"

#include "tollens/cuda_abi.h"
#include "base/options.h"
#include "finding.h"
#include "frame.h"
#include "warp.h"

#include <stdlib.h>
#include <string.h>

/* A warp that never waits has its oldest products made when there are so many. */
enum { PRODUCTS_MAX = 128, GROUP_WARPS = 4, LOG = 256, ROWS = 16 };

/* What the warps of a warpgroup must have in common. */
struct logged {
    const struct soft_instruction *in;
    uint64_t a, b;
    bool accumulates;
};

struct soft_wgmma {
    struct soft_wgmma_op *first, **end, *free;
    uint32_t pending;
    uint64_t begun, committed;
    struct logged log[LOG]; /* the latest, by number */
    bool fenced;            /* there has been a fence */
    /* The registers written since the last fence, a bit each, of one frame. */
    const struct soft_frame *frame;
    uint32_t *dirty, words;
};

static const struct soft_instruction *fail_memory(struct soft_warp *warp,
                                                  const struct soft_instruction *in) {
    return soft_launch_fail(warp, in, CUDA_ERROR_OUT_OF_MEMORY, warp->mask, 0,
                            "out of host memory for a product of matrices");
}

static struct soft_wgmma *wgmma_of(struct soft_warp *warp) {
    if (warp->wgmma == NULL) {
        warp->wgmma = calloc(1, sizeof *warp->wgmma);
        if (warp->wgmma != NULL) warp->wgmma->end = &warp->wgmma->first;
    }
    return warp->wgmma;
}

/* ---- registers ---- */

/* A register is known by its slot; both are of one frame. */
static bool is_dirty(const struct soft_wgmma *own, const struct soft_frame *frame, uint32_t slot) {
    uint32_t at = slot / SOFT_SLOT_BYTES;
    if (own->frame != frame || at / 32 >= own->words) return false;
    return own->dirty[at / 32] >> (at % 32) & 1;
}

static void make_dirty(struct soft_wgmma *own, const struct soft_frame *frame, uint32_t slot) {
    uint32_t at = slot / SOFT_SLOT_BYTES;
    if (own->frame != frame) {
        own->frame = frame;
        if (own->words > 0) memset(own->dirty, 0, own->words * sizeof *own->dirty);
    }
    if (at / 32 >= own->words) {
        uint32_t words = at / 32 + 32;
        uint32_t *more = realloc(own->dirty, words * sizeof *more);
        if (more == NULL) return; /* one finding less */
        memset(more + own->words, 0, (words - own->words) * sizeof *more);
        own->dirty = more;
        own->words = words;
    }
    own->dirty[at / 32] |= 1u << (at % 32);
}

static bool is_among(const uint32_t *slots, unsigned count, uint32_t slot) {
    for (unsigned i = 0; i < count; i++) {
        if (slots[i] == slot) return true;
    }
    return false;
}

static unsigned a_count(const struct soft_wgmma_op *op) {
    return op->in->mode & SOFT_WGMMA_A_IN_REGISTERS ? 4 : 0;
}

/* The product in flight that has a register as its result, or (factors) as its A. */
static const struct soft_wgmma_op *user_of(const struct soft_warp *warp, uint32_t slot,
                                           bool factors) {
    const struct soft_wgmma_op *op = warp->wgmma != NULL ? warp->wgmma->first : NULL;
    for (; op != NULL; op = op->next) {
        if (op->frame != warp->split->frame) continue;
        if (is_among(op->d_slots, op->d_count, slot)) return op;
        if (factors && is_among(op->a_slots, a_count(op), slot)) return op;
    }
    return NULL;
}

const struct soft_instruction *soft_wgmma_use(struct soft_warp *warp,
                                              const struct soft_instruction *in) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    uint32_t read = more[SOFT_WGMMA_READ], all = read + more[SOFT_WGMMA_WRITTEN];
    struct soft_wgmma *own = wgmma_of(warp);
    if (own == NULL) return fail_memory(warp, in);
    for (uint32_t i = 0; i < all; i++) {
        uint32_t slot = more[SOFT_WGMMA_SLOTS + i];
        bool writes = i >= read;
        const struct soft_wgmma_op *op = user_of(warp, slot, writes);
        if (op != NULL && soft_options()->check_sync) {
            soft_launch_note(warp, in, "product not waited for", warp->mask, 0,
                             "warp %u %s a register of a wgmma.mma_async that it has not waited "
                             "for: wgmma.wait_group must come first",
                             warp->index, writes ? "writes" : "reads");
        }
        if (writes) make_dirty(own, warp->split->frame, slot);
    }
    return in + 1;
}

const struct soft_instruction *soft_wgmma_fence(struct soft_warp *warp,
                                                const struct soft_instruction *in) {
    struct soft_wgmma *own = wgmma_of(warp);
    if (own == NULL) return fail_memory(warp, in);
    own->fenced = true;
    if (own->words > 0) memset(own->dirty, 0, own->words * sizeof *own->dirty);
    return in + 1;
}

/* Registers written before the product begins must be fenced; those of a product of the same shape
 * need not be. */
static void check_registers(struct soft_warp *warp, const struct soft_wgmma_op *op) {
    const struct soft_wgmma *own = warp->wgmma;
    bool dirty = !own->fenced, other_shape = false;
    if (!soft_options()->check_sync) return;
    for (unsigned i = 0; i < op->d_count + a_count(op); i++) {
        bool is_d = i < op->d_count;
        uint32_t slot = is_d ? op->d_slots[i] : op->a_slots[i - op->d_count];
        dirty |= is_dirty(own, op->frame, slot) && (!is_d || op->accumulates);
        const struct soft_wgmma_op *user = user_of(warp, slot, false);
        other_shape |= user != NULL && (!is_d || user->n != op->n || user->d != op->d);
    }
    if (dirty) {
        soft_launch_note(warp, op->in, "missing wgmma.fence", warp->mask, 0,
                         own->fenced ? "warp %u has written registers of this product since its "
                                       "last wgmma.fence.sync.aligned"
                                     : "warp %u begins its first product without a "
                                       "wgmma.fence.sync.aligned before it",
                         warp->index);
    }
    if (other_shape) {
        soft_launch_note(warp, op->in, "product not waited for", warp->mask, 0,
                         "warp %u uses registers of an earlier wgmma.mma_async that it has not "
                         "waited for and whose shape is another one",
                         warp->index);
    }
}

/* ---- shared memory ---- */

/* A factor: rows (of A) or columns (of B) of k elements. */
struct matrix {
    uint32_t start, leading, stride, base, atom; /* atom: chunks side by side that are swizzled */
    bool k_major;
};

static struct matrix matrix_of(uint64_t descriptor, bool k_major) {
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
static uint32_t place_of(const struct matrix *m, uint32_t along, uint32_t across) {
    uint32_t row = along % 8 * m->atom * SOFT_WGMMA_CHUNK, block = along / 8, at = m->start + row;
    if (m->k_major) {
        at += block * m->stride + across * (m->atom == 1 ? m->leading : SOFT_WGMMA_CHUNK);
    } else if (m->atom == 1) {
        at += block * m->leading + across * m->stride;
    } else {
        at +=
            block * m->stride + across / m->atom * m->leading + across % m->atom * SOFT_WGMMA_CHUNK;
    }
    /* The number of the 128-byte row within the pattern is added, bit by bit, to the chunk's. */
    return at ^ (((at >> 7) - m->base) & (m->atom - 1)) << 4;
}

static uint32_t chunk_place(const struct matrix *m, uint32_t rows_from, uint32_t rows, uint32_t i) {
    if (m->k_major) return place_of(m, rows_from + i / 2, i % 2);
    uint32_t groups = rows / 8;
    return place_of(m, i / groups, rows_from / 8 + i % groups);
}

/* Reads a factor's chunks. changed: whether they are others than those that were there. false: one
 * is outside shared memory, and the launch has failed. */
static bool read_chunks(struct soft_warp *warp, const struct soft_wgmma_op *op,
                        const struct matrix *m, uint32_t rows_from, uint32_t rows, uint8_t *bytes,
                        bool first, bool *changed) {
    const struct soft_cta *cta = warp->cta;
    uint32_t count = rows * 2, unwritten = 0, unwritten_at = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = chunk_place(m, rows_from, rows, i);
        if (at > cta->shared_bytes || cta->shared_bytes - at < SOFT_WGMMA_CHUNK) {
            soft_launch_fail(
                warp, op->in, CUDA_ERROR_ILLEGAL_ADDRESS, warp->mask, at,
                "a factor's 16 bytes at offset 0x%x are outside the %u bytes of shared "
                "memory",
                at, cta->shared_bytes);
            return false;
        }
        if (first && cta->shared_shadow != NULL) {
            uint32_t marks;
            memcpy(&marks, cta->shared_shadow + at / 4, sizeof marks);
            if (marks == 0 && unwritten++ == 0) unwritten_at = at;
        }
        uint8_t *to = bytes + (size_t)i * SOFT_WGMMA_CHUNK;
        if (!first) *changed |= memcmp(to, cta->shared + at, SOFT_WGMMA_CHUNK) != 0;
        memcpy(to, cta->shared + at, SOFT_WGMMA_CHUNK);
    }
    if (unwritten > 0) {
        soft_launch_note(warp, op->in, "uninitialized read", warp->mask, unwritten_at,
                         "%u of %u pieces of 16 bytes of a factor, the first at offset 0x%x of "
                         "shared memory, were never written",
                         unwritten, count, unwritten_at);
    }
    return true;
}

static bool read_factors(struct soft_warp *warp, struct soft_wgmma_op *op, bool first,
                         bool *changed) {
    uint32_t mode = op->in->mode;
    struct matrix b = matrix_of(op->b_descriptor, (mode & SOFT_WGMMA_TRANSPOSE_B) == 0);
    struct matrix a = matrix_of(op->a_descriptor, (mode & SOFT_WGMMA_TRANSPOSE_A) == 0);
    uint32_t rows_from = warp->index % GROUP_WARPS * ROWS;
    return ((mode & SOFT_WGMMA_A_IN_REGISTERS) != 0 ||
            read_chunks(warp, op, &a, rows_from, ROWS, op->a_bytes, first, changed)) &&
           read_chunks(warp, op, &b, 0, op->n, op->b_bytes, first, changed);
}

/* ---- products ---- */

/* A report is about the instruction that began the product. */
struct standpoint {
    struct soft_split split, *current;
};

static void pretend(struct soft_warp *warp, const struct soft_wgmma_op *op,
                    struct standpoint *standpoint) {
    standpoint->split = (struct soft_split){.mask = UINT32_MAX, .frame = op->frame};
    standpoint->current = warp->split;
    warp->split = &standpoint->split;
}

/* Makes the oldest product. false: it cannot be, and the launch has failed. */
static bool finish_first(struct soft_warp *warp, soft_wgmma_multiply *multiply) {
    struct soft_wgmma *own = warp->wgmma;
    struct soft_wgmma_op *op = own->first;
    struct standpoint standpoint;
    bool changed = false;
    pretend(warp, op, &standpoint);
    bool ok = read_factors(warp, op, false, &changed);
    if (changed) {
        soft_launch_note(warp, op->in, "overwritten factor", UINT32_MAX, 0,
                         "shared memory that this product of warp %u reads was written before the "
                         "warp waited for it",
                         warp->index);
    }
    if (ok) multiply(op);
    warp->split = standpoint.current;
    soft_frame_release(warp, op->frame);
    own->first = op->next;
    if (own->first == NULL) own->end = &own->first;
    own->pending--;
    op->next = own->free;
    own->free = op;
    return ok;
}

static bool is_uniform(struct soft_warp *warp, const struct soft_instruction *in, uint32_t slot) {
    const uint64_t *lanes = SLOT(uint64_t, slot);
    for (int i = 1; i < SOFT_LANES; i++) {
        if (lanes[i] == lanes[0]) continue;
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << i, 0,
                         "lane %d has another descriptor than lane 0: 0x%llx and 0x%llx", i,
                         (unsigned long long)lanes[i], (unsigned long long)lanes[0]);
        return false;
    }
    return true;
}

/* Whether the other warps of the warpgroup have executed, or will, the same product. */
static bool log_product(struct soft_warp *warp, const struct soft_wgmma_op *op) {
    struct soft_wgmma *own = warp->wgmma;
    uint32_t group = warp->index / GROUP_WARPS * GROUP_WARPS;
    struct logged mine = {op->in, op->a_descriptor, op->b_descriptor, op->accumulates};
    if (group + GROUP_WARPS > warp->cta->warp_count) {
        soft_launch_fail(warp, op->in, CUDA_ERROR_ILLEGAL_INSTRUCTION, warp->mask, 0,
                         "warp %u is in no whole warpgroup: the block has %u warps", warp->index,
                         warp->cta->warp_count);
        return false;
    }
    for (uint32_t w = group; w < group + GROUP_WARPS; w++) {
        const struct soft_wgmma *other = warp->cta->warps[w].wgmma;
        if (other == NULL || other == own || other->begun <= own->begun ||
            other->begun - own->begun > LOG) {
            continue;
        }
        const struct logged *theirs = &other->log[own->begun % LOG];
        if (theirs->in == mine.in && theirs->a == mine.a && theirs->b == mine.b &&
            theirs->accumulates == mine.accumulates) {
            continue;
        }
        soft_launch_fail(warp, op->in, CUDA_ERROR_ILLEGAL_INSTRUCTION, warp->mask, 0,
                         "warp %u executes as its product %llu %s than warp %u of its warpgroup",
                         warp->index, (unsigned long long)own->begun,
                         theirs->in == mine.in ? "one with other descriptors or another scale-d"
                                               : "another instruction",
                         w);
        return false;
    }
    own->log[own->begun++ % LOG] = mine;
    return true;
}

static struct soft_wgmma_op *new_op(struct soft_warp *warp, const struct soft_instruction *in) {
    struct soft_wgmma *own = wgmma_of(warp);
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    if (own == NULL) return NULL;
    struct soft_wgmma_op *op = own->free;
    if (op != NULL) {
        own->free = op->next;
    } else {
        op = malloc(sizeof *op);
    }
    if (op == NULL) return NULL;
    op->next = NULL;
    op->in = in;
    op->frame = warp->split->frame;
    op->group = own->committed;
    op->n = more[SOFT_WGMMA_SHAPE] & 0xffff;
    op->k = more[SOFT_WGMMA_SHAPE] >> 16;
    op->d = (enum soft_tensor_type)(more[SOFT_WGMMA_TYPES] & 255);
    op->a = (enum soft_tensor_type)(more[SOFT_WGMMA_TYPES] >> 8 & 255);
    op->b = (enum soft_tensor_type)(more[SOFT_WGMMA_TYPES] >> 16 & 255);
    op->d_count = more[SOFT_WGMMA_COUNT];
    op->d_slots = more + SOFT_WGMMA_WORDS;
    op->a_slots = op->d_slots + op->d_count;
    op->a_descriptor = 0;
    op->b_descriptor = SLOT(uint64_t, in->b)[0];
    if ((in->mode & SOFT_WGMMA_A_IN_REGISTERS) != 0) {
        for (int i = 0; i < 4; i++) {
            memcpy(op->a_registers[i], SLOT(uint32_t, op->a_slots[i]), sizeof op->a_registers[i]);
        }
    } else {
        op->a_descriptor = SLOT(uint64_t, in->a)[0];
    }
    uint32_t scale = *SLOT(uint32_t, in->c);
    op->accumulates = ((scale & 1) != 0) != ((in->mode & SOFT_WGMMA_NOT_SCALED) != 0);
    return op;
}

const struct soft_instruction *soft_wgmma_start(struct soft_warp *warp,
                                                const struct soft_instruction *in,
                                                soft_wgmma_multiply *multiply) {
    struct soft_wgmma_op *op = new_op(warp, in);
    bool changed = false;
    if (op == NULL) return fail_memory(warp, in);
    struct soft_wgmma *own = warp->wgmma;
    bool in_registers = (in->mode & SOFT_WGMMA_A_IN_REGISTERS) != 0;
    if ((!in_registers && !is_uniform(warp, in, in->a)) || !is_uniform(warp, in, in->b) ||
        !log_product(warp, op) || !read_factors(warp, op, true, &changed)) {
        free(op);
        return NULL;
    }
    check_registers(warp, op);
    op->frame->users++;
    *own->end = op;
    own->end = &op->next;
    if (++own->pending > PRODUCTS_MAX && !finish_first(warp, multiply)) return NULL;
    return in + 1;
}

const struct soft_instruction *soft_wgmma_commit(struct soft_warp *warp,
                                                 const struct soft_instruction *in) {
    struct soft_wgmma *own = wgmma_of(warp);
    if (own == NULL) return fail_memory(warp, in);
    own->committed++;
    return in + 1;
}

const struct soft_instruction *soft_wgmma_wait(struct soft_warp *warp,
                                               const struct soft_instruction *in,
                                               soft_wgmma_multiply *multiply) {
    struct soft_wgmma *own = warp->wgmma;
    while (own != NULL && own->first != NULL && own->first->group + in->mode < own->committed) {
        if (!finish_first(warp, multiply)) return NULL;
    }
    return in + 1;
}

/* ---- the life of a warp ---- */

static void report_uneven(struct soft_warp *warp) {
    uint32_t group = warp->index / GROUP_WARPS * GROUP_WARPS;
    const struct soft_wgmma *own = warp->wgmma;
    for (uint32_t w = group; w < group + GROUP_WARPS && w < warp->cta->warp_count; w++) {
        struct soft_warp *other = &warp->cta->warps[w];
        uint64_t mine = own != NULL ? own->begun : 0;
        uint64_t theirs = other->wgmma != NULL ? other->wgmma->begun : 0;
        if (other->alive != 0 || mine == theirs) continue;
        struct soft_warp *more = mine > theirs ? warp : other;
        uint64_t least = mine > theirs ? theirs : mine, most = mine > theirs ? mine : theirs;
        const struct soft_instruction *in = more->wgmma->log[least % LOG].in;
        soft_launch_fail(
            more, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, UINT32_MAX, 0,
            "warp %u has executed %llu products and warp %u of its warpgroup %llu: all "
            "four must execute the same",
            more->index, (unsigned long long)most, mine > theirs ? w : warp->index,
            (unsigned long long)least);
        return;
    }
}

void soft_wgmma_end(struct soft_warp *warp) {
    struct soft_wgmma *own = warp->wgmma;
    struct standpoint standpoint;
    if (own != NULL && own->first != NULL) {
        pretend(warp, own->first, &standpoint);
        soft_launch_note(warp, own->first->in, "product not waited for", UINT32_MAX, 0,
                         "warp %u exits before it has waited for %u products; they are not made",
                         warp->index, own->pending);
        warp->split = standpoint.current;
    }
    report_uneven(warp);
}

void soft_wgmma_begin(struct soft_warp *warp) {
    struct soft_wgmma *own = warp->wgmma;
    if (own == NULL) return;
    while (own->first != NULL) {
        struct soft_wgmma_op *op = own->first;
        own->first = op->next;
        op->next = own->free;
        own->free = op;
    }
    own->end = &own->first;
    own->pending = 0;
    own->begun = own->committed = 0;
    own->fenced = false;
    own->frame = NULL;
    if (own->words > 0) memset(own->dirty, 0, own->words * sizeof *own->dirty);
}

void soft_wgmma_drop(struct soft_warp *warp) {
    struct soft_wgmma *own = warp->wgmma;
    if (own == NULL) return;
    soft_wgmma_begin(warp);
    while (own->free != NULL) {
        struct soft_wgmma_op *op = own->free;
        own->free = op->next;
        free(op);
    }
    free(own->dirty);
    free(own);
    warp->wgmma = NULL;
}
