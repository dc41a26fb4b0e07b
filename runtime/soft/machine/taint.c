/*
 * What an instruction does to the tainted values of a warp, and how such a warp runs.
 */
#include "taint.h"

#include "finding.h"
#include "lower/loaded_module.h"
#include "lower/modes.h"
#include "memory/space.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- reports ---- */

void soft_taint_tell(struct soft_warp *warp, const struct soft_tainted_load *load, uint32_t lanes,
                     const struct soft_instruction *use) {
    char where[240] = "", used[64] = "";
    if (load->is_global) {
        soft_space_describe(load->address, warp->cta->launch->reach, SOFT_ACCESS_READ, where,
                            sizeof where);
    }
    if (use != NULL) {
        struct soft_report report = {.kind = ""};
        soft_module_describe(warp->cta->launch->module, warp->split->frame->code, use, &report);
        snprintf(used, sizeof used, "; PTX line %u depends on it", report.ptx_line);
    }
    soft_launch_note(warp, load->instruction, "uninitialised read", lanes, load->address,
                     "%s of %u bytes at 0x%llx, %s ever written%s%s%s",
                     load->instruction->mode & SOFT_ACCESS_STORE ? "a store" : "a load",
                     load->bytes, (unsigned long long)load->address,
                     load->is_partial ? "not all of which were" : "none of which was",
                     where[0] != '\0' ? ": " : "", where, used);
}

/* A tainted value decides something. */
static void taint_decide(struct soft_warp *warp, unsigned load, uint32_t lanes,
                         const struct soft_instruction *use) {
    struct soft_taint_load *l = &warp->taint->loads[load];
    if (!l->is_told) soft_taint_tell(warp, &l->load, lanes, use);
    l->is_told = true;
}

/* ---- what an instruction does to the list ---- */

/* The operations without effect outside their results; see lower/ops.def. */
static bool taint_is_pure(const struct soft_instruction *in) {
    return (in->op >= SOFT_OP_mov_32 && in->op <= SOFT_OP_cvt_pack) || in->op == SOFT_OP_isspacep ||
           in->op == SOFT_OP_cvta_to;
}

/* What has been read so far: tainted lanes, and a load that they come from. */
struct taint_read {
    uint32_t lanes;
    unsigned load;
};

static void taint_read(const struct soft_warp *warp, uint32_t slot, uint32_t lanes,
                       struct taint_read *read) {
    const struct soft_taint_slot *s = soft_taint_find(warp->taint, warp->split->frame, slot);
    if (s == NULL || (s->lanes & lanes) == 0) return;
    read->lanes |= s->lanes & lanes;
    read->load = s->load;
}

static void taint_read_all(const struct soft_warp *warp, const struct soft_instruction *in,
                           const struct soft_uses *uses, uint32_t lanes, struct taint_read *read) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    if (uses->fields & SOFT_USES_A) taint_read(warp, in->a, lanes, read);
    if (uses->fields & SOFT_USES_B) taint_read(warp, in->b, lanes, read);
    if (uses->fields & SOFT_USES_C) taint_read(warp, in->c, lanes, read);
    if (uses->fields & SOFT_USES_D) taint_read(warp, in->d, lanes, read);
    if (uses->fields & SOFT_USES_E) taint_read(warp, (uint32_t)in->u.immediate, lanes, read);
    for (unsigned i = 0; i < SOFT_USES_EXTRAS; i++) {
        if (uses->used >> i & 1) taint_read(warp, more[i], lanes, read);
    }
}

/* Of the two values, each lane reads the one that it selects. */
static void taint_read_select(const struct soft_warp *warp, const struct soft_instruction *in,
                              uint32_t lanes, struct taint_read *read) {
    const uint32_t chosen = *SLOT(uint32_t, in->c) ^ in->mode;
    taint_read(warp, in->c, lanes, read);
    taint_read(warp, in->a, lanes & chosen, read);
    taint_read(warp, in->b, lanes & ~chosen, read);
}

static void taint_write(struct soft_warp *warp, const struct soft_instruction *in, uint32_t slot,
                        uint32_t lanes, bool keeps, const struct taint_read *read) {
    if (read->lanes != 0 &&
        !soft_taint_put(warp->taint, warp->split->frame, slot, read->lanes, read->load)) {
        taint_decide(warp, read->load, read->lanes, in);
    }
    if (!keeps) soft_taint_take(warp->taint, warp->split->frame, slot, lanes & ~read->lanes);
}

