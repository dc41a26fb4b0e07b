/*
 * The plan alone: what it finds, what it has no memory for, and that its moves add up.
 */
#include "mesh_plan.h"

#include <criterion/criterion.h>

enum { GRANULES = 256, HANDLES = 8 };

struct heard {
    unsigned moves, next;
    enum tol_mesh_result answer;
};

static enum tol_mesh_result hear(void *user, struct tol_mesh_move *move) {
    struct heard *heard = user;
    if (heard->answer != TOL_MESH_DONE) return heard->answer;
    heard->moves++;
    for (uint32_t i = 0; i < move->pages; i++) {
        cr_assert(move->to[i] != (int64_t)move->handle, "a page goes to itself");
        cr_assert((move->to[i] == TOL_MESH_NOWHERE) == (move->bits[i] == NULL));
        if (move->to[i] == TOL_MESH_NEW) move->made[i] = heard->next++;
    }
    return TOL_MESH_DONE;
}

/* Single pages, of which every other uses its first half and the others their second. */
static void halves(struct tol_mesh_plan *plan) {
    tol_mesh_begin(plan, GRANULES);
    for (uint32_t i = 0; i < HANDLES; i++) {
        struct tol_mesh_frame *frame = tol_mesh_frame(plan, i, 1);
        cr_assert(tol_mesh_use(plan, frame, 0, i % 2 * GRANULES / 2, GRANULES / 2));
    }
}

Test(mesh_plan, halves_are_put_together_without_room) {
    struct tol_mesh_plan plan;
    struct heard heard = {.next = HANDLES};
    halves(&plan);
    cr_assert_eq(tol_mesh_run(&plan, UINT64_MAX, 0, hear, &heard), HANDLES / 2);
    cr_assert_eq(heard.moves, HANDLES / 2);
    tol_mesh_clear(&plan);
    halves(&plan);
    cr_assert_eq(tol_mesh_run(&plan, 1, 0, NULL, NULL), 1, "it does no more than is wanted");
    tol_mesh_clear(&plan);
}

Test(mesh_plan, what_is_refused_is_not_counted) {
    struct tol_mesh_plan plan;
    struct heard heard = {.answer = TOL_MESH_SKIPPED};
    halves(&plan);
    cr_assert_eq(tol_mesh_run(&plan, UINT64_MAX, 0, hear, &heard), 0);
    tol_mesh_clear(&plan);
    heard.answer = TOL_MESH_STOP;
    halves(&plan);
    cr_assert_eq(tol_mesh_run(&plan, UINT64_MAX, 0, hear, &heard), 0);
    tol_mesh_clear(&plan);
}

Test(mesh_plan, bytes_that_meet_stay_apart) {
    struct tol_mesh_plan plan;
    tol_mesh_begin(&plan, GRANULES);
    for (uint32_t i = 0; i < HANDLES; i++) {
        cr_assert(tol_mesh_use(&plan, tol_mesh_frame(&plan, i, 1), 0, 100 + i, 1 + HANDLES));
    }
    cr_assert_eq(tol_mesh_run(&plan, UINT64_MAX, 100, NULL, NULL), 0);
    tol_mesh_clear(&plan);
}

/* A handle over four pages, two of them empty and the others a half each. */
static void one_large(struct tol_mesh_plan *plan, uint32_t singles) {
    tol_mesh_begin(plan, GRANULES);
    struct tol_mesh_frame *frame = tol_mesh_frame(plan, 0, 4);
    cr_assert(tol_mesh_use(plan, frame, 0, 0, GRANULES / 2));
    cr_assert(tol_mesh_use(plan, frame, 3, 0, GRANULES / 2));
    for (uint32_t i = 0; i < singles; i++) {
        frame = tol_mesh_frame(plan, i + 1, 1);
        cr_assert(tol_mesh_use(plan, frame, 0, GRANULES / 2, GRANULES / 2));
    }
}

Test(mesh_plan, a_large_handle_is_cut_where_there_is_room) {
    struct tol_mesh_plan plan;
    struct heard heard = {.next = 10};
    one_large(&plan, 0);
    cr_assert_eq(tol_mesh_run(&plan, UINT64_MAX, 1, hear, &heard), 0, "there is room for one page");
    tol_mesh_clear(&plan);
    one_large(&plan, 0);
    cr_assert_eq(tol_mesh_run(&plan, UINT64_MAX, 2, hear, &heard), 2);
    tol_mesh_clear(&plan);
    one_large(&plan, 2);
    cr_assert_eq(tol_mesh_run(&plan, UINT64_MAX, 0, hear, &heard), 4, "both pages find partners");
    tol_mesh_clear(&plan);
}

/* Of a handle that is cut, the page that went to a partner is no page to be met again: where one of
 * the next handle's two pages would meet it, that page needs a handle of its own. */
Test(mesh_plan, what_has_moved_to_a_partner_is_met_once) {
    struct tol_mesh_plan plan;
    struct heard heard = {.next = 10};
    tol_mesh_begin(&plan, GRANULES);
    struct tol_mesh_frame *first = tol_mesh_frame(&plan, 0, 5), *next = tol_mesh_frame(&plan, 1, 4),
                          *single = tol_mesh_frame(&plan, 2, 1);
    cr_assert(tol_mesh_use(&plan, first, 0, 0, GRANULES / 2));
    cr_assert(tol_mesh_use(&plan, first, 4, 0, GRANULES / 2));
    cr_assert(tol_mesh_use(&plan, next, 0, GRANULES / 2, GRANULES / 2));
    cr_assert(tol_mesh_use(&plan, next, 3, GRANULES / 2, GRANULES / 2));
    cr_assert(tol_mesh_use(&plan, single, 0, GRANULES / 2, GRANULES / 2));
    cr_assert_eq(tol_mesh_run(&plan, UINT64_MAX, 1, hear, &heard), 4 + 3);
    cr_assert_eq(heard.moves, 2);
    tol_mesh_clear(&plan);
}
