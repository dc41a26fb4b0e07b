/*
 * Each kind of object reports its allocations, one at a time; the sums are made here.
 */
#include "tollens/health.h"

#include "core/check.h"
#include "core/residence.h"
#include "nvml.h"
#include "core/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tol_held_name(unsigned kind) {
    static const char *const names[TOL_HELD_KINDS] = {"buffer", "pool block", "VRAM block",
                                                      "pinned block"};
    return kind < TOL_HELD_KINDS ? names[kind] : NULL;
}

/* ---- holders of memory ---- */

void tol_context_add_holder(struct tol_context *context, struct tol_holder *holder,
                            void (*report)(struct tol_holder *, tol_held_visit *, void *)) {
    holder->report = report;
    pthread_mutex_lock(&context->holders_lock);
    holder->next = context->holders;
    holder->link = &context->holders;
    if (holder->next != NULL) holder->next->link = &holder->next;
    context->holders = holder;
    pthread_mutex_unlock(&context->holders_lock);
}

void tol_context_drop_holder(struct tol_context *context, struct tol_holder *holder) {
    pthread_mutex_lock(&context->holders_lock);
    /* NULL if the creation failed earlier. Removing a neighbour changes it. */
    if (holder->link != NULL) {
        *holder->link = holder->next;
        if (holder->next != NULL) holder->next->link = holder->link;
        holder->link = NULL;
    }
    pthread_mutex_unlock(&context->holders_lock);
}

void tol_health_each(struct tol_context *context, tol_held_visit *visit, void *user) {
    if (context == NULL || visit == NULL) return;
    pthread_mutex_lock(&context->holders_lock);
    for (struct tol_holder *holder = context->holders; holder != NULL; holder = holder->next) {
        holder->report(holder, visit, user);
    }
    pthread_mutex_unlock(&context->holders_lock);
}

/* ---- places: a table by address and kind, at most half full ---- */

struct place {
    const void *site;
    enum tol_held_kind kind;
    struct tol_health_sum sum;
};

struct tol_health_mark {
    uint64_t context; /* its number */
    struct place *places;
    size_t room, count;
};

static struct place *health_find_place(const struct tol_health_mark *mark, const void *site,
                                       enum tol_held_kind kind) {
    size_t at = ((uintptr_t)site * 0x9e3779b97f4a7c15u >> 32) + kind;
    for (;; at++) {
        struct place *place = &mark->places[at & (mark->room - 1)];
        if (place->sum.count == 0 || (place->site == site && place->kind == kind)) return place;
    }
}

static bool health_grow(struct tol_health_mark *mark) {
    struct tol_health_mark more = {.room = mark->room > 0 ? 2 * mark->room : 64};
    more.places = calloc(more.room, sizeof *more.places);
    if (more.places == NULL) return false;
    for (size_t i = 0; i < mark->room; i++) {
        const struct place *place = &mark->places[i];
        if (place->sum.count > 0) *health_find_place(&more, place->site, place->kind) = *place;
    }
    free(mark->places);
    mark->places = more.places;
    mark->room = more.room;
    return true;
}

static bool add_place(struct tol_health_mark *mark, const struct tol_held *held) {
    if (2 * mark->count >= mark->room && !health_grow(mark)) return false;
    struct place *place = health_find_place(mark, held->site, held->kind);
    mark->count += place->sum.count == 0;
    place->site = held->site;
    place->kind = held->kind;
    place->sum.count++;
    place->sum.bytes += held->bytes;
    return true;
}

struct marking {
    struct tol_health_mark *mark;
    bool is_out_of_memory;
};

static void mark_one(void *user, const struct tol_held *held) {
    struct marking *marking = user;
    if (!add_place(marking->mark, held)) marking->is_out_of_memory = true;
}

