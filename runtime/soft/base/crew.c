/*
 * Each thread takes the next index until there is none.
 */
#include "crew.h"

#include "options.h"

#include <pthread.h>
#include <stdatomic.h>

struct crew {
    void (*piece)(void *context, unsigned thread, size_t index);
    void *context;
    size_t count;
    atomic_size_t next;
};

struct member {
    struct crew *crew;
    unsigned number;
    pthread_t thread;
};

unsigned soft_crew_threads(void) {
    const int workers = soft_options()->workers;
    return workers < SOFT_CREW_MAX ? (unsigned)workers : SOFT_CREW_MAX;
}

static void *crew_work(void *argument) {
    const struct member *member = argument;
    struct crew *crew = member->crew;
    for (;;) {
        size_t index = atomic_fetch_add(&crew->next, 1);
        if (index >= crew->count) return NULL;
        crew->piece(crew->context, member->number, index);
    }
}

void soft_crew_run(unsigned threads, size_t count,
                   void (*piece)(void *context, unsigned thread, size_t index), void *context) {
    struct crew crew = {.piece = piece, .context = context, .count = count};
    struct member members[SOFT_CREW_MAX];
    unsigned made = 1;
    atomic_init(&crew.next, 0);
    members[0] = (struct member){.crew = &crew, .number = 0};
    while (made < threads && made < SOFT_CREW_MAX && made < count) {
        members[made] = (struct member){.crew = &crew, .number = made};
        /* If no thread can be created, fewer do the work. */
        if (pthread_create(&members[made].thread, NULL, crew_work, &members[made]) != 0) break;
        made++;
    }
    crew_work(&members[0]);
    for (unsigned i = 1; i < made; i++) pthread_join(members[i].thread, NULL);
}
