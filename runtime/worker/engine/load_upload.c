/*
 * Reads the pieces of a file and copies them to the device.
 *
 * Each thread takes the next piece, reads it into one of its two pinned blocks and queues the copy
 * on its stream: while the device empties one block, the thread fills the other. The thread that
 * loads waits, and reports progress.
 */
#include "loaded_state.h"

#include "checksum/checksum.h"
#include "core/check.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 2, THREADS_MAX = 16, REPORT_NS = 50000000, DEADLINE_MS = 60000, TEXT_BYTES = 1024 };

struct upload {
    struct tol_loaded *loaded;
    const struct tol_gguf *file;
    struct loaded_pieces *pieces;
    size_t block_bytes;
    bool sums;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under the lock: */
    size_t next;   /* piece */
    uint64_t done; /* bytes whose copies were queued */
    unsigned running;
    bool cancelled;
    tol_status status; /* the first failure, and its words */
    int cuda;
    char text[TEXT_BYTES];
};

static struct loaded_piece *take(struct upload *u) {
    struct loaded_piece *piece = NULL;
    pthread_mutex_lock(&u->lock);
    if (!u->cancelled && u->status == TOL_OK && u->next < u->pieces->count) {
        piece = &u->pieces->list[u->next++];
    }
    pthread_mutex_unlock(&u->lock);
    return piece;
}

static void report(struct upload *u, size_t bytes) {
    pthread_mutex_lock(&u->lock);
    u->done += bytes;
    pthread_cond_signal(&u->changed);
    pthread_mutex_unlock(&u->lock);
}

static void leave(struct upload *u, tol_status status) {
    pthread_mutex_lock(&u->lock);
    if (status != TOL_OK && u->status == TOL_OK) {
        u->status = status;
        u->cuda = tol_message_cuda();
        strncpy(u->text, tol_message(), sizeof u->text - 1);
    }
    u->running--;
    pthread_cond_signal(&u->changed);
    pthread_mutex_unlock(&u->lock);
}

static tol_status copy_pieces(struct upload *u) {
    tol_status status = TOL_OK;
    tol_auto_stream struct tol_stream *stream = NULL;
    struct tol_pinned *blocks[BLOCKS] = {NULL};
    struct loaded_piece *piece = NULL;
    TOL_TRY(tol_stream_create(u->loaded->context, NULL, &stream));
    for (size_t i = 0; (piece = take(u)) != NULL; i++) {
        struct tol_pinned **block = &blocks[i % BLOCKS];
        void *bytes = NULL;
        if (*block == NULL) {
            TOL_TRY(tol_pinned_create(u->loaded->context, u->block_bytes, block));
        }
        TOL_TRY(tol_pinned_access(*block, &bytes));
        TOL_TRY(tol_gguf_read(u->file, piece->tensor, piece->from, bytes, piece->bytes));
        if (u->sums) piece->sum = kn_crc32c(bytes, piece->bytes, KN_CRC32C_BEST);
        TOL_TRY(tol_copy_to_device(stream, u->loaded->weights, piece->to, *block, 0, piece->bytes));
        report(u, piece->bytes);
    }
out:
    if (stream != NULL) {
        const tol_status waited = tol_stream_synchronize_for(stream, DEADLINE_MS);
        if (status == TOL_OK) status = waited;
    }
    for (size_t i = 0; i < BLOCKS; i++) tol_pinned_destroy(blocks[i]);
    return status;
}

static void *run(void *user) {
    struct upload *u = user;
    leave(u, copy_pieces(u));
    return NULL;
}

/* Waits for the threads and calls progress now and then. */
static void watch(struct upload *u, const struct tol_load_options *options) {
    uint64_t told = UINT64_MAX;
    pthread_mutex_lock(&u->lock);
    while (u->running > 0 || (told != u->done && options->progress != NULL)) {
        const uint64_t done = u->done;
        if (options->progress != NULL && done != told && u->status == TOL_OK) {
            pthread_mutex_unlock(&u->lock);
            const bool goes_on = options->progress(options->user, done, u->pieces->bytes);
            pthread_mutex_lock(&u->lock);
            if (!goes_on) u->cancelled = true;
        }
        told = done;
        if (u->running == 0) continue;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += REPORT_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&u->changed, &u->lock, &until);
    }
    pthread_mutex_unlock(&u->lock);
}

static unsigned thread_count(const struct tol_load_options *options, size_t pieces) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned count = options->threads;
    if (count == 0) count = processors > 0 ? (unsigned)processors : 1;
    if (count > THREADS_MAX) count = THREADS_MAX;
    return count < pieces ? count : (unsigned)pieces;
}

tol_status loaded_upload(struct tol_loaded *loaded, const struct tol_model *model,
                         struct loaded_pieces *pieces, const struct tol_load_options *options) {
    tol_status status = TOL_OK;
    pthread_t threads[THREADS_MAX];
    unsigned started = 0;
    struct upload u = {.loaded = loaded,
                       .file = tol_model_file(model),
                       .pieces = pieces,
                       .sums = options->verify,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .changed = PTHREAD_COND_INITIALIZER};
    for (size_t i = 0; i < pieces->count; i++) {
        if (pieces->list[i].bytes > u.block_bytes) u.block_bytes = pieces->list[i].bytes;
    }
    const unsigned wanted = thread_count(options, pieces->count);
    u.running = wanted;
    while (started < wanted && pthread_create(&threads[started], NULL, run, &u) == 0) started++;
    if (started < wanted) { /* the others take the pieces of those that could not start */
        pthread_mutex_lock(&u.lock);
        u.running -= wanted - started;
        pthread_mutex_unlock(&u.lock);
    }
    TOL_CHECK(started > 0, TOL_OUT_OF_HOST_MEMORY, "no thread could be started to read the model");
    watch(&u, options);
    for (unsigned i = 0; i < started; i++) pthread_join(threads[i], NULL);
    if (u.status != TOL_OK) {
        status = tol_fail_again(u.status, u.cuda, u.text);
        goto out;
    }
    TOL_CHECK(!u.cancelled, TOL_CANCELLED, "loading was cancelled after %llu of %llu bytes",
              (unsigned long long)u.done, (unsigned long long)pieces->bytes);
out:
    pthread_mutex_destroy(&u.lock);
    pthread_cond_destroy(&u.changed);
    return status;
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