tol_status tol_health_mark_create(struct tol_context *context, struct tol_health_mark **result) {
    tol_status status = TOL_OK;
    struct tol_health_mark *mark = NULL;
    TOL_CHECK(context != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_health_mark_create: an argument is NULL");
    mark = calloc(1, sizeof *mark);
    TOL_CHECK(mark != NULL && health_grow(mark), TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a mark");
    mark->context = context->id;
    struct marking marking = {.mark = mark};
    tol_health_each(context, mark_one, &marking);
    TOL_CHECK(!marking.is_out_of_memory, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a mark of %zu call sites", mark->count);
    *result = mark;
    mark = NULL;
out:
    tol_health_mark_destroy(mark);
    return status;
}

void tol_health_mark_destroy(struct tol_health_mark *mark) {
    if (mark == NULL) return;
    free(mark->places);
    free(mark);
}

/* ---- the check ---- */

struct checking {
    struct tol_context *context;
    struct tol_health *health;
    struct marking now;
    tol_status status;      /* of the first failed query for a kind of memory ... */
    bool is_silent;         /* ... after which the driver is not called */
    struct tol_held astray; /* the first that is not on the device */
};

static void health_check_one(void *user, const struct tol_held *held) {
    struct checking *checking = user;
    struct tol_health *health = checking->health;
    enum tol_residence residence = TOL_RESIDENCE_UNKNOWN;
    health->held[held->kind].count++;
    health->held[held->kind].bytes += held->bytes;
    mark_one(&checking->now, held);
    if (checking->is_silent || held->kind == TOL_HELD_PINNED) return;
    checking->status = tol_context_residence(checking->context, held->address, &residence);
    checking->is_silent = checking->status != TOL_OK;
    if (checking->is_silent) return;
    const bool is_resident = residence == TOL_RESIDENCE_DEVICE;
    if (!is_resident && health->astray == 0) checking->astray = *held;
    health->resident += is_resident;
    health->astray += !is_resident;
}

static void health_compare(struct tol_health *health, const struct tol_health_mark *before,
                           const struct tol_health_mark *now) {
    for (size_t i = 0; i < now->room; i++) {
        const struct place *place = &now->places[i];
        if (place->sum.count == 0) continue;
        const struct tol_health_sum was = health_find_place(before, place->site, place->kind)->sum;
        const uint64_t count = place->sum.count > was.count ? place->sum.count - was.count : 0;
        const uint64_t bytes = place->sum.bytes > was.bytes ? place->sum.bytes - was.bytes : 0;
        if (count == 0 && bytes == 0) continue;
        health->leaked.count += count;
        health->leaked.bytes += bytes;
        if (health->worst_site == NULL || bytes > health->worst.bytes) {
            health->worst = (struct tol_health_sum){count, bytes};
            health->worst_kind = place->kind;
            health->worst_site = place->site;
        }
    }
}

static void ask_device(struct tol_context *context, struct tol_health_device *report) {
    struct tol_nvml nvml = {-1, -1, -1, -1, -1};
    report->is_told = tol_nvml_ask(context->device.pci_bus_id, context->device.name, &nvml,
                                   report->reason, sizeof report->reason);
    report->free_bytes = nvml.free_bytes;
    report->used_bytes = nvml.used_bytes;
    report->process_bytes = nvml.process_bytes;
    report->ecc_uncorrected = nvml.ecc_uncorrected;
    report->temperature_celsius = nvml.temperature_celsius;
}

static void health_complain(struct tol_health *health, const char *format, ...) TOL_PRINTF(2, 3);
static void health_complain(struct tol_health *health, const char *format, ...) {
    const size_t length = strlen(health->complaint);
    va_list arguments;
    health->is_healthy = false;
    if (length > 0 && length + 3 < sizeof health->complaint) strcat(health->complaint, "; ");
    const size_t at = strlen(health->complaint);
    va_start(arguments, format);
    vsnprintf(health->complaint + at, sizeof health->complaint - at, format, arguments);
    va_end(arguments);
}

static const char *health_ending(uint64_t count) {
    return count == 1 ? "" : "s";
}

static void health_judge(struct tol_health *health, const struct tol_context *context,
                         const struct tol_held *astray) {
    char site[TOL_SITE_BYTES];
    const uint64_t all = health->astray + health->resident;
    health->is_healthy = true;
    if (health->is_lost) health_complain(health, "%.200s", context->poison_message);
    if (health->astray > 0) {
        health_complain(
            health, "%llu of %llu allocations are not in device memory, the first is a %s at %#llx",
            (unsigned long long)health->astray, (unsigned long long)all,
            tol_held_name(astray->kind), (unsigned long long)astray->address);
    }
    if (health->worst_site != NULL || health->leaked.count > 0) {
        health_complain(
            health,
            "%llu allocation%s and %llu byte%s more than at the mark, of which %llu "
            "byte%s of %ss from %.100s",
            (unsigned long long)health->leaked.count, health_ending(health->leaked.count),
            (unsigned long long)health->leaked.bytes, health_ending(health->leaked.bytes),
            (unsigned long long)health->worst.bytes, health_ending(health->worst.bytes),
            tol_held_name(health->worst_kind), tol_site_text(health->worst_site, site));
    }
    if (health->device.ecc_uncorrected > 0) {
        health_complain(health, "%lld uncorrected ECC error%s",
                        (long long)health->device.ecc_uncorrected,
                        health_ending((uint64_t)health->device.ecc_uncorrected));
    }
}

/* What needs the driver, which cannot be called after a fatal error. */
static tol_status health_ask_driver(struct tol_context *context, struct tol_health *health) {
    tol_status status = TOL_OK;
    TOL_TRY(tol_context_enter(context));
    TOL_TRY(tol_context_ask_streams(context, &health->streams, &health->busy));
    TOL_CONTEXT_CU(context, cuMemGetInfo_v2, (&health->free_bytes, &health->total_bytes),
                   "getting the free memory");
out:
    return status;
}

static bool is_lost(const struct tol_context *context) {
    return atomic_load_explicit(&context->poisoned, memory_order_acquire);
}

tol_status tol_health_check(struct tol_context *context, const struct tol_health_mark *since,
                            struct tol_health *result) {
    tol_status status = TOL_OK;
    struct tol_health health = {0};
    struct tol_health_mark now = {0};
    TOL_CHECK(context != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_health_check: an argument is NULL");
    TOL_CHECK(since == NULL || since->context == context->id, TOL_INVALID_ARGUMENT,
              "the mark belongs to another context");
    TOL_CHECK(health_grow(&now), TOL_OUT_OF_HOST_MEMORY, "no host memory for a list of call sites");
    now.context = context->id;
    status = health_ask_driver(context, &health);
    if (status != TOL_OK && !is_lost(context)) goto out;
    struct checking checking = {.context = context,
                                .health = &health,
                                .now = {.mark = &now},
                                .is_silent = is_lost(context)};
    tol_health_each(context, health_check_one, &checking);
    status = checking.status;
    if (status != TOL_OK && !is_lost(context)) goto out;
    TOL_CHECK(!checking.now.is_out_of_memory, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a list of %zu call sites", now.count);
    if (since != NULL) health_compare(&health, since, &now);
    pthread_mutex_lock(&context->lock);
    for (const struct tol_left *left = context->left; left != NULL; left = left->next) {
        health.ending++;
    }
    pthread_mutex_unlock(&context->lock);
    health.is_lost = is_lost(context);
    if (health.is_lost) health.error = context->poison_result;
    ask_device(context, &health.device);
    health_judge(&health, context, &checking.astray);
    *result = health;
    status = TOL_OK;
out:
    free(now.places);
    return status;
}
