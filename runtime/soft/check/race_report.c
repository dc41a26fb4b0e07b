/*
 * Reports a race, with both accesses and the memory they access.
 */
#include "machine/finding.h"
#include "lower/loaded_module.h"
#include "race_state.h"

#include <stdio.h>
#include <string.h>

static const char race_kind[] = "data race", equal_kind[] = "data race of equal values",
                  proxy_kind[] = "missing proxy fence";

/* Whether an instruction is checked: unchecked ones may have the same number. */
static bool is_access(const struct soft_instruction *in) {
    switch ((enum soft_op)in->op) {
    case SOFT_OP_ld_slow:
    case SOFT_OP_st_slow:
    case SOFT_OP_atom:
    case SOFT_OP_ldmatrix:
    case SOFT_OP_stmatrix:
    case SOFT_OP_wmma_load:
    case SOFT_OP_wmma_store:
    case SOFT_OP_cp_async:
    case SOFT_OP_cp_bulk:
    case SOFT_OP_cp_tensor:
    case SOFT_OP_map_replace:
    case SOFT_OP_map_copy:
    case SOFT_OP_st_async:
    case SOFT_OP_wgmma:
        return true;
    default:
        return in->op >= SOFT_OP_ld_global_u8 && in->op <= SOFT_OP_st_shared_v4_32;
    }
}

static const struct soft_instruction *access_in(const struct soft_code *code, uint32_t site) {
    if (code == NULL || !atomic_load(&code->is_complete)) return NULL; /* it has not run */
    for (uint32_t i = 0; i < code->instruction_count; i++) {
        const struct soft_instruction *in = &code->instructions[i];
        if (in->site == site && is_access(in)) return in;
    }
    return NULL;
}

/* The access with a number, among all those of a module; NULL: there is none. */
static const struct soft_instruction *race_report_access_of(const struct soft_module *module,
                                                            uint32_t site,
                                                            const struct soft_code **code) {
    for (unsigned u = 0; u < module->unit_count; u++) {
        const struct ptx_function *f = module->units[u].ptx.functions;
        for (; f != NULL; f = f->next) {
            const struct soft_instruction *in = access_in(f->code, site);
            if (in == NULL) continue;
            *code = f->code;
            return in;
        }
    }
    return NULL;
}

void soft_race_tell_exit(const struct soft_cta *gone, struct soft_cta *other,
                         const struct soft_mark *mark, uint64_t at) {
    const struct soft_code *code = NULL;
    const struct soft_instruction *in =
        race_report_access_of(other->launch->module, mark->site, &code);
    if (in == NULL) return;
    struct soft_warp *warp = &other->warps[mark->warp];
    struct soft_frame frame = {.code = code};
    struct soft_split split = {.mask = mark->lanes, .frame = &frame}, *current = warp->split;
    warp->split = &split;
    soft_launch_note(warp, in, "block may have exited", mark->lanes, at,
                     "nothing keeps block (%u,%u,%u), block %u of the cluster, from exiting before "
                     "this access at offset 0x%llx of its shared memory",
                     gone->index[0], gone->index[1], gone->index[2], gone->rank,
                     (unsigned long long)at);
    warp->split = current;
}

static const struct soft_instruction *describe_other(const struct soft_checked_access *touch,
                                                     const struct soft_mark *mark,
                                                     struct soft_report_place *place) {
    const struct soft_launch *launch = touch->warp->cta->launch;
    const struct soft_code *code = NULL;
    const struct soft_instruction *in = race_report_access_of(launch->module, mark->site, &code);
    struct soft_report report = {.kind = ""};
    *place = (struct soft_report_place){0};
    if (in != NULL) soft_module_describe(launch->module, code, in, &report);
    if (in != NULL && code != launch->code) {
        snprintf(place->function, sizeof place->function, "%s", code->name);
    }
    memcpy(place->instruction, report.instruction, sizeof place->instruction);
    memcpy(place->source, report.source, sizeof place->source);
    memcpy(place->inlined_at, report.inlined_at, sizeof place->inlined_at);
    place->ptx_line = report.ptx_line;
    uint32_t thread = mark->warp * SOFT_LANES + (uint32_t)__builtin_ctz(mark->lanes);
    place->block[0] = mark->cta % launch->grid[0];
    place->block[1] = mark->cta / launch->grid[0] % launch->grid[1];
    place->block[2] = mark->cta / launch->grid[0] / launch->grid[1];
    place->thread[0] = thread % launch->block[0];
    place->thread[1] = thread / launch->block[0] % launch->block[1];
    place->thread[2] = thread / launch->block[0] / launch->block[1];
    return in;
}

