/*
 * A hash table without chains. A lock guards each eighth of its places, so that threads that launch
 * different problems rarely wait for each other. A place is written and read as a whole.
 */
#include "choose/plan.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 512, LOCKS = 8 };

struct plan_place {
    struct kn_plan_key key; /* owner NULL: the place is free */
    unsigned char plan[KN_PLAN_BYTES];
};

struct kn_plans {
    pthread_mutex_t locks[LOCKS];
    struct plan_place places[PLACES];
};

struct kn_plans *kn_plans_create(void) {
    struct kn_plans *plans = calloc(1, sizeof *plans);
    for (int i = 0; plans != NULL && i < LOCKS; i++) pthread_mutex_init(&plans->locks[i], NULL);
    return plans;
}

void kn_plans_destroy(struct kn_plans *plans) {
    if (plans == NULL) return;
    for (int i = 0; i < LOCKS; i++) pthread_mutex_destroy(&plans->locks[i]);
    free(plans);
}

/* By whole numbers, since a hash of bytes takes as long as a few refusals. */
static size_t plan_place_of(const struct kn_plan_key *key) {
    uint64_t hash = (uint64_t)(uintptr_t)key->owner;
    for (int i = 0; i < KN_PLAN_NUMBERS; i++) {
        hash = (hash ^ (uint64_t)key->numbers[i]) * 0x9e3779b97f4a7c15U;
        hash ^= hash >> 29;
    }
    return (size_t)(hash % PLACES);
}

static bool plan_is_of(const struct plan_place *place, const struct kn_plan_key *key) {
    return place->key.owner == key->owner &&
           memcmp(place->key.numbers, key->numbers, sizeof key->numbers) == 0;
}

bool kn_plans_find(struct kn_plans *plans, const struct kn_plan_key *key, void *plan,
                   size_t bytes) {
    assert(key->owner != NULL && bytes <= KN_PLAN_BYTES);
    const size_t at = plan_place_of(key);
    const struct plan_place *place = &plans->places[at];
    pthread_mutex_lock(&plans->locks[at % LOCKS]);
    const bool is_found = plan_is_of(place, key);
    if (is_found) memcpy(plan, place->plan, bytes);
    pthread_mutex_unlock(&plans->locks[at % LOCKS]);
    return is_found;
}

void kn_plans_keep(struct kn_plans *plans, const struct kn_plan_key *key, const void *plan,
                   size_t bytes) {
    assert(key->owner != NULL && bytes <= KN_PLAN_BYTES);
    const size_t at = plan_place_of(key);
    struct plan_place *place = &plans->places[at];
    pthread_mutex_lock(&plans->locks[at % LOCKS]);
    place->key = *key;
    memcpy(place->plan, plan, bytes);
    pthread_mutex_unlock(&plans->locks[at % LOCKS]);
}

void kn_plans_clear(struct kn_plans *plans) {
    for (size_t at = 0; at < PLACES; at++) {
        pthread_mutex_lock(&plans->locks[at % LOCKS]);
        plans->places[at].key.owner = NULL;
        pthread_mutex_unlock(&plans->locks[at % LOCKS]);
    }
}
