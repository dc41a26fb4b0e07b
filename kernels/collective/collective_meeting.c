/*
 * Hello, welcome or refusal, and the agreement at the end.
 */
#include "collective/collective_meeting.h"

#include "collective/collective_socket.h"
#include "core/check.h"
#include "core/monotonic.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TEXT_BYTES = 300, HELLO_S = 5 };

/* An answer of rank 0, or of a rank at the end: is it well, and what is wrong. */
struct answer {
    uint32_t is_ok;
    char text[TEXT_BYTES];
};

/* ---- rank 0 ---- */

TOL_PRINTF(2, 3) static void say(struct answer *answer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(answer->text, sizeof answer->text, format, arguments);
    va_end(arguments);
    answer->is_ok = 0;
}

/* What is wrong with who says hello; is_ok: nothing. */
static void collective_meeting_judge(const struct kn_meeting *m,
                                     const struct kn_meeting_hello *hello, size_t bytes,
                                     const struct kn_meeting_hello *known, int peer,
                                     struct answer *answer) {
    const struct kn_meeting_hello *own = &m->own;
    answer->is_ok = 1;
    if (!kn_socket_is_own_user(peer)) {
        say(answer, "the process at %s is another user's", m->path);
    } else if (bytes < 12 || hello->magic != KN_MEETING_MAGIC) {
        say(answer, "what came to %s is no rank of a collective", m->path);
    } else if (hello->version != own->version || bytes != sizeof *hello) {
        say(answer, "the collective at %s is of version %u, and this rank of version %u", m->path,
            own->version, hello->version);
    } else if (hello->ranks != own->ranks) {
        say(answer, "the collective at %s has %u ranks, and this rank was told %u", m->path,
            own->ranks, hello->ranks);
    } else if (hello->rank >= own->ranks || known[hello->rank].ranks != 0) {
        say(answer, "rank %u of the collective at %s is there already", hello->rank, m->path);
    } else if (hello->bytes != own->bytes || hello->window_bytes != own->window_bytes) {
        say(answer, "the collective at %s has %llu bytes per rank, and rank %u asked for %llu",
            m->path, (unsigned long long)own->bytes, hello->rank, (unsigned long long)hello->bytes);
    } else if (hello->way != own->way) {
        say(answer, "the collective at %s goes the way %s, and rank %u was told %s", m->path,
            kn_collective_way_name((enum kn_collective_way)own->way), hello->rank,
            hello->way < KN_WAYS ? kn_collective_way_name((enum kn_collective_way)hello->way)
                                 : "another");
    }
    for (unsigned i = 0; answer->is_ok != 0 && i < own->ranks; i++) {
        if (known[i].ranks != 0 && memcmp(known[i].device, hello->device, 16) == 0) {
            say(answer, "ranks %u and %u of the collective at %s are one device", i, hello->rank,
                m->path);
        }
    }
}

/* One who comes: a rank, or refused. */
static tol_status receive_one(struct kn_meeting *m, struct kn_meeting_hello *known, int peer,
                              bool *is_taken) {
    tol_status status = TOL_OK;
    struct kn_meeting_hello hello = {.magic = 0};
    struct answer answer = {.is_ok = 0};
    int files[2] = {-1, -1};
    size_t bytes = 0;
    *is_taken = false;
    const uint64_t soon_ns = tol_now_ns() + HELLO_S * 1000000000u;
    TOL_TRY(kn_socket_receive(peer, soon_ns < m->until_ns ? soon_ns : m->until_ns, &hello,
                              sizeof hello, &bytes, files, 2));
    collective_meeting_judge(m, &hello, bytes, known, peer, &answer);
    if (answer.is_ok != 0 && (files[0] < 0 || files[1] < 0)) {
        say(&answer, "rank %u brought no memory", hello.rank);
    }
    if (answer.is_ok != 0) {
        known[hello.rank] = hello;
        m->peers[hello.rank] = peer;
        m->windows[hello.rank] = files[0];
        m->lives[hello.rank] = files[1];
        files[0] = files[1] = -1;
        *is_taken = true;
    } else {
        (void)kn_socket_send(peer, &answer, sizeof answer, NULL, 0);
    }
out:
    for (int i = 0; i < 2; i++) {
        if (files[i] >= 0) close(files[i]);
    }
    return status;
}

/* "1, 3" */
static const char *collective_meeting_missing(const struct kn_meeting_hello *known, unsigned ranks,
                                              char text[64]) {
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < ranks && length < 60; i++) {
        if (known[i].ranks != 0) continue;
        length += (size_t)snprintf(text + length, 64 - length, "%s%u", length > 0 ? ", " : "", i);
    }
    return text;
}

static tol_status collective_meeting_gather(struct kn_meeting *m) {
    tol_status status = TOL_OK;
    struct kn_meeting_hello known[KN_COLLECTIVE_RANKS_MAX] = {m->own};
    char text[64];
    TOL_TRY(kn_socket_listen(m->path, &m->listener));
    for (unsigned count = 1; count < m->own.ranks;) {
        int peer = -1;
        bool is_taken = false;
        TOL_CHECK(kn_socket_accept(m->listener, m->until_ns, &peer) == TOL_OK, TOL_TIMEOUT,
                  "of the %u ranks of the collective at %s these did not come in time: %s",
                  m->own.ranks, m->path, collective_meeting_missing(known, m->own.ranks, text));
        /* One that says nothing keeps the others waiting for HELLO_S. */
        (void)receive_one(m, known, peer, &is_taken);
        count += is_taken;
        if (!is_taken) close(peer);
    }
out:
    return status;
}

