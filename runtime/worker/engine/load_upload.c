/*
 * Reads the pieces of a file and copies them to the device.
 *
 * Threads read pieces into pinned blocks, and the thread that loads queues their copies on one
 * stream, one behind the other, and takes blocks back in that order. So it alone asks the driver
 * whether copies are done: many threads that ask keep each other from queueing. Each thread makes
 * and frees its own blocks, two of them, while others read and copy, since a machine with an H100
 * pins about three megabytes a millisecond.
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
    THREADS_MAX = 8, /* as fast as 16 on a machine with an H100, with less to pin */
    BLOCKS_MAX = 2 * THREADS_MAX,
    COPIES_MAX = 8, /* in flight, before the thread that loads waits for the first */
    REPORT_NS = 50000000,
    DEADLINE_MS = 60000,
    TEXT_BYTES = 1024
};

struct block {
    struct tol_pinned *pinned; /* NULL: not made yet, or freed */
    void *bytes;
    struct loaded_piece *piece;
    struct block *next;
};

/* First in, first out. */
struct line {
    struct block *first, *last;
};

static void join(struct line *line, struct block *block) {
    block->next = NULL;
    if (line->first == NULL) {
        line->first = block;
    } else {
        line->last->next = block;
    }
    line->last = block;
}

static struct block *leave(struct line *line) {
    struct block *block = line->first;
    if (block != NULL) line->first = block->next;
    return block;
}

struct upload {
    struct tol_loaded *loaded;
    const struct tol_gguf *file;
    struct loaded_pieces *pieces;
    const struct tol_load_options *options;
    size_t block_bytes;
    /* Of the thread that loads: */
    struct tol_stream *stream;
    struct block blocks[BLOCKS_MAX];
    size_t in_flight;             /* blocks */
    struct line copied;           /* blocks whose copies are queued */
    uint64_t done, told, next_ns; /* bytes queued; that progress heard of; when it is next called */
    pthread_mutex_t lock;
    pthread_cond_t emptied, filled;
    /* Under the lock: */
    struct line empty, full;
    size_t made, wanted, freed; /* blocks */
    size_t next;                /* piece */
    unsigned running;
    bool stops;
    tol_status status; /* the first failure of a thread that reads, and its words */
    int cuda;
    char text[TEXT_BYTES];
};

/* ---- threads that read ---- */

/* An empty block, or one that is not made yet, with the piece that it is for. NULL: there is
 * nothing more to read. */
static struct block *take(struct upload *u) {
    struct block *block = NULL;
    pthread_mutex_lock(&u->lock);
    while (!u->stops && u->next < u->pieces->count && u->empty.first == NULL &&
           u->made == u->wanted) {
        pthread_cond_wait(&u->emptied, &u->lock);
    }
    if (!u->stops && u->next < u->pieces->count) {
        block = leave(&u->empty);
        if (block == NULL) block = &u->blocks[u->made++];
        block->piece = &u->pieces->list[u->next++];
        if (u->next == u->pieces->count) pthread_cond_broadcast(&u->emptied);
    }
    pthread_mutex_unlock(&u->lock);
    return block;
}

static tol_status read_pieces(struct upload *u) {
    tol_status status = TOL_OK;
    struct block *block = NULL;
    while ((block = take(u)) != NULL) {
        struct loaded_piece *piece = block->piece;
        if (block->pinned == NULL) {
            TOL_TRY(tol_pinned_create(u->loaded->context, u->block_bytes, &block->pinned));
            TOL_TRY(tol_pinned_access(block->pinned, &block->bytes));
        }
        TOL_TRY(tol_gguf_read(u->file, piece->tensor, piece->from, block->bytes, piece->bytes));
        if (u->options->verify) piece->sum = kn_crc32c(block->bytes, piece->bytes, KN_CRC32C_BEST);
        pthread_mutex_lock(&u->lock);
        join(&u->full, block);
        pthread_cond_signal(&u->filled);
        pthread_mutex_unlock(&u->lock);
    }
out:
    return status;
}

/* A block that no piece needs any more. NULL: there will be none. */
static struct block *take_spare(struct upload *u) {
    pthread_mutex_lock(&u->lock);
    while (!u->stops && u->empty.first == NULL && u->freed < u->made) {
        pthread_cond_wait(&u->emptied, &u->lock);
    }
    struct block *block = u->stops ? NULL : leave(&u->empty);
    if (block != NULL && ++u->freed == u->made) pthread_cond_broadcast(&u->emptied);
    pthread_mutex_unlock(&u->lock);
    return block;
}

static void *run(void *user) {
    struct upload *u = user;
    struct block *spare = NULL;
    const tol_status status = read_pieces(u);
    pthread_mutex_lock(&u->lock);
    if (status != TOL_OK && u->status == TOL_OK) {
        u->status = status;
        u->cuda = tol_message_cuda();
        strncpy(u->text, tol_message(), sizeof u->text - 1);
        u->stops = true;
        pthread_cond_broadcast(&u->emptied);
    }
    u->running--;
    pthread_cond_signal(&u->filled);
    pthread_mutex_unlock(&u->lock);
    while ((spare = take_spare(u)) != NULL) {
        tol_pinned_destroy(spare->pinned);
        spare->pinned = NULL;
    }
    return NULL;
}

/* ---- the thread that loads ---- */

static void stop(struct upload *u) {
    pthread_mutex_lock(&u->lock);
    u->stops = true;
    pthread_cond_broadcast(&u->emptied);
    pthread_mutex_unlock(&u->lock);
}