static void taint_step_lanes(struct soft_warp *warp, const struct soft_instruction *in,
                             uint32_t lanes) {
    const struct soft_code *code = warp->split->frame->code;
    const struct soft_uses *uses = &code->uses[in - code->instructions];
    const uint32_t *more = code->operands + in->more;
    struct taint_read read = {.lanes = 0};
    if (in->op == SOFT_OP_sel_32 || in->op == SOFT_OP_sel_64) {
        taint_read_select(warp, in, lanes, &read);
    } else {
        taint_read_all(warp, in, uses, lanes, &read);
    }
    if (read.lanes != 0 && !taint_is_pure(in)) {
        taint_decide(warp, read.load, read.lanes, in);
        read.lanes = 0;
    }
    if (uses->fields & SOFT_USES_DEFINES_D) {
        taint_write(warp, in, in->d, lanes, (uses->fields & SOFT_USES_KEEPS) != 0, &read);
    }
    for (unsigned i = 0; i < SOFT_USES_EXTRAS; i++) {
        if (uses->defined >> i & 1) taint_write(warp, in, more[i], lanes, false, &read);
    }
}

/* Before an instruction runs. A guard runs the one after it. */
static void taint_step(struct soft_warp *warp, const struct soft_instruction *in) {
    uint32_t lanes = warp->mask;
    if (in->op == SOFT_OP_guard) {
        taint_step_lanes(warp, in, lanes);
        lanes &= *SLOT(uint32_t, in->a) ^ in->mode;
        in++;
    }
    taint_step_lanes(warp, in, lanes);
}

/* ---- running ---- */

const struct soft_instruction *soft_taint_run(struct soft_warp *warp,
                                              const struct soft_instruction *next) {
    struct soft_taint *taint = warp->taint;
    if (taint == NULL) return next;
    taint->runs = true;
    while (next != NULL && taint->slot_count > 0) {
        warp->partial = 1; /* handlers of a full warp run the following instructions too */
        taint_step(warp, next);
        next = next->run[1](warp, next);
    }
    warp->partial = warp->mask != UINT32_MAX;
    taint->runs = false;
    return next;
}

const struct soft_instruction *soft_taint_next(struct soft_warp *warp,
                                               const struct soft_instruction *in) {
    const struct soft_taint *taint = warp->taint;
    if (taint == NULL || taint->runs || taint->slot_count == 0) return in + 1;
    return soft_warp_stop(warp, SOFT_STOP_TAINT, in + 1);
}

/* The place of a load in the list; SOFT_TAINT_LOADS if that is full. */
static unsigned taint_enter(struct soft_taint *taint, const struct soft_tainted_load *load,
                            const struct soft_frame *frame) {
    for (unsigned i = 0; i < taint->load_count; i++) {
        const struct soft_taint_load *l = &taint->loads[i];
        if (l->load.instruction == load->instruction && l->frame == frame) return i;
    }
    if (taint->load_count == SOFT_TAINT_LOADS) return SOFT_TAINT_LOADS;
    taint->loads[taint->load_count] = (struct soft_taint_load){.load = *load, .frame = frame};
    return taint->load_count++;
}

/* Taints the results of a load. false: the list is full. */
static bool taint_add_results(struct soft_warp *warp, const struct soft_instruction *in,
                              uint32_t lane, unsigned first, unsigned load) {
    const struct soft_frame *frame = warp->split->frame;
    const struct soft_uses *uses = &frame->code->uses[in - frame->code->instructions];
    bool ok = true;
    if (uses->fields & SOFT_USES_DEFINES_D) {
        ok = soft_taint_put(warp->taint, frame, in->d, 1u << lane, load);
    }
    for (unsigned i = first; i < SOFT_USES_EXTRAS; i++) {
        if (uses->defined >> i & 1) {
            ok = ok && soft_taint_put(warp->taint, frame, frame->code->operands[in->more + i],
                                      1u << lane, load);
        }
    }
    return ok;
}

void soft_taint_add(struct soft_warp *warp, const struct soft_tainted_load *load, uint32_t lane,
                    unsigned first) {
    if (soft_launch_is_noted(warp->cta->launch, load->instruction, "uninitialised read")) return;
    if (warp->taint == NULL) warp->taint = calloc(1, sizeof *warp->taint);
    const unsigned at =
        warp->taint != NULL ? taint_enter(warp->taint, load, warp->split->frame) : SOFT_TAINT_LOADS;
    if (at == SOFT_TAINT_LOADS || !taint_add_results(warp, load->instruction, lane, first, at)) {
        soft_taint_tell(warp, load, 1u << lane, NULL);
    }
}
