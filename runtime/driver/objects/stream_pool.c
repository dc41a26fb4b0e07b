/*
 * A list of streams under one lock, a stack of events, and a key for the threads.
 *
 * An event may be recorded again as soon as the waits for it are queued, because a wait refers to
 * the recording that it found. So a fork or a join keeps its events only during its own call.
 */
#include "tollens/stream_pool.h"

#include "core/check.h"
#include "core/stream_state.h"

#include <stdlib.h>

enum { MAX_STREAMS = 32 };

struct entry {
    struct tol_stream *stream;
    int priority;
    bool lent, is_threads;
    struct tol_stream_pool *pool; /* for the thread that has it */
    struct entry *next;
};

struct spare_event {
    struct tol_event *event;
    struct spare_event *next;
};

struct tol_stream_pool {
    struct tol_context *context;
    unsigned max_streams;
    int lowest, highest;
    pthread_key_t key; /* a thread's own entry */
    pthread_mutex_t lock;
    struct entry *entries;
    struct spare_event *events;
    unsigned events_made;
};

static void give_of_thread(void *value) {
    struct entry *entry = value;
    pthread_mutex_lock(&entry->pool->lock);
    entry->lent = entry->is_threads = false;
    pthread_mutex_unlock(&entry->pool->lock);
}

