/*
 * Programs drawn at random: whatever the PTX builder takes, a driver loads; and whatever it refuses
 * it refuses with a line.
 */
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

TestSuite(ptx_random, .fini = test_end);

enum { PROGRAMS = 400, STEPS = 60, VALUES = 64 };

/* Which forms and conversions there are, by asking. */
static bool has_form[TOL_PTX_OP_COUNT][TOL_PTX_TYPE_COUNT];
static bool converts[TOL_PTX_TYPE_COUNT][TOL_PTX_TYPE_COUNT];

struct draw {
    struct tol_ptx *p;
    uint32_t state;
    tol_ptx_value values[VALUES];
    unsigned count;
    tol_ptx_value address, shared;
    unsigned depth; /* of blocks inside the kernel */
    bool careful;   /* looks for operands of one type; else any are tried */
};

static uint32_t draw(struct draw *d, uint32_t below) {
    d->state ^= d->state << 13, d->state ^= d->state >> 17, d->state ^= d->state << 5;
    return d->state % below;
}

static tol_ptx_value any(struct draw *d) {
    return d->values[draw(d, d->count)];
}

/* A value of a type, or any. */
static tol_ptx_value like(struct draw *d, tol_ptx_type type) {
    tol_ptx_value value = any(d);
    for (int i = 0; i < 200 && tol_ptx_type_of(d->p, value) != type; i++) value = any(d);
    return value;
}

static void keep(struct draw *d, tol_ptx_value value) {
    if (d->count < VALUES) d->values[d->count++] = value;
}

/* A value of a type, alone in a kernel of a builder of its own. */
static tol_ptx_value alone(tol_ptx_type type, struct tol_ptx **p) {
    MUST(tol_ptx_create(tol_context_device(test_context())->compute_capability, p));
    tol_ptx_kernel(*p, "k", 0);
    tol_ptx_value at = tol_ptx_parameter(*p, TOL_PTX_U64);
    return type == TOL_PTX_PRED ? tol_ptx_compare(*p, TOL_PTX_EQ, at, at)
                                : tol_ptx_load(*p, TOL_PTX_GLOBAL, type, at, 0);
}

static void ask(void) {
    struct tol_ptx *p = NULL;
    for (int type = 0; type < TOL_PTX_TYPE_COUNT; type++) {
        for (int op = 0; op < TOL_PTX_OP_COUNT; op++) {
            tol_ptx_value x = alone((tol_ptx_type)type, &p);
            x = tol_ptx_op_at(p, TOL_PTX_HERE, (tol_ptx_op)op, x, x, x);
            has_form[op][type] = tol_ptx_type_of(p, x) != TOL_PTX_TYPE_COUNT;
            tol_ptx_destroy(p);
        }
        for (int to = 0; to < TOL_PTX_TYPE_COUNT; to++) {
            tol_ptx_value x = alone((tol_ptx_type)type, &p);
            x = tol_ptx_convert(p, (tol_ptx_type)to, x);
            converts[to][type] = tol_ptx_type_of(p, x) != TOL_PTX_TYPE_COUNT;
            tol_ptx_destroy(p);
        }
    }
}

static void constants(struct draw *d) {
    keep(d, tol_ptx_u32(d->p, draw(d, 100)));
    keep(d, tol_ptx_s32(d->p, -(int32_t)draw(d, 100)));
    keep(d, tol_ptx_u64(d->p, draw(d, 1000)));
    keep(d, tol_ptx_f32(d->p, (float)draw(d, 1000) / 8));
    keep(d, tol_ptx_f64(d->p, 1.0 / (1 + draw(d, 9))));
}

