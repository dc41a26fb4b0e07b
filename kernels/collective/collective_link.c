/*
 * Words and notes in the shared page; waiting, and giving up.
 */
#include "collective/collective_link.h"

#include "collective/collective_meeting.h"
#include "core/check.h"
#include "core/monotonic.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NOTES = 64, NOTE_TEXT = 120, RELEASE_MS = 2000 };
enum { WAIT_GEQ = 0, REGISTER = 3 }; /* of cuda.h: WAIT_VALUE_GEQ; PORTABLE and DEVICEMAP */

struct note {
    _Atomic uint64_t number; /* of the call, from 1; written last */
    struct kn_link_call call;
};

struct kn_link_page {
    _Atomic uint32_t broken; /* 0, or 1 + the rank that was lost + 256 * the rank that says so */
    struct {
        _Alignas(128) _Atomic uint32_t word;
    } ranks[KN_COLLECTIVE_RANKS_MAX];
    struct note notes[KN_COLLECTIVE_RANKS_MAX][NOTES];
};

_Static_assert(sizeof(struct kn_link_page) <= KN_MEETING_PAGE_BYTES, "the page is too small");

/* ---- life ---- */

tol_status kn_link_open(struct tol_context *context, struct kn_meeting *meeting,
                        struct kn_collective_link *link) {
    tol_status status = TOL_OK;
    const struct tol_driver_table *driver = tol_context_functions(context);
    void *page =
        mmap(NULL, KN_MEETING_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, meeting->page, 0);
    TOL_CHECK(page != MAP_FAILED, TOL_OUT_OF_HOST_MEMORY, "the ranks' page cannot be mapped");
    link->page = page;
    for (unsigned i = 0; i < link->ranks; i++) {
        link->lives[i] = meeting->lives[i];
        meeting->lives[i] = -1;
    }
    TOL_TRY(tol_context_bind(context));
    TOL_CU(driver, cuMemHostRegister_v2, (page, KN_MEETING_PAGE_BYTES, REGISTER),
           "the page that the ranks of a collective share");
    TOL_CU(driver, cuMemHostGetDevicePointer_v2, (&link->words, page, 0),
           "the page that the ranks of a collective share");
out:
    return status;
}

void kn_link_close(struct kn_collective *c, bool is_done) {
    struct kn_collective_link *link = c->link;
    struct tol_context *context = c->rank[c->local].context;
    if (context != NULL && is_done && tol_context_bind(context) == TOL_OK) {
        const struct tol_driver_table *driver = tol_context_functions(context);
        for (unsigned i = 0; i < link->ranks; i++) kn_window_close(context, &link->windows[i]);
        if (link->words != 0) (void)driver->cuMemHostUnregister(link->page);
        if (link->page != NULL) munmap(link->page, KN_MEETING_PAGE_BYTES);
    }
    for (unsigned i = 0; i < link->ranks; i++) {
        if (link->lives[i] >= 0) close(link->lives[i]);
    }
    if (link->own_life >= 0) close(link->own_life);
    free(link);
}

/* ---- steps ---- */

static void collective_link_settle(struct kn_collective_link *link) {
    link->base += link->steps;
    link->steps = 0;
}

void kn_link_settle(struct kn_collective *c) {
    collective_link_settle(c->link);
}

void kn_link_begin(struct kn_collective_link *link, const struct kn_link_call *call) {
    struct note *note = &link->page->notes[link->rank][link->calls % NOTES];
    collective_link_settle(link);
    atomic_store(&note->number, 0);
    note->call = *call;
    atomic_store(&note->number, ++link->calls);
}

/* The word of a rank, as the device has it. */
static CUdeviceptr collective_link_word_of(const struct kn_collective_link *link, unsigned rank) {
    return link->words +
           (CUdeviceptr)((const char *)&link->page->ranks[rank].word - (const char *)link->page);
}

tol_status kn_link_record(struct kn_collective *c, unsigned step) {
    tol_status status = TOL_OK;
    struct kn_collective_link *link = c->link;
    const struct kn_collective_rank *r = &c->rank[link->rank];
    if (link->steps < step + 1) link->steps = step + 1;
    TOL_TRY(tol_context_bind(r->context));
    TOL_CU(tol_context_functions(r->context), cuStreamWriteValue32_v2,
           (tol_stream_handle(r->stream), collective_link_word_of(link, link->rank),
            link->base + step + 1, 0),
           "rank %u", link->rank);
out:
    return status;
}

