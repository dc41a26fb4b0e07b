/*
 * Taking, refusing, giving back.
 */
#include "memory_exhaustion.h"

#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

enum { DEADLINE_MS = 60000 };

static const char *const names[] = {"buffers", "the pool", "the driver's pool"};

const char *hyp_hoard_name(enum hyp_hoard_way way) {
    return names[way];
}

struct tol_pool *hyp_hoard_pool(struct hyp_attack *attack, enum hyp_hoard_way way) {
    struct tol_pool_options options = {.source = TOL_POOL_DRIVER};
    struct tol_pool *pool = NULL;
    if (way == HYP_HOARD_BUFFERS) return NULL;
    if (way == HYP_HOARD_POOL) tol_pool_default(tol_context_device(attack->context), &options);
    tol_status status = tol_pool_create(attack->context, &options, &pool);
    if (status == TOL_UNSUPPORTED) {
        hyp_attack_note(attack, "%s: %s", names[way], hyp_session_message());
    } else {
        (void)hyp_attack_ok(attack, status, "tol_pool_create");
    }
    return pool;
}

bool hyp_hoard_open(struct hyp_attack *attack, enum hyp_hoard_way way, struct tol_stream *stream,
                    struct hyp_hoard *hoard) {
    size_t total_bytes = 0;
    if (!HYP_OK(attack, tol_context_memory(attack->context, NULL, &total_bytes))) return false;
    *hoard = (struct hyp_hoard){.way = way,
                                .context = attack->context,
                                .pool = hyp_hoard_pool(attack, way),
                                .stream = way == HYP_HOARD_DRIVERS_POOL ? stream : NULL,
                                .first_bytes = total_bytes / 64};
    return way == HYP_HOARD_BUFFERS || hoard->pool != NULL;
}

static tol_status take(struct hyp_hoard *hoard, size_t bytes) {
    tol_status status =
        hoard->pool != NULL
            ? tol_pool_allocate(hoard->pool, bytes, hoard->stream, &hoard->blocks[hoard->count])
            : tol_buffer_create(hoard->context, bytes, 1, &hoard->buffers[hoard->count]);
    hoard->count += status == TOL_OK;
    return status;
}

void hyp_hoard_take(struct hyp_hoard *hoard) {
    size_t bytes = hoard->first_bytes;
    while (bytes >= MIB && hoard->count < HYP_HOARD_MAX && hoard->trouble[0] == '\0') {
        char number[32];
        tol_status status = take(hoard, bytes);
        if (status == TOL_OK) continue;
        snprintf(number, sizeof number, "%zu", bytes);
        hoard->refusals++;
        if (status != TOL_OUT_OF_DEVICE_MEMORY || strstr(tol_message(), number) == NULL ||
            strstr(tol_message(), "free") == NULL) {
            snprintf(hoard->trouble, sizeof hoard->trouble, "%zu bytes: %s: %.500s", bytes,
                     tol_status_name(status), tol_message());
        }
        bytes /= 2;
    }
}

void hyp_hoard_check(struct hyp_attack *attack, const struct hyp_hoard *hoard) {
    const char *what = names[hoard->way];
    HYP_CHECK(attack, hoard->trouble[0] == '\0', "%s: %s", what, hoard->trouble);
    HYP_CHECK(attack, hoard->refusals > 0 && hoard->count > 0,
              "%s: %zu blocks were allocated and %zu requests rejected, expected some of each",
              what, hoard->count, hoard->refusals);
}

void hyp_hoard_give(struct hyp_attack *attack, struct hyp_hoard *hoard) {
    while (hoard->count > 0) {
        if (hoard->pool == NULL) {
            tol_buffer_destroy(hoard->buffers[--hoard->count]);
        } else if (!HYP_OK(attack, tol_pool_free(hoard->pool, hoard->blocks[--hoard->count],
                                                 hoard->stream))) {
            return;
        }
    }
    HYP_OK(attack, tol_context_synchronize(attack->context, DEADLINE_MS));
}

void hyp_hoard_end(struct hyp_attack *attack, struct tol_pool *pool) {
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