/* One instruction. The careful ask for what there is; and what a block has made they forget. */
static void step(struct draw *d) {
    struct tol_ptx *p = d->p;
    tol_ptx_value a = any(d);
    tol_ptx_type type = tol_ptx_type_of(p, a), other = (tol_ptx_type)draw(d, TOL_PTX_TYPE_COUNT);
    tol_ptx_value b = d->careful ? like(d, type) : any(d);
    tol_ptx_value truth = d->careful ? like(d, TOL_PTX_PRED) : any(d);
    tol_ptx_op op = (tol_ptx_op)draw(d, TOL_PTX_OP_COUNT);
    bool is_bit = type == TOL_PTX_PRED, careless = !d->careful;
    switch (draw(d, 8)) {
    case 0:
        keep(d, tol_ptx_compare(p, (tol_ptx_comparison)draw(d, 6), like(d, TOL_PTX_U32),
                                like(d, TOL_PTX_U32)));
        return;
    case 1:
        if (!is_bit || careless) keep(d, tol_ptx_select(p, truth, a, b));
        return;
    case 2:
        if (other == TOL_PTX_PRED && d->careful) return;
        keep(d, tol_ptx_load(p, TOL_PTX_GLOBAL, other, d->address, 8 * (int32_t)draw(d, 8)));
        return;
    case 3:
        if (is_bit && d->careful) return;
        tol_ptx_store(p, TOL_PTX_SHARED, d->shared, 8 * (int32_t)draw(d, 8), a);
        return;
    case 4:
        if (careless || converts[other][type]) keep(d, tol_ptx_convert(p, other, a));
        return;
    case 5:
        keep(d, tol_ptx_variable(p, a));
        return;
    default:
        if (careless || has_form[op][type]) keep(d, tol_ptx_op_at(p, TOL_PTX_HERE, op, a, b, b));
        return;
    }
}

static void block(struct draw *d) {
    unsigned count = d->count;
    tol_ptx_value truth =
        tol_ptx_compare(d->p, TOL_PTX_LT, like(d, TOL_PTX_U32), like(d, TOL_PTX_U32));
    bool loops = draw(d, 2) == 0;
    if (loops) {
        tol_ptx_loop(d->p);
    } else {
        tol_ptx_if(d->p, truth);
    }
    for (uint32_t i = draw(d, 8); i > 0; i--) step(d);
    if (loops) tol_ptx_break_if(d->p, truth);
    if (!loops && draw(d, 2) == 0) {
        d->count = count;
        tol_ptx_else(d->p);
        for (uint32_t i = draw(d, 8); i > 0; i--) step(d);
    }
    tol_ptx_end(d->p);
    d->count = count;
}

/* Returns whether the builder took it. */
static bool program(uint32_t seed, bool careful) {
    struct draw d = {.state = seed * 2654435761u + 1, .careful = careful};
    const char *text = NULL;
    struct tol_module *module = NULL;
    MUST(tol_ptx_create(tol_context_device(test_context())->compute_capability, &d.p));
    tol_ptx_kernel(d.p, "drawn", 32);
    d.address = tol_ptx_parameter(d.p, TOL_PTX_U64);
    d.shared = tol_ptx_shared(d.p, 128);
    constants(&d);
    keep(&d, tol_ptx_compare(d.p, TOL_PTX_EQ, d.shared, d.shared));
    for (int i = 0; i < STEPS; i++) {
        if (draw(&d, 12) == 0) {
            block(&d);
        } else {
            step(&d);
        }
    }
    tol_ptx_end(d.p);
    tol_status status = tol_ptx_finish(d.p, &text, NULL);
    if (status == TOL_OK) {
        cr_assert_eq(tol_module_load(test_context(), text, strlen(text), NULL, &module), TOL_OK,
                     "seed %u: %s\n%s", seed, tol_message(), text);
        tol_module_destroy(module);
    } else {
        cr_assert(strstr(tol_message(), "ptx_random_test.c:") != NULL, "%s", tol_message());
    }
    tol_ptx_destroy(d.p);
    return status == TOL_OK;
}

Test(ptx_random, what_is_taken_loads) {
    unsigned taken = 0;
    ask();
    for (uint32_t seed = 1; seed <= PROGRAMS; seed++) taken += program(seed, seed % 4 != 0);
    cr_assert(taken > PROGRAMS / 2 && taken < PROGRAMS, "%u of %d were taken", taken, PROGRAMS);
}
