/*
 * Reads the pieces of a file and copies them to the device.
 *
 * Each thread has two pinned blocks on huge pages. It reads a piece into one, queues its copy on a
 * stream that all threads share, and waits with the driver's own wait until the other block's copy
 * is done. No thread queries, because queries keep other threads from queueing.
 *
 * Pinning and freeing the blocks take a tenth of the time that copying a large model takes, and a
 * thread that pins delays those that copy. So the threads start as soon as there is a context, and
 * pin while memory is allocated on the device; reading begins when all blocks are pinned; and they
 * are freed while the rest of the loading proceeds.
 *
 * The driver's wait has no deadline. So the loading thread watches the others: if one has waited
 * for longer than the deadline, it is abandoned with its blocks, which it frees if it ever returns;
 * the last thread frees what the threads share.
 */
#include "loaded_state.h"

#include "checksum/checksum.h"
#include "core/check.h"
#include "core/monotonic.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    THREADS_MAX = 12, /* with two blocks of 3 MiB each the fastest on a machine with an H100 */
    BLOCKS = 2,
    REPORT_NS = 50000000,
    TEXT_BYTES = 1024
};

struct reader {
    struct loaded_upload *upload;
    pthread_t thread;
    struct tol_pinned *block[BLOCKS]; /* the thread's own; NULL: not made yet, or freed */
    /* Under the lock: */
    uint64_t waits_ns; /* since when it has waited for the driver; 0: it does not */
    bool has_ended;
};

struct loaded_upload {
    /* Not used by a thread that has heard of `stops`, since they may be gone: */
    struct tol_loaded *loaded;
    const struct tol_gguf *file;
    struct loaded_pieces *pieces;
    bool sums;
    /* Of all threads: */
    struct tol_context *context;
    struct tol_stream *stream;
    size_t block_bytes;
    struct reader readers[THREADS_MAX];
    unsigned started, deadline_ms;
    const struct tol_load_options *options; /* until loaded_upload_run has returned */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* by the monotonic clock */
    pthread_cond_t begins;  /* `goes` or `stops` */
    /* Under the lock: */
    size_t next;             /* piece */
    uint64_t done;           /* bytes whose copies are queued */
    unsigned users, running; /* threads that have it, and that read or are to read */
    unsigned ready;          /* threads whose blocks are pinned, or that failed */
    bool goes, stops;
    tol_status status; /* the first failure of a thread that reads, and its words */
    int cuda;
    char text[TEXT_BYTES];
};

/* The last thread frees what the threads share. */
static void load_upload_leave(struct loaded_upload *u) {
    pthread_mutex_lock(&u->lock);
    const bool is_last = --u->users == 0;
    pthread_mutex_unlock(&u->lock);
    if (!is_last) return;
    tol_stream_destroy(u->stream);
    pthread_mutex_destroy(&u->lock);
    pthread_cond_destroy(&u->changed);
    pthread_cond_destroy(&u->begins);
    free(u);
}

/* ---- threads that read ---- */

static tol_status load_upload_make_blocks(struct reader *r) {
    tol_status status = TOL_OK;
    const struct loaded_upload *u = r->upload;
    for (unsigned i = 0; i < BLOCKS && status == TOL_OK; i++) {
        status = tol_pinned_create_huge(u->context, u->block_bytes, &r->block[i]);
    }
    return status;
}

static void note_ready(struct loaded_upload *u) {
    pthread_mutex_lock(&u->lock);
    u->ready++;
    pthread_cond_signal(&u->changed);
    pthread_mutex_unlock(&u->lock);
}

/* Whether there is to be reading. */
static bool wait_to_go(struct loaded_upload *u) {
    pthread_mutex_lock(&u->lock);
    while (!u->goes && !u->stops) pthread_cond_wait(&u->begins, &u->lock);
    const bool goes = !u->stops;
    pthread_mutex_unlock(&u->lock);
    return goes;
}

static bool has_more(struct loaded_upload *u) {
    pthread_mutex_lock(&u->lock);
    const bool more = !u->stops && u->next < u->pieces->count;
    pthread_mutex_unlock(&u->lock);
    return more;
}

