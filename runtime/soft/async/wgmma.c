/*
 * Pending products. Source: PTX ISA 9.0, sections 9.7.15.5 to 9.7.15.8.
 */
#include "wgmma.h"

#include "tollens/cuda_abi.h"
#include "base/options.h"
#include "machine/finding.h"
#include "machine/frame.h"
#include "machine/race_events.h"
#include "machine/warp.h"
#include "wgmma_factor.h"

#include <stdlib.h>
#include <string.h>

/* Once a warp that never waits has this many pending products, the oldest are computed. */
enum { PRODUCTS_MAX = 128, ALL = (1 << SOFT_WGMMA_WARPS) - 1 };

struct soft_wgmma {
    struct soft_wgmma_op *first, **end, *free;
    uint32_t pending;
    uint64_t begun, committed;
    bool fenced; /* there has been a fence */
    /* The registers of one frame written since the last fence, one bit each. */
    const struct soft_frame *frame;
    uint32_t *dirty, words;
    /* In the first warp of a warpgroup: the products that not all warps have computed. */
    struct soft_wgmma_group group;
};

static const struct soft_instruction *fail_memory(struct soft_warp *warp,
                                                  const struct soft_instruction *in) {
    return soft_launch_fail(warp, in, CUDA_ERROR_OUT_OF_MEMORY, warp->mask, 0,
                            "out of host memory for a product of matrices");
}

static struct soft_wgmma *wgmma_of(struct soft_warp *warp) {
    if (warp->wgmma == NULL) {
        warp->wgmma = calloc(1, sizeof *warp->wgmma);
        if (warp->wgmma != NULL) {
            warp->wgmma->end = &warp->wgmma->first;
            warp->wgmma->group.end = &warp->wgmma->group.first;
        }
    }
    return warp->wgmma;
}

/* ---- registers ---- */

/* A register is identified by its slot; both are in one frame. */
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

static bool wgmma_is_among(const uint32_t *slots, unsigned count, uint32_t slot) {
    for (unsigned i = 0; i < count; i++) {
        if (slots[i] == slot) return true;
    }
    return false;
}

static unsigned a_count(const struct soft_wgmma_op *op) {
    return op->in->mode & SOFT_WGMMA_A_IN_REGISTERS ? 4 : 0;
}

/* The pending product with a register in its result or (factors) in its A. likely: a guess of the
 * register's index in the result. */