tol_status tol_stream_pool_create(struct tol_context *context,
                                  const struct tol_stream_pool_options *options,
                                  struct tol_stream_pool **result) {
    tol_status status = TOL_OK;
    struct tol_stream_pool *pool = NULL;
    TOL_CHECK(context != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_stream_pool_create: an argument is NULL");
    pool = calloc(1, sizeof *pool);
    TOL_CHECK(pool != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a pool of streams");
    pool->context = context;
    pool->max_streams =
        options != NULL && options->max_streams > 0 ? options->max_streams : MAX_STREAMS;
    TOL_TRY(tol_context_priorities(context, &pool->lowest, &pool->highest));
    TOL_CHECK(pthread_key_create(&pool->key, give_of_thread) == 0, TOL_OUT_OF_HOST_MEMORY,
              "the process has no thread-specific key left for the streams of threads");
    pthread_mutex_init(&pool->lock, NULL);
    tol_context_retain(context);
    *result = pool;
    pool = NULL;
out:
    free(pool);
    return status;
}

void tol_stream_pool_destroy(struct tol_stream_pool *pool) {
    if (pool == NULL) return;
    pthread_key_delete(pool->key);
    while (pool->entries != NULL) {
        struct entry *entry = pool->entries;
        pool->entries = entry->next;
        tol_stream_destroy(entry->stream);
        free(entry);
    }
    while (pool->events != NULL) {
        struct spare_event *spare = pool->events;
        pool->events = spare->next;
        tol_event_destroy(spare->event);
        free(spare);
    }
    pthread_mutex_destroy(&pool->lock);
    tol_context_destroy(pool->context);
    free(pool);
}

/* Takes an entry of a priority: an idle one; or none, if another may be created; or any. The caller
 * holds the lock. */
static struct entry *take_held(struct tol_stream_pool *pool, int priority, unsigned *made) {
    struct entry *busy = NULL;
    *made = 0;
    for (struct entry *entry = pool->entries; entry != NULL; entry = entry->next) {
        if (entry->priority != priority) continue;
        ++*made;
        if (entry->lent) continue;
        CUresult answer = pool->context->functions->cuStreamQuery(entry->stream->handle);
        if (answer != CUDA_ERROR_NOT_READY) return entry;
        busy = entry;
    }
    return *made < pool->max_streams ? NULL : busy;
}

static tol_status stream_pool_take(struct tol_stream_pool *pool, int priority,
                                   struct entry **result) {
    tol_status status = TOL_OK;
    unsigned made = 0;
    if (priority > pool->lowest) priority = pool->lowest;
    if (priority < pool->highest) priority = pool->highest;
    const struct tol_stream_options options = {.priority = priority};
    TOL_TRY(tol_context_enter(pool->context));
    pthread_mutex_lock(&pool->lock);
    struct entry *entry = take_held(pool, priority, &made);
    if (entry == NULL && made >= pool->max_streams) {
        status = tol_fail(__FILE__, __LINE__, TOL_OVER_LIMIT,
                          "all %u streams of priority %d are lent", made, priority);
    } else if (entry == NULL) {
        entry = calloc(1, sizeof *entry);
        if (entry == NULL) {
            status = tol_fail(__FILE__, __LINE__, TOL_OUT_OF_HOST_MEMORY,
                              "no host memory for a stream of a pool");
        } else if ((status = tol_stream_create(pool->context, &options, &entry->stream)) !=
                   TOL_OK) {
            free(entry);
        } else {
            entry->priority = priority;
            entry->pool = pool;
            entry->next = pool->entries;
            pool->entries = entry;
        }
    }
    if (status == TOL_OK) {
        entry->lent = true;
        *result = entry;
    }
    pthread_mutex_unlock(&pool->lock);
out:
    return status;
}

tol_status tol_stream_pool_take(struct tol_stream_pool *pool, int priority,
                                struct tol_stream **stream) {
    tol_status status = TOL_OK;
    struct entry *entry = NULL;
    TOL_CHECK(pool != NULL && stream != NULL, TOL_INVALID_ARGUMENT,
              "tol_stream_pool_take: an argument is NULL");
    TOL_TRY(stream_pool_take(pool, priority, &entry));
    *stream = entry->stream;
out:
    return status;
}

tol_status tol_stream_pool_give(struct tol_stream_pool *pool, struct tol_stream *stream) {
    tol_status status = TOL_OK;
    TOL_CHECK(pool != NULL && stream != NULL, TOL_INVALID_ARGUMENT,
              "tol_stream_pool_give: an argument is NULL");
    pthread_mutex_lock(&pool->lock);
    struct entry *entry = pool->entries;
    while (entry != NULL && entry->stream != stream) entry = entry->next;
    bool mine = entry != NULL && entry->lent && !entry->is_threads;
    if (mine) entry->lent = false;
    pthread_mutex_unlock(&pool->lock);
    TOL_CHECK(mine, TOL_INVALID_ARGUMENT, "the stream is %s",
              entry == NULL ? "not from this pool" : "not lent, or is a thread's own");
out:
    return status;
}

static tol_status stream_pool_take_event(struct tol_stream_pool *pool,
                                         struct spare_event **result) {
    tol_status status = TOL_OK;
    pthread_mutex_lock(&pool->lock);
    struct spare_event *spare = pool->events;
    if (spare != NULL) pool->events = spare->next;
    pthread_mutex_unlock(&pool->lock);
    if (spare == NULL) {
        spare = calloc(1, sizeof *spare);
        TOL_CHECK(spare != NULL, TOL_OUT_OF_HOST_MEMORY,
                  "no host memory for an event of a pool of streams");
        status = tol_event_create(pool->context, false, &spare->event);
        if (status != TOL_OK) {
            free(spare);
            goto out;
        }
        pthread_mutex_lock(&pool->lock);
        pool->events_made++;
        pthread_mutex_unlock(&pool->lock);
    }
    *result = spare;
out:
    return status;
}

static void give_event(struct tol_stream_pool *pool, struct spare_event *spare) {
    if (spare == NULL) return;
    pthread_mutex_lock(&pool->lock);
    spare->next = pool->events;
    pool->events = spare;
    pthread_mutex_unlock(&pool->lock);
}

tol_status tol_stream_pool_fork(struct tol_stream_pool *pool, struct tol_stream *from, size_t count,
                                struct tol_stream **streams) {
    tol_status status = TOL_OK;
    struct spare_event *spare = NULL;
    size_t taken = 0;
    int priority = 0;
    TOL_CHECK(pool != NULL && from != NULL && streams != NULL, TOL_INVALID_ARGUMENT,
              "tol_stream_pool_fork: an argument is NULL");
    TOL_TRY(tol_stream_properties(from, &priority, NULL));
    TOL_TRY(stream_pool_take_event(pool, &spare));
    TOL_TRY(tol_event_record(spare->event, from));
    for (; taken < count; taken++) {
        TOL_TRY(tol_stream_pool_take(pool, priority, &streams[taken]));
        status = tol_stream_wait_event(streams[taken], spare->event);
        if (status != TOL_OK) {
            taken++;
            goto out;
        }
    }
out:
    if (status != TOL_OK && pool != NULL) {
        while (taken > 0) (void)tol_stream_pool_give(pool, streams[--taken]);
    }
    if (spare != NULL) give_event(pool, spare);
    return status;
}

tol_status tol_stream_pool_join(struct tol_stream_pool *pool, struct tol_stream *to, size_t count,
                                struct tol_stream *const *streams) {
    tol_status status = TOL_OK;
    struct spare_event *spare = NULL;
    TOL_CHECK(pool != NULL && to != NULL && (streams != NULL || count == 0), TOL_INVALID_ARGUMENT,
              "tol_stream_pool_join: an argument is NULL");
    TOL_TRY(stream_pool_take_event(pool, &spare));
    for (size_t i = 0; i < count; i++) {
        TOL_TRY(tol_event_record(spare->event, streams[i]));
        TOL_TRY(tol_stream_wait_event(to, spare->event));
    }
    for (size_t i = 0; i < count; i++) TOL_TRY(tol_stream_pool_give(pool, streams[i]));
out:
    if (spare != NULL) give_event(pool, spare);
    return status;
}

tol_status tol_stream_pool_of_thread(struct tol_stream_pool *pool, struct tol_stream **stream) {
    tol_status status = TOL_OK;
    TOL_CHECK(pool != NULL && stream != NULL, TOL_INVALID_ARGUMENT,
              "tol_stream_pool_of_thread: an argument is NULL");
    struct entry *entry = pthread_getspecific(pool->key);
    if (entry == NULL) {
        TOL_TRY(stream_pool_take(pool, 0, &entry));
        pthread_mutex_lock(&pool->lock);
        entry->is_threads = true;
        pthread_mutex_unlock(&pool->lock);
        if (pthread_setspecific(pool->key, entry) != 0) {
            give_of_thread(entry);
            TOL_FAIL(TOL_OUT_OF_HOST_MEMORY, "no host memory for a stream for this thread");
        }
    }
    *stream = entry->stream;
out:
    return status;
}

tol_status tol_stream_pool_stats(struct tol_stream_pool *pool,
                                 struct tol_stream_pool_stats *stats) {
    tol_status status = TOL_OK;
    TOL_CHECK(pool != NULL && stats != NULL, TOL_INVALID_ARGUMENT,
              "tol_stream_pool_stats: an argument is NULL");
    *stats = (struct tol_stream_pool_stats){0};
    pthread_mutex_lock(&pool->lock);
    for (const struct entry *entry = pool->entries; entry != NULL; entry = entry->next) {
        stats->made++;
        stats->lent += entry->lent;
        stats->threads += entry->is_threads;
    }
    stats->events = pool->events_made;
    pthread_mutex_unlock(&pool->lock);
out:
    return status;
}