/* The next piece; NULL: there is nothing more to read. */
static struct loaded_piece *load_upload_take(struct loaded_upload *u) {
    struct loaded_piece *piece = NULL;
    pthread_mutex_lock(&u->lock);
    if (!u->stops && u->next < u->pieces->count) piece = &u->pieces->list[u->next++];
    pthread_mutex_unlock(&u->lock);
    return piece;
}

static void note_wait(struct reader *r, uint64_t since_ns) {
    pthread_mutex_lock(&r->upload->lock);
    r->waits_ns = since_ns;
    pthread_mutex_unlock(&r->upload->lock);
}

/* A block that no copy uses. */
static tol_status load_upload_await(struct reader *r, unsigned which, void **bytes) {
    note_wait(r, tol_now_ns());
    const tol_status status = tol_pinned_await(r->block[which], bytes);
    note_wait(r, 0);
    return status;
}

static tol_status read_pieces(struct reader *r) {
    tol_status status = TOL_OK;
    struct loaded_upload *u = r->upload;
    for (unsigned which = 0; has_more(u); which = (which + 1) % BLOCKS) {
        void *bytes = NULL;
        TOL_TRY(load_upload_await(r, which, &bytes));
        struct loaded_piece *piece = load_upload_take(u);
        if (piece == NULL) break;
        TOL_TRY(tol_model_read(u->file, piece->tensor, piece->from, bytes, piece->bytes));
        if (u->sums) piece->sum = kn_crc32c(bytes, piece->bytes, KN_CRC32C_BEST);
        TOL_TRY(tol_copy_to_device(u->stream, u->loaded->weights, piece->to, r->block[which], 0,
                                   piece->bytes));
        pthread_mutex_lock(&u->lock);
        u->done += piece->bytes;
        pthread_mutex_unlock(&u->lock);
    }
out:
    return status;
}

/* Waits for its copies, so that blocks are free when they are freed. */
static tol_status end_copies(struct reader *r) {
    tol_status status = TOL_OK;
    void *bytes = NULL;
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (r->block[i] == NULL) continue;
        const tol_status ended = load_upload_await(r, i, &bytes);
        if (status == TOL_OK) status = ended;
    }
    return status;
}

static void load_upload_note_failure(struct loaded_upload *u, tol_status status) {
    pthread_mutex_lock(&u->lock);
    if (status != TOL_OK && u->status == TOL_OK) {
        u->status = status;
        u->cuda = tol_message_cuda();
        strncpy(u->text, tol_message(), sizeof u->text - 1);
        u->stops = true;
        pthread_cond_broadcast(&u->begins);
    }
    pthread_mutex_unlock(&u->lock);
}

static void *load_upload_run(void *user) {
    struct reader *r = user;
    struct loaded_upload *u = r->upload;
    load_upload_note_failure(u, load_upload_make_blocks(r));
    note_ready(u);
    if (wait_to_go(u)) {
        load_upload_note_failure(u, read_pieces(r));
        load_upload_note_failure(u, end_copies(r));
    }
    pthread_mutex_lock(&u->lock);
    u->running--;
    pthread_cond_signal(&u->changed);
    pthread_mutex_unlock(&u->lock);
    for (unsigned i = 0; i < BLOCKS; i++) {
        tol_pinned_destroy(r->block[i]);
        r->block[i] = NULL;
    }
    pthread_mutex_lock(&u->lock);
    r->has_ended = true;
    pthread_cond_signal(&u->changed);
    pthread_mutex_unlock(&u->lock);
    load_upload_leave(u);
    return NULL;
}

/* ---- the thread that loads ---- */

/* Progress, and the program's callback. */
struct progress {
    const struct tol_load_options *options;
    const struct loaded_pieces *pieces;
    uint64_t told, next_ns; /* that it heard of; when it is next called */
};

