/*
 * Alternately cuts large handles into pages, as soon as memory allows, and meshes sparse pages with
 * full ones.
 */
#include "mesh_plan.h"

#include <stdlib.h>

/* The most partners examined per page, and per run: some 0.2 s. And the share from which on a large
 * handle is too full to be cut. */
enum { TRIES = 1024, LOOKS = 1 << 24 };
static const double FULL = 0.97;

/* A match is good if the page is full by this share afterwards. Poor ones are made only if no
 * better ones are left, and only a few at a time, because each later good one frees more. */
static const double GOOD[] = {0.97, 0.9, 0.75, 0};
enum { GOOD_COUNT = sizeof GOOD / sizeof GOOD[0], AT_ONCE = 32 };

enum { CHUNK = 1 << 20 };

struct tol_mesh_chunk {
    struct tol_mesh_chunk *next;
    size_t used;
    uint64_t data[CHUNK / sizeof(uint64_t)];
};

/* Zeroed, and freed with the plan. NULL: no host memory. */
static void *mesh_plan_take(struct tol_mesh_plan *plan, size_t bytes) {
    bytes = (bytes + 63) & ~(size_t)63;
    struct tol_mesh_chunk *chunk = plan->chunks;
    if (bytes > CHUNK) return NULL;
    if (chunk == NULL || chunk->used + bytes > CHUNK) {
        chunk = calloc(1, sizeof *chunk);
        if (chunk == NULL) return NULL;
        chunk->next = plan->chunks;
        plan->chunks = chunk;
    }
    void *data = (char *)chunk->data + chunk->used;
    chunk->used += bytes;
    return data;
}

void tol_mesh_begin(struct tol_mesh_plan *plan, uint32_t granules) {
    *plan = (struct tol_mesh_plan){.granules = granules, .words = granules / 64, .looks = LOOKS};
}

