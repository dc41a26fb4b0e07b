/*
 * Rounds: compares the bits that each case read back with those of the first round. Cases are known
 * by their place in the round. One thread. Internal: not installed.
 */
#ifndef KN_ROUNDS_H
#define KN_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rounds {
    size_t round; /* from 0 */
    size_t at;    /* the next case of this round */
    size_t count, capacity;
    struct round_case {
        char name[160];
        uint64_t checksum;
    } * cases;          /* of the first round */
    size_t differences; /* cases of later rounds whose bits differ, or that are not the same case */
    size_t compared;
};

/* Starts the next round. false: the round that ended had another number of cases than the first. */
bool rounds_next(struct rounds *rounds);

/* Takes a case: remembers it in the first round, compares it in later ones, and prints a line if it
 * differs. false: out of memory. */
bool rounds_take(struct rounds *rounds, const char *name, uint64_t checksum);

void rounds_end(struct rounds *rounds);

#endif