tol_status kn_link_follow(struct kn_collective *c, unsigned other, unsigned step) {
    tol_status status = TOL_OK;
    const struct kn_collective_link *link = c->link;
    const struct kn_collective_rank *r = &c->rank[link->rank];
    TOL_TRY(tol_context_bind(r->context));
    TOL_CU(tol_context_functions(r->context), cuStreamWaitValue32_v2,
           (tol_stream_handle(r->stream), collective_link_word_of(link, other),
            link->base + step + 1, WAIT_GEQ),
           "rank %u waits for rank %u", link->rank, other);
out:
    return status;
}

/* ---- waiting ---- */

/* A rank whose process has ended before it came as far as this one, or `ranks`. One that came so
 * far may end. How far it came is not known of a call by flags: then what it sent may still be
 * used, and *is_sure is false. */
static unsigned find_dead(const struct kn_collective_link *link, bool *is_sure) {
    const uint32_t high = link->base + link->steps;
    struct pollfd ends[KN_COLLECTIVE_RANKS_MAX];
    *is_sure = link->steps > 0;
    for (unsigned i = 0; i < link->ranks; i++) ends[i] = (struct pollfd){.fd = link->lives[i]};
    if (poll(ends, link->ranks, 0) <= 0) return link->ranks;
    for (unsigned i = 0; i < link->ranks; i++) {
        const bool is_behind = (int32_t)(atomic_load(&link->page->ranks[i].word) - high) < 0;
        if ((ends[i].revents & (POLLHUP | POLLERR)) != 0 && (is_behind || !*is_sure)) return i;
    }
    return link->ranks;
}

/* The rank that has come least far, if not as far as this one; or `ranks`. */
static unsigned find_late(const struct kn_collective_link *link) {
    uint32_t least = link->base + link->steps;
    unsigned late = link->ranks;
    for (unsigned i = 0; i < link->ranks; i++) {
        const uint32_t word = atomic_load(&link->page->ranks[i].word);
        if (i == link->rank || (int32_t)(word - least) >= 0) continue;
        least = word;
        late = i;
    }
    return late;
}

bool kn_link_release(struct kn_collective *c, unsigned lost) {
    enum { SLICE_MS = 5 };
    struct kn_collective_link *link = c->link;
    const uint64_t until_ns = tol_now_ns() + RELEASE_MS * UINT64_C(1000000);
    const uint32_t high = link->base + link->steps;
    uint32_t none = 0;
    struct kn_collective_rank *r = &c->rank[link->rank];
    if (link->page == NULL) return true;
    atomic_compare_exchange_strong(&link->page->broken, &none, 1 + lost + 256 * link->rank);
    if (r->status != NULL && *(volatile unsigned *)r->status == 0) {
        *(volatile unsigned *)r->status = 1 + lost;
    }
    if (r->stream == NULL) return true;
    do {
        /* A rank that comes late may lower its word again. */
        for (unsigned i = 0; i < link->ranks; i++) {
            const uint32_t word = atomic_load(&link->page->ranks[i].word);
            if (i != link->rank && (int32_t)(word - high) < 0) {
                atomic_store(&link->page->ranks[i].word, high);
            }
        }
        if (tol_stream_synchronize_for(r->stream, SLICE_MS) != TOL_TIMEOUT) return true;
    } while (tol_now_ns() < until_ns);
    return false;
}

/* A call in words. Another process may have written anything. */
static void collective_link_describe(const struct kn_link_call *call, char *text) {
    const char *type = call->type < KN_TYPES ? kn_type_name((enum kn_type)call->type) : "?";
    char in[24] = "", out[24] = "", root[24] = "";
    if (call->root != UINT32_MAX) snprintf(root, sizeof root, " root %u", call->root);
    if (call->in != UINT64_MAX) snprintf(in, sizeof in, " %#llx", (unsigned long long)call->in);
    if (call->out != UINT64_MAX) {
        snprintf(out, sizeof out, " to %#llx", (unsigned long long)call->out);
    }
    snprintf(text, NOTE_TEXT, "%.*s %llu %s%s%s%s", KN_LINK_NAME, call->name,
             (unsigned long long)call->count, type, root, in, out);
}

