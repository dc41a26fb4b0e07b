/*
 * One fault is installed in a process, so one count of calls is enough.
 */
#include "rare_turn.h"

#include <stdatomic.h>

static _Atomic uint64_t calls;
static uint64_t every = 1, place;

/* SplitMix64's finalizer, as hyp_random; "FNV-1a" (Fowler, Noll and Vo) for the name. */
static uint64_t rare_turn_mix(uint64_t z, const char *name) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name != '\0'; name++) hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    z = (z + 1) * 0x9e3779b97f4a7c15u ^ hash;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void hyp_rare_begin(double one_in, uint64_t seed, const char *attack) {
    atomic_store(&calls, 0);
    every = one_in >= 1 ? (uint64_t)one_in : 1;
    place = rare_turn_mix(seed, attack);
}

bool hyp_rare_now(void) {
    return atomic_fetch_add(&calls, 1) % every == place % every;
}

bool hyp_rare_byte(uint64_t bytes, uint64_t period, uint64_t *at) {
    const uint64_t before = atomic_fetch_add(&calls, bytes);
    if (period == 0) return false;
    *at = (place % period + period - before % period) % period;
    return *at < bytes;
}

unsigned hyp_rare_bit(void) {
    return (unsigned)(place >> 61);
}