static const struct soft_wgmma_op *user_of(const struct soft_warp *warp, uint32_t slot,
                                           uint32_t likely, bool factors) {
    const struct soft_wgmma_op *op = warp->wgmma != NULL ? warp->wgmma->first : NULL;
    for (; op != NULL; op = op->next) {
        if (op->frame != warp->split->frame) continue;
        if (likely < op->d_count && op->d_slots[likely] == slot) return op;
        if (wgmma_is_among(op->d_slots, op->d_count, slot)) return op;
        if (factors && wgmma_is_among(op->a_slots, a_count(op), slot)) return op;
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
        const struct soft_wgmma_op *op = user_of(warp, slot, UINT32_MAX, writes);
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

/* Registers written before the product must be fenced, except those of a product of the same
 * shape. */
static void check_registers(struct soft_warp *warp, const struct soft_wgmma_op *op) {
    const struct soft_wgmma *own = warp->wgmma;
    bool dirty = !own->fenced, other_shape = false;
    if (!soft_options()->check_sync) return;
    for (unsigned i = 0; i < op->d_count + a_count(op); i++) {
        bool is_d = i < op->d_count;
        uint32_t slot = is_d ? op->d_slots[i] : op->a_slots[i - op->d_count];
        dirty |= is_dirty(own, op->frame, slot) && (!is_d || op->accumulates);
        const struct soft_wgmma_op *user = user_of(warp, slot, i, false);
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

/* ---- warpgroups ---- */

static struct soft_warp *leader_of(const struct soft_warp *warp) {
    return &warp->cta->warps[warp->index / SOFT_WGMMA_WARPS * SOFT_WGMMA_WARPS];
}

static uint32_t wgmma_bit_of(const struct soft_warp *warp) {
    return 1u << warp->index % SOFT_WGMMA_WARPS;
}

/* A warp's part of a product; NULL: not issued yet, or done. */
static struct soft_wgmma_op *wgmma_part_of(const struct soft_warp *warp,
                                           const struct soft_wgmma_product *product) {
    struct soft_wgmma_op *op = warp->wgmma != NULL ? warp->wgmma->first : NULL;
    while (op != NULL && op->product != product) op = op->next;
    return op;
}

/* All four warps have issued a product: those that wait for it continue. */
static void wgmma_wake(struct soft_warp *leader) {
    struct soft_cta *cta = leader->cta;
    cta->idle = 0;
    for (uint32_t w = leader->index; w < leader->index + SOFT_WGMMA_WARPS; w++) {
        struct soft_warp *warp = &cta->warps[w];
        for (int s = 0; s < SOFT_SPLITS_MAX && warp->polling > 0; s++) {
            struct soft_split *split = &warp->splits[s];
            if (split->state != SOFT_SPLIT_POLL || split->barrier != SOFT_POLL_WARPGROUP) continue;
            split->state = SOFT_SPLIT_READY;
            warp->polling--;
            cta->blocked &= ~(1u << w);
        }
    }
}

static bool fail_uneven(struct soft_warp *more, const struct soft_warp *less,
                        const struct soft_instruction *in) {
    soft_launch_fail(more, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, UINT32_MAX, 0,
                     "warp %u has executed %llu products and warp %u of its warpgroup %llu: all "
                     "four must execute the same",
                     more->index, (unsigned long long)more->wgmma->begun, less->index,
                     (unsigned long long)(less->wgmma != NULL ? less->wgmma->begun : 0));
    return false;
}

/* Whether this is the product that the other warps of the warpgroup have executed, or will. */
static bool join_product(struct soft_warp *warp, struct soft_wgmma_op *op) {
    struct soft_wgmma *own = warp->wgmma;
    struct soft_warp *leader = leader_of(warp);
    if (leader->index + SOFT_WGMMA_WARPS > warp->cta->warp_count) {
        soft_launch_fail(warp, op->in, CUDA_ERROR_ILLEGAL_INSTRUCTION, warp->mask, 0,
                         "warp %u is in no whole warpgroup: the block has %u warps", warp->index,
                         warp->cta->warp_count);
        return false;
    }
    struct soft_wgmma *group = wgmma_of(leader);
    op->product = group != NULL ? soft_wgmma_find(&group->group, own->begun) : NULL;
    if (group != NULL && op->product == NULL)
        op->product = soft_wgmma_add(&group->group, own->begun, op);
    if (op->product == NULL) {
        (void)fail_memory(warp, op->in);
        return false;
    }
    const struct soft_wgmma_product *theirs = op->product;
    if (theirs->in == op->in && theirs->a_descriptor == op->a_descriptor &&
        theirs->b_descriptor == op->b_descriptor && theirs->accumulates == op->accumulates) {
        return true;
    }
    soft_launch_fail(warp, op->in, CUDA_ERROR_ILLEGAL_INSTRUCTION, warp->mask, 0,
                     "warp %u executes as its product %llu %s than warp %u of its warpgroup",
                     warp->index, (unsigned long long)own->begun,
                     theirs->in == op->in ? "one with other descriptors or another scale-d"
                                          : "another instruction",
                     leader->index + (uint32_t)__builtin_ctz(theirs->begun));
    return false;
}

/* ---- products ---- */

/* A report names the instruction that issued the product. */
struct standpoint {
    struct soft_split split, *current;
};

static void wgmma_pretend(struct soft_warp *warp, const struct soft_wgmma_op *op,
                          struct standpoint *standpoint) {
    standpoint->split = (struct soft_split){.mask = UINT32_MAX, .frame = op->frame};
    standpoint->current = warp->split;
    warp->split = &standpoint->split;
}

static void tell_overwritten(struct soft_warp *warp, const struct soft_wgmma_op *op) {
    soft_launch_note(warp, op->in, "overwritten factor", UINT32_MAX, 0,
                     "shared memory that this product of warp %u reads was written before the "
                     "warp waited for it",
                     warp->index);
}

/* A warp has waited for a product: the factors are read, so later writes to shared memory do not
 * matter. false: they are outside shared memory, and the launch has failed. */
static bool wgmma_settle(struct soft_warp *warp, struct soft_wgmma_product *product) {
    struct soft_warp *leader = leader_of(warp);
    bool ok = true;
    product->settled = true;
    for (uint32_t w = 0; w < SOFT_WGMMA_WARPS && ok; w++) {
        struct soft_warp *each = &leader[w];
        struct soft_wgmma_op *op = wgmma_part_of(each, product);
        struct standpoint standpoint;
        bool changed = false;
        if (op == NULL) continue; /* it has exited */
        wgmma_pretend(each, op, &standpoint);
        soft_race_product(each, op, false);
        ok = soft_wgmma_read_a(each, op, false, &changed) &&
             (each != warp || soft_wgmma_read_b(each, op, false, &changed));
        if (changed) tell_overwritten(each, op);
        each->split = standpoint.current;
    }
    return ok;
}

/* Computes the oldest product, which all four warps have issued. false: it is invalid, and the
 * launch has failed. */
static bool finish_first(struct soft_warp *warp, soft_wgmma_multiply *multiply) {
    struct soft_wgmma *own = warp->wgmma;
    struct soft_wgmma_op *op = own->first;
    struct soft_wgmma_product *product = op->product;
    if (!product->settled && !wgmma_settle(warp, product)) return false;
    multiply(op);
    soft_frame_release(warp, op->frame);
    own->first = op->next;
    if (own->first == NULL) own->end = &own->first;
    own->pending--;
    op->next = own->free;
    own->free = op;
    product->done |= wgmma_bit_of(warp);
    if (product->done == ALL) soft_wgmma_remove(&leader_of(warp)->wgmma->group, product);
    return true;
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
    op->product = NULL;
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

/* A part has been issued, and the other warps may wait for it. */
static void begin_part(struct soft_warp *warp, struct soft_wgmma_op *op) {
    struct soft_wgmma *own = warp->wgmma;
    warp->cta->multiplies = true;
    op->frame->users++;
    *own->end = op;
    own->end = &op->next;
    own->pending++;
    own->begun++;
    op->product->begun |= wgmma_bit_of(warp);
    if (op->product->begun == ALL) wgmma_wake(leader_of(warp));
    soft_race_product(warp, op, true);
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
        !join_product(warp, op) || !soft_wgmma_read_a(warp, op, true, &changed) ||
        (op->product->begun == 0 && !soft_wgmma_read_b(warp, op, true, &changed))) {
        free(op);
        return NULL;
    }
    check_registers(warp, op);
    begin_part(warp, op);
    bool many = own->pending > PRODUCTS_MAX && own->first->product->begun == ALL;
    return many && !finish_first(warp, multiply) ? NULL : in + 1;
}

const struct soft_instruction *soft_wgmma_commit(struct soft_warp *warp,
                                                 const struct soft_instruction *in) {
    struct soft_wgmma *own = wgmma_of(warp);
    if (own == NULL) return fail_memory(warp, in);
    own->committed++;
    return in + 1;
}

/* A warp waits for a product that not all warps of its warpgroup have issued. */
static const struct soft_instruction *set_aside(struct soft_warp *warp,
                                                const struct soft_instruction *in,
                                                const struct soft_wgmma_op *op) {
    struct soft_warp *leader = leader_of(warp);
    for (uint32_t w = 0; w < SOFT_WGMMA_WARPS; w++) {
        bool absent = (op->product->begun >> w & 1) == 0 && leader[w].alive == 0;
        if (absent && !fail_uneven(warp, &leader[w], op->in)) return NULL;
    }
    warp->split->state = SOFT_SPLIT_POLL;
    warp->split->barrier = SOFT_POLL_WARPGROUP;
    warp->polling++;
    return soft_warp_stop(warp, SOFT_STOP_SWITCH, in);
}

const struct soft_instruction *soft_wgmma_wait(struct soft_warp *warp,
                                               const struct soft_instruction *in,
                                               soft_wgmma_multiply *multiply) {
    struct soft_wgmma *own = warp->wgmma;
    warp->split->timed_out = false;
    while (own != NULL && own->first != NULL && own->first->group + in->mode < own->committed) {
        if (own->first->product->begun != ALL) return set_aside(warp, in, own->first);
        if (!finish_first(warp, multiply)) return NULL;
    }
    return in + 1;
}

/* ---- a warp's products ---- */

static void report_uneven(struct soft_warp *warp) {
    struct soft_warp *leader = leader_of(warp);
    uint64_t mine = warp->wgmma != NULL ? warp->wgmma->begun : 0;
    uint32_t left = warp->cta->warp_count - leader->index;
    for (uint32_t w = 0; w < SOFT_WGMMA_WARPS && w < left; w++) {
        struct soft_warp *other = &leader[w];
        uint64_t theirs = other->wgmma != NULL ? other->wgmma->begun : 0;
        if (other->alive != 0 || mine == theirs) continue;
        struct soft_warp *more = mine > theirs ? warp : other, *less = mine > theirs ? other : warp;
        uint64_t least = mine > theirs ? theirs : mine;
        (void)fail_uneven(more, less, soft_wgmma_find(&leader->wgmma->group, least)->in);
        return;
    }
}

void soft_wgmma_end(struct soft_warp *warp) {
    struct soft_wgmma *own = warp->wgmma;
    struct standpoint standpoint;
    if (own != NULL && own->first != NULL) {
        wgmma_pretend(warp, own->first, &standpoint);
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
    soft_wgmma_clear(&own->group);
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
    soft_wgmma_free(&own->group);
    free(own->dirty);
    free(own);
    warp->wgmma = NULL;
}
