/*
 * A list of cases in their order, which is the same in each round.
 */
#include "rounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rounds_next(struct rounds *rounds) {
    const bool is_whole = rounds->round == 0 || rounds->at == rounds->count;
    rounds->round++;
    rounds->at = 0;
    return is_whole;
}

static bool rounds_remember(struct rounds *rounds, const char *name, uint64_t checksum) {
    if (rounds->count == rounds->capacity) {
        const size_t capacity = rounds->capacity == 0 ? 1024 : 2 * rounds->capacity;
        struct round_case *more = realloc(rounds->cases, capacity * sizeof *more);
        if (more == NULL) return false;
        rounds->cases = more;
        rounds->capacity = capacity;
    }
    struct round_case *one = &rounds->cases[rounds->count++];
    snprintf(one->name, sizeof one->name, "%s", name);
    one->checksum = checksum;
    return true;
}

bool rounds_take(struct rounds *rounds, const char *name, uint64_t checksum) {
    if (rounds->round == 0) return rounds_remember(rounds, name, checksum);
    const size_t at = rounds->at++;
    const struct round_case *first = at < rounds->count ? &rounds->cases[at] : NULL;
    rounds->compared++;
    if (first != NULL && strcmp(first->name, name) == 0 && first->checksum == checksum) return true;
    rounds->differences++;
    printf("DIFFERS %s in round %zu\n", name, rounds->round + 1);
    return true;
}

void rounds_end(struct rounds *rounds) {
    free(rounds->cases);
    *rounds = (struct rounds){0};
}
