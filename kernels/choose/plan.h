/*
 * Plan: what a call of an operation found out for a problem, kept for the next call of the same.
 *
 * A plan is found by a key: whose it is, and all numbers that it follows from. It holds a copy of
 * what the operation decided: the row, its kernel, the split-K and the like, or a tensor map, whose
 * key has the address. A table has a fixed number of places: two keys of one place replace each
 * other, and the loser decides anew. Thread-safe.
 */
#ifndef KN_PLAN_H
#define KN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KN_PLAN_NUMBERS = 20, KN_PLAN_BYTES = 128 };

struct kn_plan_key {
    const char *owner; /* compared as a pointer: a name of the operation that is constant */
    int64_t numbers[KN_PLAN_NUMBERS];
};

struct kn_plans;

/* NULL: there is no memory. */
struct kn_plans *kn_plans_create(void);
void kn_plans_destroy(struct kn_plans *plans); /* NULL is a no-op */

/* Copies the plan of a key, of up to KN_PLAN_BYTES bytes. false: there is none. */
bool kn_plans_find(struct kn_plans *plans, const struct kn_plan_key *key, void *plan, size_t bytes);

/* Keeps a copy of a plan. */
void kn_plans_keep(struct kn_plans *plans, const struct kn_plan_key *key, const void *plan,
                   size_t bytes);

/* Forgets all. */
void kn_plans_clear(struct kn_plans *plans);

#endif