void tol_mesh_clear(struct tol_mesh_plan *plan) {
    for (struct tol_mesh_chunk *chunk = plan->chunks, *next = NULL; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    *plan = (struct tol_mesh_plan){0};
}

struct tol_mesh_frame *tol_mesh_frame(struct tol_mesh_plan *plan, uint32_t handle, uint32_t pages) {
    struct tol_mesh_frame *frame = mesh_plan_take(plan, sizeof *frame);
    if (frame == NULL) return NULL;
    *frame = (struct tol_mesh_frame){
        .handle = handle, .pages = pages, .level = -1, .after = plan->frames};
    plan->frames = frame;
    return frame;
}

static struct tol_mesh_slot *mesh_plan_slot_of(struct tol_mesh_plan *plan,
                                               struct tol_mesh_frame *frame, uint32_t page) {
    struct tol_mesh_slot *slot = frame->slots;
    while (slot != NULL && slot->page != page) slot = slot->next;
    if (slot != NULL) return slot;
    slot = mesh_plan_take(plan, sizeof *slot);
    uint64_t *bits = mesh_plan_take(plan, plan->words * sizeof *bits);
    if (slot == NULL || bits == NULL) return NULL;
    *slot = (struct tol_mesh_slot){.page = page, .bits = bits, .next = frame->slots};
    frame->slots = slot;
    return slot;
}

bool tol_mesh_use(struct tol_mesh_plan *plan, struct tol_mesh_frame *frame, uint32_t page,
                  uint32_t begin, uint32_t granules) {
    struct tol_mesh_slot *slot = mesh_plan_slot_of(plan, frame, page);
    if (slot == NULL) return false;
    for (uint32_t bit = begin, end = begin + granules; bit < end;) {
        uint32_t after = (bit / 64 + 1) * 64 < end ? (bit / 64 + 1) * 64 : end;
        uint64_t mask = after - bit == 64 ? ~(uint64_t)0 : ((uint64_t)1 << (after - bit)) - 1;
        slot->bits[bit / 64] |= mask << bit % 64;
        bit = after;
    }
    slot->blocks++;
    slot->live += granules;
    frame->live += granules;
    return true;
}

/* ---- lists of single pages by how full they are ---------------------------------------------- */

static int mesh_plan_level_of(const struct tol_mesh_plan *plan, uint32_t live) {
    uint64_t level = (uint64_t)live * TOL_MESH_LEVELS / plan->granules;
    return level < TOL_MESH_LEVELS ? (int)level : TOL_MESH_LEVELS - 1;
}

static void mesh_plan_list(struct tol_mesh_plan *plan, struct tol_mesh_frame *frame) {
    frame->level = mesh_plan_level_of(plan, frame->live);
    frame->before = NULL;
    frame->next = plan->levels[frame->level];
    if (frame->next != NULL) frame->next->before = frame;
    plan->levels[frame->level] = frame;
}

static void mesh_plan_unlist(struct tol_mesh_plan *plan, struct tol_mesh_frame *frame) {
    if (frame->level < 0) return;
    if (frame->before != NULL) {
        frame->before->next = frame->next;
    } else {
        plan->levels[frame->level] = frame->next;
    }
    if (frame->next != NULL) frame->next->before = frame->before;
    frame->level = -1;
}

static bool mesh_plan_meet(const uint64_t *a, const uint64_t *b, size_t words) {
    for (size_t i = 0; i < words; i++) {
        if ((a[i] & b[i]) != 0) return true;
    }
    return false;
}

/* The fullest single page, except for one, that has no byte in common with a page and is full by
 * least granules with it. */
static struct tol_mesh_frame *partner_of(struct tol_mesh_plan *plan,
                                         const struct tol_mesh_slot *slot,
                                         const struct tol_mesh_frame *but, uint32_t least) {
    int tries = TRIES;
    if (plan->looks == 0) return NULL;
    int lowest = least > slot->live ? mesh_plan_level_of(plan, least - slot->live) : 0;
    for (int level = mesh_plan_level_of(plan, plan->granules - slot->live); level >= lowest;
         level--) {
        for (struct tol_mesh_frame *frame = plan->levels[level]; frame != NULL;
             frame = frame->next) {
            uint32_t both = frame->live + slot->live;
            if (frame == but || both > plan->granules || both < least) continue;
            if (!mesh_plan_meet(frame->slots->bits, slot->bits, plan->words)) return frame;
            if (--tries == 0 || --plan->looks == 0) return NULL;
        }
    }
    return NULL;
}

/* Adds the bytes of a slot to the frame. */
static void mesh_plan_join(struct tol_mesh_plan *plan, struct tol_mesh_frame *frame,
                           const struct tol_mesh_slot *slot) {
    mesh_plan_unlist(plan, frame);
    for (size_t i = 0; i < plan->words; i++) frame->slots->bits[i] |= slot->bits[i];
    frame->slots->live += slot->live;
    frame->slots->blocks += slot->blocks;
    frame->live += slot->live;
    mesh_plan_list(plan, frame);
}

static void mesh_plan_leave(struct tol_mesh_plan *plan, struct tol_mesh_frame *frame,
                            const struct tol_mesh_slot *slot) {
    mesh_plan_unlist(plan, frame);
    for (size_t i = 0; i < plan->words; i++) frame->slots->bits[i] &= ~slot->bits[i];
    frame->slots->live -= slot->live;
    frame->slots->blocks -= slot->blocks;
    frame->live -= slot->live;
    mesh_plan_list(plan, frame);
}

/* ---- moves ----------------------------------------------------------------------------------- */

struct run {
    struct tol_mesh_plan *plan;
    uint64_t want, room, gained;
    uint32_t least; /* used granules of a page after a match */
    tol_mesh_mover *mover;
    void *user;
    bool stopped;
};

static bool mesh_plan_is_over(const struct run *run) {
    return run->stopped || run->gained >= run->want || run->plan->out_of_memory;
}

static enum tol_mesh_result offer_move(struct run *run, struct tol_mesh_move *move) {
    enum tol_mesh_result result = run->mover != NULL ? run->mover(run->user, move) : TOL_MESH_DONE;
    if (result == TOL_MESH_STOP) run->stopped = true;
    return result;
}

/* The page whose memory a page's bytes move to; NULL: none. */
static struct tol_mesh_frame *mesh_single(struct run *run, struct tol_mesh_frame *frame) {
    struct tol_mesh_frame *partner = partner_of(run->plan, frame->slots, frame, run->least);
    if (partner == NULL) return NULL;
    int64_t to = partner->handle;
    const uint64_t *bits = frame->slots->bits;
    struct tol_mesh_move move = {.handle = frame->handle,
                                 .pages = 1,
                                 .to = &to,
                                 .bits = &bits,
                                 .blocks = &frame->slots->blocks};
    if (offer_move(run, &move) != TOL_MESH_DONE) return NULL;
    mesh_plan_unlist(run->plan, frame);
    frame->gone = true;
    mesh_plan_join(run->plan, partner, frame->slots);
    run->gained++;
    run->room++;
    return partner;
}

static bool mesh_singles(struct run *run, unsigned most) {
    unsigned made = 0;
    for (int level = 0; level < TOL_MESH_LEVELS; level++) {
        struct tol_mesh_frame *frame = run->plan->levels[level];
        for (struct tol_mesh_frame *next = NULL; frame != NULL && !mesh_plan_is_over(run);
             frame = next) {
            next = frame->next;
            struct tol_mesh_frame *after = next != NULL ? next->next : NULL;
            const struct tol_mesh_frame *partner = mesh_single(run, frame);
            if (partner == NULL) continue;
            if (++made == most) return true;
            /* A partner may be in another list now. */
            if (partner == next) next = after;
        }
    }
    return made > 0;
}

/* Undoes the choice of partners for a handle that is not moved after all. */
static void part_again(struct run *run, const struct tol_mesh_frame *frame,
                       struct tol_mesh_frame **partners) {
    for (const struct tol_mesh_slot *slot = frame->slots; slot != NULL; slot = slot->next) {
        if (partners[slot->page] != NULL) mesh_plan_leave(run->plan, partners[slot->page], slot);
    }
}

/* New frames for the pages that got separate handles. */
static void list_made(struct run *run, struct tol_mesh_frame *frame,
                      const struct tol_mesh_move *move) {
    struct tol_mesh_slot *slot = frame->slots;
    for (struct tol_mesh_slot *next = NULL; slot != NULL; slot = next) {
        next = slot->next;
        if (move->to[slot->page] != TOL_MESH_NEW) continue;
        struct tol_mesh_frame *made = tol_mesh_frame(run->plan, move->made[slot->page], 1);
        if (made == NULL) {
            run->plan->out_of_memory = true;
            return;
        }
        made->slots = slot;
        made->live = slot->live;
        slot->page = 0;
        slot->next = NULL;
        mesh_plan_list(run->plan, made);
    }
}

/* Chooses the target of each page of a handle, and counts those that need a new handle. */
static uint64_t mesh_plan_choose(struct run *run, const struct tol_mesh_frame *frame,
                                 struct tol_mesh_move *move, struct tol_mesh_frame **partners) {
    uint64_t fresh = 0;
    for (uint32_t i = 0; i < frame->pages; i++) move->to[i] = TOL_MESH_NOWHERE;
    for (struct tol_mesh_slot *slot = frame->slots; slot != NULL; slot = slot->next) {
        struct tol_mesh_frame *partner = partner_of(run->plan, slot, NULL, run->least);
        move->to[slot->page] = partner != NULL ? (int64_t)partner->handle : TOL_MESH_NEW;
        move->bits[slot->page] = slot->bits;
        move->blocks[slot->page] = slot->blocks;
        partners[slot->page] = partner;
        if (partner != NULL) mesh_plan_join(run->plan, partner, slot);
        fresh += partner == NULL;
    }
    return fresh;
}

/* Whether a search for partners is worthwhile: some pages of a handle find one, but not most. */
static bool may_be_cut(const struct run *run, const struct tol_mesh_frame *frame) {
    uint64_t slots = 0;
    for (const struct tol_mesh_slot *slot = frame->slots; slot != NULL; slot = slot->next) slots++;
    return !frame->gone && slots <= 2 * run->room + 2;
}

/* Cuts a handle of several pages, if memory allows. */
static bool mesh_plan_cut(struct run *run, struct tol_mesh_frame *frame) {
    const uint32_t pages = frame->pages;
    struct tol_mesh_move move = {.handle = frame->handle, .pages = pages};
    struct tol_mesh_frame **partners = calloc(pages, sizeof(struct tol_mesh_frame *));
    bool done = false;
    move.to = calloc(pages, sizeof *move.to);
    move.bits = calloc(pages, sizeof(const uint64_t *));
    move.blocks = calloc(pages, sizeof *move.blocks);
    move.made = calloc(pages, sizeof *move.made);
    if (partners == NULL || move.to == NULL || move.bits == NULL || move.blocks == NULL ||
        move.made == NULL) {
        run->plan->out_of_memory = true;
        goto out;
    }
    uint64_t fresh = mesh_plan_choose(run, frame, &move, partners);
    done = fresh <= run->room && offer_move(run, &move) == TOL_MESH_DONE;
    if (done) {
        frame->gone = true;
        run->gained += pages - fresh;
        run->room += pages - fresh;
        list_made(run, frame, &move);
    } else {
        part_again(run, frame, partners);
    }
out:
    free((void *)partners);
    free(move.to);
    free((void *)move.bits);
    free(move.blocks);
    free(move.made);
    return done;
}

/* Large handles first, as soon as memory allows: memory that becomes free goes to blocks, and might
 * never suffice again. Of equal ones the emptiest. */
static int by_size(const void *a, const void *b) {
    const struct tol_mesh_frame *x = *(struct tol_mesh_frame *const *)a;
    const struct tol_mesh_frame *y = *(struct tol_mesh_frame *const *)b;
    if (x->pages != y->pages) return x->pages > y->pages ? -1 : 1;
    return (x->live > y->live) - (x->live < y->live);
}

uint64_t tol_mesh_run(struct tol_mesh_plan *plan, uint64_t want, uint64_t room,
                      tol_mesh_mover *mover, void *user) {
    struct run run = {.plan = plan, .want = want, .room = room, .mover = mover, .user = user};
    size_t count = 0, large = 0;
    for (struct tol_mesh_frame *f = plan->frames; f != NULL; f = f->after) count++;
    struct tol_mesh_frame **frames = calloc(count + 1, sizeof(struct tol_mesh_frame *));
    if (frames == NULL) return 0;
    for (struct tol_mesh_frame *f = plan->frames; f != NULL; f = f->after) {
        if (f->slots == NULL) continue;
        double share = (double)f->live / ((double)f->pages * plan->granules);
        if (f->pages == 1) mesh_plan_list(plan, f);
        if (f->pages > 1 && share < FULL) frames[large++] = f;
    }
    qsort((void *)frames, large, sizeof(struct tol_mesh_frame *), by_size);
    /* Until the largest handle fits, so that it does not remain when all other memory is used. */
    if (large > 0 && run.want <= frames[0]->pages) run.want = frames[0]->pages + 1;
    for (int good = 0; good < GOOD_COUNT && !mesh_plan_is_over(&run);) {
        run.least = (uint32_t)(GOOD[good] * plan->granules);
        bool any = false;
        for (size_t i = 0; i < large && !(any && good > 0) && !mesh_plan_is_over(&run); i++) {
            if (may_be_cut(&run, frames[i]) && mesh_plan_cut(&run, frames[i])) any = true;
        }
        if (mesh_singles(&run, AT_ONCE)) any = true;
        good = any ? 0 : good + 1;
    }
    free((void *)frames);
    return run.gained;
}