/* Calls progress at the beginning, at the end, and now and then. false: it cancels. */
static bool load_upload_report(struct progress *p, uint64_t done, bool is_last) {
    const uint64_t now = tol_now_ns();
    if (p->options->progress == NULL || p->told == done) return true;
    if (p->told != UINT64_MAX && now < p->next_ns && !is_last) return true;
    p->told = done;
    p->next_ns = now + REPORT_NS;
    return p->options->progress(p->options->user, p->pieces->before + done, p->pieces->all);
}

/* Waits until a thread has ended, or a moment. The caller holds the lock. */
static void wait_a_moment(struct loaded_upload *u) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += REPORT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&u->changed, &u->lock, &until);
}

/* Whether a thread has waited for the driver for longer than the deadline. Under the lock. */
static bool is_stuck(const struct reader *r, unsigned deadline_ms) {
    return r->waits_ns != 0 && !r->has_ended &&
           tol_now_ns() - r->waits_ns > (uint64_t)deadline_ms * 1000000;
}

static bool any_is_stuck(const struct loaded_upload *u) {
    bool any = false;
    for (unsigned i = 0; i < u->started; i++) any |= is_stuck(&u->readers[i], u->deadline_ms);
    return any;
}

/* Until all threads have ended, one has failed or hangs, or progress cancels. */
static tol_status load_upload_watch(struct loaded_upload *u, struct progress *p) {
    tol_status status = TOL_OK;
    bool goes_on = true, is_late = false;
    while (goes_on) {
        pthread_mutex_lock(&u->lock);
        if (u->running > 0 && !u->stops && p->told != UINT64_MAX) wait_a_moment(u);
        const uint64_t done = u->done;
        is_late = any_is_stuck(u);
        goes_on = u->running > 0 && !u->stops && !is_late;
        const bool has_failed = u->status != TOL_OK;
        pthread_mutex_unlock(&u->lock);
        TOL_CHECK(has_failed || load_upload_report(p, done, !goes_on), TOL_CANCELLED,
                  "loading was cancelled after %llu of %llu bytes", (unsigned long long)done,
                  (unsigned long long)p->pieces->bytes);
        if (p->told == UINT64_MAX) p->told = 0; /* no callback */
    }
    TOL_CHECK(!is_late, TOL_TIMEOUT, "a copy of the model has not ended after %u ms",
              u->deadline_ms);
out:
    return status;
}

/* Ends the threads. Those that hang are abandoned: false. */
static bool end_readers(struct loaded_upload *u) {
    bool all_ended = true;
    for (unsigned i = 0; i < u->started; i++) {
        struct reader *r = &u->readers[i];
        pthread_mutex_lock(&u->lock);
        u->stops = true;
        pthread_cond_broadcast(&u->begins);
        while (!r->has_ended && !is_stuck(r, u->deadline_ms)) wait_a_moment(u);
        const bool has_ended = r->has_ended;
        pthread_mutex_unlock(&u->lock);
        if (has_ended) {
            pthread_join(r->thread, NULL);
        } else {
            pthread_detach(r->thread);
        }
        all_ended &= has_ended;
    }
    return all_ended;
}

static unsigned load_upload_thread_count(const struct tol_load_options *options, size_t pieces) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned count = options->threads;
    if (count == 0) count = processors > 0 ? (unsigned)processors : 1;
    if (count > THREADS_MAX) count = THREADS_MAX;
    return count < pieces ? count : (unsigned)pieces;
}

/* Starts as many of the threads as possible. */
static void load_upload_start(struct loaded_upload *u, unsigned wanted) {
    pthread_mutex_lock(&u->lock); /* they are counted before they end */
    while (u->started < wanted) {
        struct reader *r = &u->readers[u->started];
        r->upload = u;
        if (pthread_create(&r->thread, NULL, load_upload_run, r) != 0) break;
        u->started++;
        u->users++;
        u->running++;
    }
    pthread_mutex_unlock(&u->lock);
}