/* Whether all ranks made the calls that this one did. */
static tol_status compare_notes(struct kn_collective_link *link) {
    tol_status status = TOL_OK;
    if (link->calls - link->checked > NOTES) link->checked = link->calls - NOTES;
    for (; link->checked < link->calls; link->checked++) {
        const struct note *own = &link->page->notes[link->rank][link->checked % NOTES];
        for (unsigned i = 0; i < link->ranks; i++) {
            const struct note *other = &link->page->notes[i][link->checked % NOTES];
            char text[NOTE_TEXT], own_text[NOTE_TEXT];
            if (atomic_load(&other->number) != link->checked + 1) continue;
            const struct kn_link_call call = other->call;
            /* It may have been overwritten by a later call meanwhile. */
            if (atomic_load(&other->number) != link->checked + 1) continue;
            if (memcmp(&call, &own->call, sizeof call) == 0) continue;
            collective_link_describe(&call, text);
            collective_link_describe(&own->call, own_text);
            TOL_FAIL(TOL_MISMATCH,
                     "the ranks of a collective made different calls: rank %u %s, rank %u %s",
                     link->rank, own_text, i, text);
        }
    }
out:
    return status;
}

/* Whether another rank gave up. */
static tol_status check_broken(const struct kn_collective_link *link) {
    tol_status status = TOL_OK;
    const uint32_t broken = atomic_load(&link->page->broken);
    TOL_CHECK(broken == 0, TOL_POISONED, "rank %u of a collective gave up on rank %u", broken / 256,
              (broken - 1) % 256);
out:
    return status;
}

/* While the stream is not done: whether to wait on. *dead_ns is when a rank was first seen dead
 * that may have sent what is needed. */
static tol_status look_around(struct kn_collective_link *link, bool is_over, unsigned deadline_ms,
                              uint64_t *dead_ns, unsigned *lost) {
    enum { GRACE_MS = 500 };
    tol_status status = TOL_OK;
    bool is_sure = false;
    *lost = find_dead(link, &is_sure);
    if (*lost < link->ranks && !is_sure) {
        if (*dead_ns == 0) *dead_ns = tol_now_ns();
        is_sure = tol_now_ns() - *dead_ns > GRACE_MS * UINT64_C(1000000);
    }
    TOL_CHECK(*lost == link->ranks || !is_sure, TOL_POISONED,
              "rank %u of a collective is lost: its process has ended", *lost);
    TOL_TRY(check_broken(link));
    TOL_TRY(compare_notes(link));
    if (!is_over) return TOL_OK;
    *lost = find_late(link);
    TOL_CHECK(*lost < link->ranks, TOL_TIMEOUT,
              "the work of rank %u of a collective took more than %u ms", link->rank, deadline_ms);
    TOL_FAIL(TOL_TIMEOUT, "rank %u of a collective did not come within %u ms", *lost, deadline_ms);
out:
    return status;
}

tol_status kn_link_wait(struct kn_collective *c, unsigned deadline_ms) {
    enum { SLICE_MS = 20 };
    tol_status status = TOL_OK;
    struct kn_collective_link *link = c->link;
    struct tol_stream *stream = c->rank[link->rank].stream;
    const uint64_t until_ns = tol_now_ns() + (uint64_t)deadline_ms * 1000000u;
    uint64_t dead_ns = 0;
    unsigned lost = link->ranks;
    if (stream == NULL) return TOL_OK;
    for (;;) {
        const uint64_t now_ns = tol_now_ns();
        const uint64_t left_ms = now_ns < until_ns ? (until_ns - now_ns) / 1000000u + 1 : 0;
        status = tol_stream_synchronize_for(stream, left_ms < SLICE_MS ? (unsigned)left_ms
                                                                       : (unsigned)SLICE_MS);
        if (status != TOL_TIMEOUT) break;
        TOL_TRY(look_around(link, now_ns >= until_ns, deadline_ms, &dead_ns, &lost));
    }
    TOL_TRY(status);
    TOL_TRY(compare_notes(link));
    /* A stream that was let go has no result. */
    TOL_TRY(check_broken(link));
out:
    if (status != TOL_OK) {
        char text[600];
        snprintf(text, sizeof text, "%s", tol_message());
        (void)kn_link_release(c, lost < link->ranks ? lost : link->rank);
        (void)tol_fail_again(status, 0, text);
    }
    return status;
}
