/*
 * setmaxnreg. Source: PTX ISA 9.0, section 9.7.20.5 (setmaxnreg).
 *
 * A thread has all the registers that its kernel needs, so only the rules are checked: all warps of
 * a warpgroup execute the same setmaxnreg; .inc must not request fewer registers than the warpgroup
 * has, .dec not more; and all warpgroups together must not request more than a multiprocessor has,
 * for which .inc would wait forever. The compiler chooses the initial number, so the first
 * setmaxnreg of a warpgroup may name any number.
 */
#include "registers.h"

#include "tollens/cuda_abi.h"
#include "base/options.h"
#include "machine/finding.h"
#include "lower/modes.h"

enum { REGISTERS_MAX = 65536 };

static const char kind[] = "setmaxnreg";

static void registers_check_number(struct soft_warp *warp, const struct soft_instruction *in,
                                   const struct soft_warpgroup *group) {
    uint32_t wanted = in->mode & SOFT_REGISTERS;
    bool more = (in->mode & SOFT_REGISTERS_MORE) != 0;
    bool wrong = more ? wanted < group->registers : wanted > group->registers;
    if (group->registers == 0 || !wrong) return;
    soft_launch_note(warp, in, kind, warp->mask, 0,
                     "%s to %u registers, and the warpgroup has %u a thread",
                     more ? ".inc" : ".dec", wanted, group->registers);
}

static bool registers_fits(const struct soft_cta *cta) {
    uint32_t sum = 0;
    for (uint32_t g = 0; g * SOFT_WARPGROUP < cta->warp_count; g++) {
        sum += cta->warpgroups[g].registers * SOFT_WARPGROUP * SOFT_LANES;
    }
    return sum <= REGISTERS_MAX;
}

const struct soft_instruction *soft_registers_set(struct soft_warp *warp,
                                                  const struct soft_instruction *in) {
    struct soft_cta *cta = warp->cta;
    uint32_t first = warp->index / SOFT_WARPGROUP * SOFT_WARPGROUP;
    uint32_t left = cta->warp_count - first;
    uint32_t all = left >= SOFT_WARPGROUP ? (1u << SOFT_WARPGROUP) - 1 : (1u << left) - 1;
    struct soft_warpgroup *group = &cta->warpgroups[warp->index / SOFT_WARPGROUP];
    uint32_t own = 1u << warp->index % SOFT_WARPGROUP;
    bool checks = soft_options()->check_sync;
    if (checks && group->warps != 0 && (group->in != in || (group->warps & own) != 0)) {
        soft_launch_note(warp, in, kind, warp->mask, 0,
                         "warp %u executes it before all warps of its warpgroup have executed %s",
                         warp->index, group->in == in ? "it once" : "another setmaxnreg");
        group->warps = 0;
    }
    if (checks && group->warps == 0) registers_check_number(warp, in, group);
    group->in = in;
    group->warps |= own;
    if (group->warps != all) return in + 1;
    group->warps = 0;
    group->registers = in->mode & SOFT_REGISTERS;
    if ((in->mode & SOFT_REGISTERS_MORE) == 0 || registers_fits(cta)) return in + 1;
    return soft_launch_fail(warp, in, CUDA_ERROR_LAUNCH_TIMEOUT, warp->mask, 0,
                            "deadlock: with %u registers a thread for this warpgroup the block "
                            "would have more than %d",
                            group->registers, REGISTERS_MAX);
}

void soft_registers_end(struct soft_cta *cta) {
    for (uint32_t g = 0; g * SOFT_WARPGROUP < cta->warp_count; g++) {
        const struct soft_warpgroup *group = &cta->warpgroups[g];
        if (group->warps == 0 || !soft_options()->check_sync) continue;
        struct soft_warp *warp =
            &cta->warps[g * SOFT_WARPGROUP + (uint32_t)__builtin_ctz(group->warps)];
        struct soft_frame frame = {.code = cta->launch->code};
        struct soft_split split = {.mask = warp->threads, .frame = &frame};
        warp->split = &split;
        soft_launch_note(warp, group->in, kind, warp->threads, 0,
                         "only the warps 0x%x of warpgroup %u execute it", group->warps, g);
        warp->split = warp->splits;
    }
}