static void put_back(struct upload *u, struct block *block) {
    pthread_mutex_lock(&u->lock);
    join(&u->empty, block);
    pthread_cond_signal(&u->emptied);
    pthread_mutex_unlock(&u->lock);
}

/* Waits for the first of the copies, and gives its block to the threads. */
static tol_status take_back(struct upload *u) {
    tol_status status = TOL_OK;
    struct block *block = leave(&u->copied);
    u->in_flight--;
    TOL_TRY(tol_pinned_access(block->pinned, &block->bytes));
    put_back(u, block);
out:
    return status;
}

static tol_status copy(struct upload *u, struct block *block) {
    tol_status status = TOL_OK;
    const struct loaded_piece *piece = block->piece;
    TOL_TRY(tol_copy_to_device(u->stream, u->loaded->weights, piece->to, block->pinned, 0,
                               piece->bytes));
    join(&u->copied, block);
    u->in_flight++;
    u->done += piece->bytes;
    if (u->in_flight > COPIES_MAX) status = take_back(u);
out:
    return status;
}

/* Calls progress at the beginning, at the end, and now and then. false: it cancels. */
static bool report(struct upload *u, bool is_last) {
    const uint64_t now = tol_now_ns();
    if (u->options->progress == NULL || u->told == u->done) return true;
    if (u->told != UINT64_MAX && now < u->next_ns && !is_last) return true;
    u->told = u->done;
    u->next_ns = now + REPORT_NS;
    return u->options->progress(u->options->user, u->pieces->before + u->done, u->pieces->all);
}

/* A full block; *ends: there is none, and there will be none. Waits if `idle`. */
static struct block *take_full(struct upload *u, bool idle, bool *ends) {
    pthread_mutex_lock(&u->lock);
    while (idle && u->full.first == NULL && u->running > 0) {
        pthread_cond_wait(&u->filled, &u->lock);
    }
    struct block *block = u->status == TOL_OK ? leave(&u->full) : NULL;
    *ends = block == NULL && u->running == 0;
    pthread_mutex_unlock(&u->lock);
    return block;
}

static tol_status copy_pieces(struct upload *u) {
    tol_status status = TOL_OK;
    bool ends = false;
    TOL_TRY(tol_stream_create(u->loaded->context, NULL, &u->stream));
    while (!ends) {
        TOL_CHECK(report(u, false), TOL_CANCELLED, "loading was cancelled after %llu of %llu bytes",
                  (unsigned long long)u->done, (unsigned long long)u->pieces->bytes);
        struct block *block = take_full(u, u->in_flight == 0, &ends);
        if (block != NULL) {
            TOL_TRY(copy(u, block));
        } else if (u->in_flight > 0) {
            TOL_TRY(take_back(u));
        }
        ends = ends && u->in_flight == 0;
    }
    TOL_TRY(tol_stream_synchronize_for(u->stream, DEADLINE_MS));
    TOL_CHECK(u->status != TOL_OK || report(u, true), TOL_CANCELLED,
              "loading was cancelled at its end");
out:
    return status;
}

static unsigned thread_count(const struct tol_load_options *options, size_t pieces) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned count = options->threads;
    if (count == 0) count = processors > 0 ? (unsigned)processors : 1;
    if (count > THREADS_MAX) count = THREADS_MAX;
    return count < pieces ? count : (unsigned)pieces;
}

/* Starts the threads; as many as can be. */
static unsigned start(struct upload *u, pthread_t *threads, unsigned wanted) {
    unsigned started = 0;
    u->running = wanted;
    while (started < wanted && pthread_create(&threads[started], NULL, run, u) == 0) started++;
    pthread_mutex_lock(&u->lock); /* the others take the pieces of those that could not start */
    u->running -= wanted - started;
    pthread_mutex_unlock(&u->lock);
    return started;
}

static void end(struct upload *u) {
    tol_stream_destroy(u->stream);
    for (size_t i = 0; i < BLOCKS_MAX; i++) tol_pinned_destroy(u->blocks[i].pinned);
    pthread_mutex_destroy(&u->lock);
    pthread_cond_destroy(&u->emptied);
    pthread_cond_destroy(&u->filled);
}

tol_status loaded_upload(struct tol_loaded *loaded, const struct tol_model *model,
                         struct loaded_pieces *pieces, const struct tol_load_options *options) {
    tol_status status = TOL_OK;
    pthread_t threads[THREADS_MAX];
    struct upload u = {.loaded = loaded,
                       .file = tol_model_file(model),
                       .pieces = pieces,
                       .options = options,
                       .told = UINT64_MAX,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .emptied = PTHREAD_COND_INITIALIZER,
                       .filled = PTHREAD_COND_INITIALIZER};
    for (size_t i = 0; i < pieces->count; i++) {
        if (pieces->list[i].bytes > u.block_bytes) u.block_bytes = pieces->list[i].bytes;
    }
    const unsigned wanted = thread_count(options, pieces->count);
    u.wanted = 2 * (size_t)wanted < pieces->count ? 2 * (size_t)wanted : pieces->count;
    const unsigned started = start(&u, threads, wanted);
    status = started > 0 ? copy_pieces(&u) : TOL_OUT_OF_HOST_MEMORY;
    stop(&u);
    for (unsigned i = 0; i < started; i++) pthread_join(threads[i], NULL);
    TOL_CHECK(started > 0, TOL_OUT_OF_HOST_MEMORY, "no thread could be started to read the model");
    if (u.status != TOL_OK) status = tol_fail_again(u.status, u.cuda, u.text);
out:
    end(&u);
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
