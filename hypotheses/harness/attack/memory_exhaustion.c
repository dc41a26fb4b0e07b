/*
 * Allocates until a request is refused, checks the refusals, frees.
 */
#include "memory_exhaustion.h"

#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

enum { DEADLINE_MS = 60000 };

static const char *const names[] = {"buffers", "the pool", "the driver's pool"};

const char *hyp_memory_exhaustion_name(enum hyp_memory_exhaustion_way way) {
    return names[way];
}

struct tol_pool *hyp_memory_exhaustion_pool(struct hyp_attack *attack,
                                            enum hyp_memory_exhaustion_way way) {
    struct tol_pool_options options = {.source = TOL_POOL_DRIVER};
    struct tol_pool *pool = NULL;
    if (way == HYP_MEMORY_EXHAUSTION_BUFFERS) return NULL;
    if (way == HYP_MEMORY_EXHAUSTION_POOL)
        tol_pool_default(tol_context_device(attack->context), &options);
    tol_status status = tol_pool_create(attack->context, &options, &pool);
    if (status == TOL_UNSUPPORTED) {
        hyp_attack_not_tested(attack, "no_pools", "%s: %s", names[way], hyp_session_message());
    } else {
        (void)hyp_attack_ok(attack, status, "tol_pool_create");
    }
    return pool;
}

bool hyp_memory_exhaustion_open(struct hyp_attack *attack, enum hyp_memory_exhaustion_way way,
                                struct tol_stream *stream,
                                struct hyp_memory_exhaustion *exhaustion) {
    size_t total_bytes = 0;
    if (!HYP_OK(attack, tol_context_memory(attack->context, NULL, &total_bytes))) return false;
    *exhaustion = (struct hyp_memory_exhaustion){
        .way = way,
        .context = attack->context,
        .pool = hyp_memory_exhaustion_pool(attack, way),
        .stream = way == HYP_MEMORY_EXHAUSTION_DRIVERS_POOL ? stream : NULL,
        .first_bytes = total_bytes / 64};
    return way == HYP_MEMORY_EXHAUSTION_BUFFERS || exhaustion->pool != NULL;
}

static tol_status memory_exhaustion_take(struct hyp_memory_exhaustion *exhaustion, size_t bytes) {
    tol_status status = exhaustion->pool != NULL
                            ? tol_pool_allocate(exhaustion->pool, bytes, exhaustion->stream,
                                                &exhaustion->blocks[exhaustion->count])
                            : tol_buffer_create(exhaustion->context, bytes, 1,
                                                &exhaustion->buffers[exhaustion->count]);
    exhaustion->count += status == TOL_OK;
    return status;
}

void hyp_memory_exhaustion_take(struct hyp_memory_exhaustion *exhaustion) {
    size_t bytes = exhaustion->first_bytes;
    while (bytes >= MIB && exhaustion->count < HYP_MEMORY_EXHAUSTION_MAX &&
           exhaustion->trouble[0] == '\0') {
        char number[32];
        tol_status status = memory_exhaustion_take(exhaustion, bytes);
        if (status == TOL_OK) continue;
        snprintf(number, sizeof number, "%zu", bytes);
        exhaustion->refusals++;
        if (status != TOL_OUT_OF_DEVICE_MEMORY || strstr(tol_message(), number) == NULL ||
            strstr(tol_message(), "free") == NULL) {
            snprintf(exhaustion->trouble, sizeof exhaustion->trouble, "%zu bytes: %s: %.500s",
                     bytes, tol_status_name(status), tol_message());
        }
        bytes /= 2;
    }
}

void hyp_memory_exhaustion_check(struct hyp_attack *attack,
                                 const struct hyp_memory_exhaustion *exhaustion) {
    const char *what = names[exhaustion->way];
    HYP_CHECK(attack, exhaustion->trouble[0] == '\0', "%s: %s", what, exhaustion->trouble);
    HYP_CHECK(attack, exhaustion->refusals > 0 && exhaustion->count > 0,
              "%s: %zu blocks were allocated and %zu requests rejected, expected some of each",
              what, exhaustion->count, exhaustion->refusals);
}

void hyp_memory_exhaustion_free(struct hyp_attack *attack,
                                struct hyp_memory_exhaustion *exhaustion) {
    while (exhaustion->count > 0) {
        if (exhaustion->pool == NULL) {
            tol_buffer_destroy(exhaustion->buffers[--exhaustion->count]);
        } else if (!HYP_OK(attack,
                           tol_pool_free(exhaustion->pool, exhaustion->blocks[--exhaustion->count],
                                         exhaustion->stream))) {
            return;
        }
    }
    HYP_OK(attack, tol_context_synchronize(attack->context, DEADLINE_MS));
}

void hyp_memory_exhaustion_end(struct hyp_attack *attack, struct tol_pool *pool) {
    struct tol_pool_stats stats;
    if (pool != NULL && HYP_OK(attack, tol_context_synchronize(attack->context, DEADLINE_MS)) &&
        HYP_OK(attack, tol_pool_trim(pool, 0)) && HYP_OK(attack, tol_pool_stats(pool, &stats))) {
        HYP_CHECK(attack, stats.held == 0 && stats.requested == 0 && stats.used == 0,
                  "the pool still holds %llu bytes, uses %llu and has %llu requested",
                  (unsigned long long)stats.held, (unsigned long long)stats.used,
                  (unsigned long long)stats.requested);
    }
    tol_pool_destroy(pool);
}