static tol_status load_upload_make(struct tol_loaded *loaded, const struct tol_model *model,
                                   size_t block_bytes, const struct tol_load_options *options,
                                   struct loaded_upload **made) {
    tol_status status = TOL_OK;
    pthread_condattr_t monotonic;
    struct loaded_upload *u = calloc(1, sizeof *u);
    TOL_CHECK(u != NULL, TOL_OUT_OF_HOST_MEMORY, "the threads that read a model");
    u->loaded = loaded;
    u->context = loaded->context;
    u->file = tol_model_file(model);
    u->block_bytes = block_bytes;
    u->sums = options->verify;
    u->options = options;
    u->deadline_ms = loaded->deadline_ms;
    u->users = 1;
    pthread_mutex_init(&u->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&u->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_cond_init(&u->begins, NULL);
    *made = u;
    status = tol_stream_create(u->context, NULL, &u->stream);
out:
    return status;
}

tol_status loaded_upload_begin(struct tol_loaded *loaded, const struct tol_model *model,
                               size_t block_bytes, const struct tol_load_options *options) {
    tol_status status = TOL_OK;
    const uint64_t bytes = tol_model_shape(model)->weight_bytes;
    TOL_TRY(load_upload_make(loaded, model, block_bytes, options, &loaded->upload));
    load_upload_start(loaded->upload,
                      load_upload_thread_count(options, (size_t)(bytes / block_bytes) + 1));
    TOL_CHECK(loaded->upload->started > 0, TOL_OUT_OF_HOST_MEMORY,
              "no thread could be started to read the model");
out:
    return status;
}

/* The failure of a thread that reads, or TOL_OK. */
static tol_status failure_of(struct loaded_upload *u) {
    tol_status status = TOL_OK;
    pthread_mutex_lock(&u->lock);
    if (u->status != TOL_OK) status = tol_fail_again(u->status, u->cuda, u->text);
    pthread_mutex_unlock(&u->lock);
    return status;
}

tol_status loaded_upload_await(struct tol_loaded *loaded) {
    struct loaded_upload *u = loaded->upload;
    pthread_mutex_lock(&u->lock);
    while (u->ready < u->started) pthread_cond_wait(&u->changed, &u->lock);
    pthread_mutex_unlock(&u->lock);
    return failure_of(u);
}

tol_status loaded_upload_run(struct tol_loaded *loaded, struct loaded_pieces *pieces) {
    struct loaded_upload *u = loaded->upload;
    struct progress progress = {u->options, pieces, UINT64_MAX, 0};
    pthread_mutex_lock(&u->lock);
    u->pieces = pieces;
    u->goes = true;
    pthread_cond_broadcast(&u->begins);
    pthread_mutex_unlock(&u->lock);
    const tol_status status = load_upload_watch(u, &progress);
    const tol_status failure = failure_of(u);
    return failure != TOL_OK ? failure : status;
}

bool loaded_upload_end(struct tol_loaded *loaded) {
    struct loaded_upload *u = loaded->upload;
    if (u == NULL) return true;
    loaded->upload = NULL;
    const bool all_ended = end_readers(u);
    load_upload_leave(u);
    return all_ended;
}

tol_status loaded_verify(struct tol_loaded *loaded, const struct loaded_pieces *pieces) {
    tol_status status = TOL_OK;
    struct kn_checksum *checksum = NULL;
    const struct tol_place place = tol_place_of_buffer(loaded->weights);
    TOL_TRY(kn_checksum_create(loaded->kernels, &checksum));
    for (size_t i = 0; i < pieces->count; i++) {
        const struct loaded_piece *piece = &pieces->list[i];
        uint32_t sum = 0;
        TOL_TRY(kn_checksum_of(checksum, place, piece->to, piece->bytes, &sum));
        TOL_CHECK(
            sum == piece->sum, TOL_MISMATCH,
            "%zu bytes of the tensor %.*s from %llu on: CRC-32C %08x in the file, %08x on the "
            "device",
            piece->bytes, (int)piece->tensor->name.count, piece->tensor->name.bytes,
            (unsigned long long)piece->from, piece->sum, sum);
    }
out:
    kn_checksum_destroy(checksum);
    return status;
}