static tol_status collective_meeting_hand_out(struct kn_meeting *m) {
    tol_status status = TOL_OK;
    int files[2 * KN_COLLECTIVE_RANKS_MAX + 1];
    const struct answer answer = {.is_ok = 1};
    unsigned count = 0;
    m->page = memfd_create("tollens-collective", MFD_CLOEXEC);
    TOL_CHECK(m->page >= 0 && ftruncate(m->page, KN_MEETING_PAGE_BYTES) == 0,
              TOL_OUT_OF_HOST_MEMORY, "no memory for a page that processes share");
    files[count++] = m->page;
    for (unsigned i = 0; i < m->own.ranks; i++) {
        files[count++] = m->windows[i];
        files[count++] = m->lives[i];
    }
    for (unsigned i = 1; i < m->own.ranks; i++) {
        TOL_CHECK(kn_socket_send(m->peers[i], &answer, sizeof answer, files, count), TOL_POISONED,
                  "rank %u of the collective at %s is gone", i, m->path);
    }
out:
    return status;
}

/* ---- the others ---- */

static tol_status collective_meeting_come(struct kn_meeting *m, int window, int life) {
    tol_status status = TOL_OK;
    struct answer answer = {.is_ok = 0};
    int files[2 * KN_COLLECTIVE_RANKS_MAX + 1];
    const unsigned count = 2 * m->own.ranks + 1;
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) files[i] = -1;
    TOL_TRY(kn_socket_connect(m->path, m->until_ns, &m->peers[0]));
    const int brought[2] = {window, life};
    TOL_CHECK(kn_socket_send(m->peers[0], &m->own, sizeof m->own, brought, 2), TOL_POISONED,
              "rank 0 of the collective at %s is gone", m->path);
    TOL_CHECK(kn_socket_receive(m->peers[0], m->until_ns, &answer, sizeof answer, &bytes, files,
                                count) == TOL_OK,
              TOL_TIMEOUT, "the other ranks of the collective at %s did not come in time", m->path);
    TOL_CHECK(bytes == sizeof answer, TOL_POISONED,
              "rank 0 of the collective at %s ended or gave up before all ranks had come", m->path);
    answer.text[TEXT_BYTES - 1] = '\0';
    TOL_CHECK(answer.is_ok != 0, TOL_MISMATCH, "%s", answer.text);
    m->page = files[0];
    for (unsigned i = 0; i < m->own.ranks; i++) {
        m->windows[i] = files[1 + 2 * i];
        m->lives[i] = files[2 + 2 * i];
        files[1 + 2 * i] = files[2 + 2 * i] = -1;
        TOL_CHECK(m->page >= 0 && m->windows[i] >= 0 && m->lives[i] >= 0, TOL_POISONED,
                  "rank 0 of the collective at %s did not hand out the memory of rank %u", m->path,
                  i);
    }
out:
    for (unsigned i = 1; i < count; i++) {
        if (files[i] >= 0) close(files[i]);
    }
    return status;
}

/* ---- both ---- */

tol_status kn_meeting_hold(struct kn_meeting *m, int window, int life) {
    tol_status status = TOL_OK;
    m->listener = m->page = -1;
    for (unsigned i = 0; i < KN_COLLECTIVE_RANKS_MAX; i++) {
        m->peers[i] = m->windows[i] = m->lives[i] = -1;
    }
    if (m->own.rank != 0) {
        TOL_TRY(collective_meeting_come(m, window, life));
    } else {
        m->windows[0] = dup(window);
        m->lives[0] = dup(life);
        TOL_CHECK(m->windows[0] >= 0 && m->lives[0] >= 0, TOL_OUT_OF_HOST_MEMORY,
                  "no more file descriptors");
        TOL_TRY(collective_meeting_gather(m));
        TOL_TRY(collective_meeting_hand_out(m));
    }
out:
    return status;
}

tol_status kn_meeting_agree(struct kn_meeting *m, bool ok, const char *reason) {
    tol_status status = TOL_OK;
    struct answer all = {.is_ok = ok}, other = {.is_ok = 0};
    const unsigned first = m->own.rank == 0 ? 1 : 0, end = m->own.rank == 0 ? m->own.ranks : 1;
    size_t bytes = 0;
    snprintf(all.text, sizeof all.text, "rank %u of the collective: %.240s", m->own.rank, reason);
    if (m->own.rank != 0) (void)kn_socket_send(m->peers[0], &all, sizeof all, NULL, 0);
    for (unsigned i = first; i < end; i++) {
        if (kn_socket_receive(m->peers[i], m->until_ns, &other, sizeof other, &bytes, NULL, 0) !=
                TOL_OK ||
            bytes != sizeof other) {
            say(&other, "rank %u of the collective is gone, or did not answer in time", i);
        }
        other.text[TEXT_BYTES - 1] = '\0';
        if (all.is_ok != 0 && other.is_ok == 0) all = other;
    }
    for (unsigned i = first; m->own.rank == 0 && i < end; i++) {
        (void)kn_socket_send(m->peers[i], &all, sizeof all, NULL, 0);
    }
    TOL_CHECK(!ok || all.is_ok != 0, TOL_POISONED, "%s", all.text);
out:
    return status;
}

void kn_meeting_end(struct kn_meeting *m) {
    if (m->listener >= 0) {
        close(m->listener);
        unlink(m->path);
    }
    if (m->page >= 0) close(m->page);
    for (unsigned i = 0; i < KN_COLLECTIVE_RANKS_MAX; i++) {
        if (m->peers[i] >= 0) close(m->peers[i]);
        if (m->windows[i] >= 0) close(m->windows[i]);
        if (m->lives[i] >= 0) close(m->lives[i]);
    }
}