/* The bytes that a lane of a store is about to write at an offset of its access; at most four. */
static uint32_t race_report_stored(const struct soft_checked_access *touch, uint32_t lane,
                                   uint64_t offset, unsigned bytes) {
    const struct soft_instruction *in = touch->in;
    const struct soft_warp *warp = touch->warp;
    unsigned each = soft_access_bytes(in->mode);
    uint32_t slot = in->d;
    if (soft_access_count(in->mode) > 1) {
        slot = warp->split->frame->code->operands[in->more + offset / each];
    }
    size_t width = in->mode & SOFT_ACCESS_WIDE_DATA ? 8 : 4;
    uint32_t value = 0;
    memcpy(&value, warp->slots + slot + width * lane + offset % each, bytes);
    return value;
}

/* Whether a store leaves the value of another store unchanged. */
static bool writes_the_same(const struct soft_checked_access *touch, const struct soft_mark *mark,
                            uint64_t at, unsigned bytes) {
    if (!touch->plain || mark->pending || touch->mark.atomic || mark->atomic) return false;
    uint64_t offset = at - touch->begin;
    uint32_t value = race_report_stored(touch, touch->lane, offset, bytes), there = 0;
    bool at_once = mark->site == touch->mark.site && mark->warp == touch->mark.warp &&
                   mark->cta == touch->mark.cta && mark->time == touch->mark.time &&
                   (mark->lanes & touch->before) != 0;
    if (at_once) {
        there = race_report_stored(touch, (uint32_t)__builtin_ctz(mark->lanes), offset, bytes);
    } else if (touch->shared) {
        memcpy(&there, touch->home->shared + at, bytes);
    } else if (!soft_space_read(at, &there, bytes)) {
        return false;
    }
    return value == there;
}

static const char *race_report_what(const struct soft_mark *mark, bool writes) {
    unsigned scope = mark->scope;
    if (mark->product) return "a product's load";
    if (mark->copies) {
        return mark->atomic ? "an asynchronous reduction"
               : writes     ? "an asynchronous copy's store"
                            : "an asynchronous copy's load";
    }
    if (mark->atomic) return "an atomic operation";
    if (writes) return scope != SOFT_SCOPE_WEAK ? "a strong store" : "a store";
    return scope != SOFT_SCOPE_WEAK ? "a strong load" : "a load";
}

/* Whether an offset of the kernel's shared memory is in a shared variable. */
static bool lies_around(const struct ptx_variable *variable, const struct soft_code *kernel,
                        uint64_t offset) {
    bool seen = variable->common || variable->user == NULL || variable->user->code == kernel;
    return variable->space == PTX_shared && variable->placed && seen &&
           offset >= variable->address && offset - variable->address < variable->bytes;
}

static void describe_shared(const struct soft_checked_access *touch, char *text, size_t bytes) {
    const struct soft_launch *launch = touch->warp->cta->launch;
    const struct soft_module *module = launch->module;
    if (touch->home != touch->warp->cta) {
        const uint32_t *block = touch->home->index;
        snprintf(text, bytes, "at offset 0x%llx of the shared memory of block (%u,%u,%u)",
                 (unsigned long long)touch->begin, block[0], block[1], block[2]);
        return;
    }
    snprintf(text, bytes, "at offset 0x%llx of shared memory", (unsigned long long)touch->begin);
    for (unsigned u = 0; u < module->unit_count; u++) {
        const struct ptx_variable *v = module->units[u].ptx.variables;
        while (v != NULL && !lies_around(v, launch->code, touch->begin)) v = v->next;
        if (v == NULL) continue;
        snprintf(text, bytes, "%llu bytes into shared variable %.*s of %llu bytes",
                 (unsigned long long)(touch->begin - v->address), (int)v->symbol->length,
                 v->symbol->name, (unsigned long long)v->bytes);
        return;
    }
}

/* Whether a pair was reported before. A race is found again in each thread, and composing a report
 * takes time. */
static bool was_told(struct soft_race *race, uint32_t site, uint32_t beside, bool equal) {
    for (uint32_t i = 0; i < race->reported_count; i++) {
        bool same = (race->reported[i].site == site && race->reported[i].beside == beside) ||
                    (race->reported[i].site == beside && race->reported[i].beside == site);
        if (same && race->reported[i].equal == equal) return true;
    }
    if (race->reported_count == SOFT_NOTES_MAX) return true;
    race->reported[race->reported_count].site = site;
    race->reported[race->reported_count].beside = beside;
    race->reported[race->reported_count++].equal = equal;
    return false;
}

static void describe_memory(const struct soft_checked_access *touch, char *text, size_t bytes) {
    if (touch->shared) {
        describe_shared(touch, text, bytes);
    } else {
        const struct soft_reach *reach = touch->warp->cta->launch->reach;
        soft_space_describe(touch->address, reach, SOFT_ACCESS_READ, text, bytes);
    }
}

static void name_line(const struct soft_report_place *place, char *text, size_t bytes) {
    snprintf(text, bytes, "%s%sPTX line %u", place->source, place->source[0] != '\0' ? ", " : "",
             place->ptx_line);
}

void soft_race_tell(const struct soft_checked_access *touch, const struct soft_mark *mark,
                    bool wrote, uint64_t at, unsigned bytes) {
    struct soft_mark first = *mark;
    struct soft_report_place other;
    /* Missing memory is reported separately. */
    if (!touch->shared && !soft_space_is_live(touch->address, 1, SOFT_ACCESS_READ)) return;
    char where[200], other_line[200];
    /* One of the lanes that is not known. */
    for (uint32_t left = mark->lanes; left != 0; left &= left - 1) {
        first.lanes = left & -left;
        if (!soft_race_ordered(touch, &first)) break;
    }
    bool equal = wrote && touch->writes && writes_the_same(touch, &first, at, bytes);
    if (was_told(touch->race, touch->mark.site, mark->site, equal)) return;
    const struct soft_instruction *beside = describe_other(touch, &first, &other);
    describe_memory(touch, where, sizeof where);
    name_line(&other, other_line, sizeof other_line);
    bool near = touch->mark.scope != SOFT_SCOPE_WEAK && mark->scope != SOFT_SCOPE_WEAK;
    struct soft_finding finding = {.kind = equal ? equal_kind : race_kind,
                                   .lanes = touch->mark.lanes,
                                   .address = touch->address,
                                   .minor = equal,
                                   .other = &other,
                                   .beside = beside};
    soft_launch_find(touch->warp, touch->in, &finding,
                     "%s of %u bytes at 0x%llx, %s; it is not ordered with %s by block (%u,%u,%u), "
                     "thread (%u,%u,%u), at %s%s%s",
                     race_report_what(&touch->mark, touch->writes), touch->bytes,
                     (unsigned long long)touch->address, where, race_report_what(mark, wrote),
                     other.block[0], other.block[1], other.block[2], other.thread[0],
                     other.thread[1], other.thread[2], other_line,
                     near ? ": a scope of .cta does not reach another block" : "",
                     equal ? ": both write the same value" : "");
}

void soft_race_tell_proxy(const struct soft_checked_access *touch, const struct soft_mark *mark) {
    struct soft_mark first = *mark;
    struct soft_report_place other;
    char where[200], other_line[200];
    first.lanes = mark->lanes & -mark->lanes;
    if (was_told(touch->race, touch->mark.site, mark->site, true)) return;
    const struct soft_instruction *beside = describe_other(touch, &first, &other);
    describe_memory(touch, where, sizeof where);
    name_line(&other, other_line, sizeof other_line);
    struct soft_finding finding = {.kind = proxy_kind,
                                   .lanes = touch->mark.lanes,
                                   .address = touch->address,
                                   .other = &other,
                                   .beside = beside};
    soft_launch_find(touch->warp, touch->in, &finding,
                     "%s of %u bytes at 0x%llx, %s; no %s lies between it and %s by "
                     "block (%u,%u,%u), thread (%u,%u,%u), at %s",
                     race_report_what(&touch->mark, touch->writes), touch->bytes,
                     (unsigned long long)touch->address, where,
                     touch->maps ? "fence.proxy.tensormap::generic.acquire" : "fence.proxy.async",
                     race_report_what(mark, true), other.block[0], other.block[1], other.block[2],
                     other.thread[0], other.thread[1], other.thread[2], other_line);
}
