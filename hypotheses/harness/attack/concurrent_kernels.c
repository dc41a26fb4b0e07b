/*
 * Kernels side by side, and the account of them.
 */
#include "concurrent_kernels.h"

#include "harness/clock.h"
#include "files/atomic_file.h"
#include "record/record.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 128, SOFT_STEPS = 64, FIRST_STEPS = 20000, STEPS_MAX = 1 << 28 };

/* What the device's timer may be off by from one multiprocessor to the next. */
static const uint64_t TIMER_NS = 2000;

/* steps steps of the kernel's generator as one: x becomes a * x + c. */
static void concurrent_kernels_jump(unsigned steps, unsigned *a, unsigned *c) {
    unsigned a_step = 1664525u, c_step = 1013904223u;
    *a = 1;
    *c = 0;
    for (; steps > 0; steps >>= 1) {
        if (steps & 1) {
            *a *= a_step;
            *c = *c * a_step + c_step;
        }
        c_step *= a_step + 1;
        a_step *= a_step;
    }
}

static unsigned concurrent_kernels_count_of(const struct hyp_concurrent_kernels *g) {
    return g->blocks * THREADS;
}

static size_t concurrent_kernels_bytes_of(const struct hyp_concurrent_kernels *g) {
    size_t sums = 4 * (size_t)concurrent_kernels_count_of(g);
    return g->chunk_bytes > sums ? g->chunk_bytes : sums;
}

/* One kernel with its copies. */
static bool concurrent_kernels_queue(struct hyp_concurrent_kernels *g, unsigned kernel,
                                     struct tol_stream *stream) {
    CUdeviceptr times = tol_buffer_address(g->times) + 16 * (CUdeviceptr)kernel;
    const size_t bytes = g->chunk_bytes;
    if (bytes > 0 &&
        tol_copy_to_device(stream, g->sums[kernel], 0, g->there[kernel], 0, bytes) != TOL_OK) {
        return false;
    }
    if (tol_launch(stream, g->grind, tol_launch_linear(concurrent_kernels_count_of(g), THREADS),
                   TOL_ARGUMENTS(tol_buffer_address(g->sums[kernel]), times, g->steps)) != TOL_OK) {
        return false;
    }
    return bytes == 0 ||
           tol_copy_to_host(stream, g->back[kernel], 0, g->sums[kernel], 0, bytes) == TOL_OK;
}

double hyp_concurrent_kernels_batch(void *user, enum hyp_side side, unsigned calls) {
    struct hyp_concurrent_kernels *g = user;
    bool ok = true;
    uint64_t begin = hyp_clock_ns();
    for (unsigned call = 0; ok && call < calls; call++) {
        for (unsigned i = 0; ok && i < g->kernels; i++) {
            ok = concurrent_kernels_queue(g, i, g->streams[side == HYP_BASELINE ? i : 0]);
        }
        for (unsigned i = 0; ok && i < (side == HYP_BASELINE ? g->kernels : 1); i++) {
            ok = tol_stream_synchronize(g->streams[i]) == TOL_OK;
        }
        g->made++;
    }
    return ok ? (double)(hyp_clock_ns() - begin) : -1;
}

/* Finds the number of steps that take about this long, with kernels on one stream. */
static bool find_steps(struct hyp_concurrent_kernels *g, double kernel_us) {
    g->steps = FIRST_STEPS;
    size_t chunk_bytes = g->chunk_bytes;
    g->chunk_bytes = 0; /* the kernel alone */
    double us = 0;
    for (int turn = 0; turn < 4; turn++) {
        double steps = 0;
        for (int again = 0; again < 2; again++) { /* the first may load the kernel */
            double ns = hyp_concurrent_kernels_batch(g, HYP_SUBJECT, 1);
            if (ns <= 0) return false;
            us = ns * 1e-3 / g->kernels;
        }
        steps = g->steps * (kernel_us / us);
        if (turn < 3) g->steps = steps < 1 ? 1 : steps > STEPS_MAX ? STEPS_MAX : (unsigned)steps;
    }
    g->chunk_bytes = chunk_bytes;
    hyp_attack_note(g->attack, "%u kernels of %u blocks, %.0f us each, on %d multiprocessors",
                    g->kernels, g->blocks, us,
                    tol_context_device(g->attack->context)->multiprocessors);
    return true;
}

static bool concurrent_kernels_clear(struct hyp_concurrent_kernels *g) {
    for (unsigned i = 0; i < g->kernels; i++) {
        if (!HYP_OK(g->attack,
                    tol_buffer_fill_at(g->sums[i], 0, 0, 4, concurrent_kernels_bytes_of(g) / 4))) {
            return false;
        }
    }
    g->made = 0;
    return true;
}

/* The pinned side of a copied chunk: words that depend on the kernel and the place. */
static unsigned concurrent_kernels_word_of(unsigned kernel, size_t index) {
    return ((unsigned)index ^ kernel << 28) * 2654435761u;
}

static bool make_chunks(struct hyp_concurrent_kernels *g, unsigned kernel) {
    struct hyp_attack *attack = g->attack;
    void *data = NULL;
    if (!HYP_OK(attack, tol_pinned_create(attack->context, g->chunk_bytes, &g->there[kernel])) ||
        !HYP_OK(attack, tol_pinned_create(attack->context, g->chunk_bytes, &g->back[kernel])) ||
        !HYP_OK(attack, tol_pinned_access(g->there[kernel], &data))) {
        return false;
    }
    for (size_t i = 0; i < g->chunk_bytes / 4; i++)
        ((unsigned *)data)[i] = concurrent_kernels_word_of(kernel, i);
    return true;
}

bool hyp_concurrent_kernels_begin(struct hyp_attack *attack, unsigned kernels, double kernel_us,
                                  size_t chunk_bytes, struct hyp_concurrent_kernels *g) {
    const struct tol_device *device = tol_context_device(attack->context);
    memset(g, 0, sizeof *g);
    g->attack = attack;
    g->kernels = kernels;
    g->blocks = (unsigned)device->multiprocessors / (2 * kernels);
    if (g->blocks == 0) g->blocks = 1;
    g->chunk_bytes = chunk_bytes;
    g->grind = hyp_attack_kernel(attack, "grind");
    if (g->grind == NULL || !HYP_OK(attack, tol_buffer_create(attack->context, 2 * kernels,
                                                              sizeof(uint64_t), &g->times))) {
        return false;
    }
    for (unsigned i = 0; i < kernels; i++) {
        if (!HYP_OK(attack, tol_stream_create(attack->context, NULL, &g->streams[i])) ||
            !HYP_OK(attack, tol_buffer_create(attack->context, concurrent_kernels_bytes_of(g), 1,
                                              &g->sums[i])) ||
            (chunk_bytes > 0 && !make_chunks(g, i))) {
            return false;
        }
    }
    if (!concurrent_kernels_clear(g)) return false;
    if (attack->kind == HYP_DEVICE_SOFT) {
        g->steps = SOFT_STEPS;
    } else if (!find_steps(g, kernel_us) || !concurrent_kernels_clear(g)) {
        return HYP_CHECK(attack, false, "kernels could not be timed: %.600s", tol_message());
    }
    return true;
}

/* The largest number of spans at one moment: at each beginning, those that have not ended. */
static unsigned most_at_once(const uint64_t *spans, unsigned count) {
    unsigned most = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned now = 0;
        for (unsigned k = 0; k < count; k++) {
            now += spans[2 * k] <= spans[2 * i] && spans[2 * k + 1] > spans[2 * i] + TIMER_NS;
        }
        if (now > most) most = now;
    }
    return most > 0 ? most : 1;
}

/* One line per kernel, for the reports to draw: its stream, and when it ran by the device's
 * timer. */
static void write_spans(const struct hyp_concurrent_kernels *g, enum hyp_side side,
                        const uint64_t *spans) {
    char path[1024];
    struct hyp_file file;
    if (g->attack->session.out == NULL) return;
    snprintf(path, sizeof path, "%.700s/%.96s.%u_kernels_on_%s%s.csv", g->attack->session.out,
             g->attack->record->name, g->kernels,
             side == HYP_BASELINE ? "a_stream_each" : "one_stream",
             g->chunk_bytes > 0 ? "_with_copies" : "");
    bool ok = hyp_file_begin(&file, path);
    if (ok) {
        fprintf(file.stream, "lane,what,begin_ns,end_ns\n");
        for (unsigned i = 0; i < g->kernels; i++) {
            fprintf(file.stream, "stream %u,kernel,%llu,%llu\n", side == HYP_BASELINE ? i + 1 : 1,
                    (unsigned long long)spans[2 * i], (unsigned long long)spans[2 * i + 1]);
        }
        ok = hyp_file_keep(&file);
    }
    cr_assert(ok, "the evidence could not be written: %s", hyp_error());
}

unsigned hyp_concurrent_kernels_at_once(struct hyp_concurrent_kernels *g, enum hyp_side side) {
    uint64_t spans[2 * HYP_CONCURRENT_KERNELS_MAX];
    for (unsigned i = 0; i < g->kernels; i++) {
        spans[2 * i] = UINT64_MAX;
        spans[2 * i + 1] = 0;
    }
    if (!HYP_OK(g->attack, tol_buffer_write(g->times, spans, 16 * (size_t)g->kernels))) return 0;
    double ns = hyp_concurrent_kernels_batch(g, side, 1);
    if (!HYP_CHECK(g->attack, ns > 0, "a run failed: %.600s", tol_message()) ||
        !HYP_OK(g->attack, tol_buffer_read(g->times, spans, 16 * (size_t)g->kernels))) {
        return 0;
    }
    for (unsigned i = 0; i < g->kernels; i++) {
        HYP_CHECK(g->attack, spans[2 * i] <= spans[2 * i + 1], "kernel %u recorded no times", i);
        if (side == HYP_BASELINE || i == 0) continue;
        HYP_CHECK(g->attack, spans[2 * i] + TIMER_NS >= spans[2 * i - 1],
                  "on one stream, kernel %u began %llu ns before the previous kernel ended", i,
                  (unsigned long long)(spans[2 * i - 1] - spans[2 * i]));
    }
    write_spans(g, side, spans);
    return most_at_once(spans, g->kernels);
}

static void check_sums(struct hyp_concurrent_kernels *g, unsigned kernel, unsigned *words) {
    unsigned a = 0, c = 0, wrong = 0, example = 0;
    if (!HYP_OK(g->attack, tol_buffer_read_at(g->sums[kernel], 0, words,
                                              4 * (size_t)concurrent_kernels_count_of(g)))) {
        return;
    }
    concurrent_kernels_jump(g->steps, &a, &c);
    /* A chunk that is copied begins anew each time, so one launch is all that is in it. */
    unsigned long long launches = g->chunk_bytes > 0 ? 1 : g->made;
    for (unsigned i = 0; i < concurrent_kernels_count_of(g); i++) {
        unsigned start = g->chunk_bytes > 0 ? concurrent_kernels_word_of(kernel, i) : 0;
        if (words[i] == start + (unsigned)launches * (a * i + c)) continue;
        if (wrong++ == 0) example = i;
    }
    HYP_CHECK(g->attack, wrong == 0,
              "kernel %u was launched %llu times, and %u of %u threads have a wrong sum; the first "
              "is thread %u",
              kernel, g->made, wrong, concurrent_kernels_count_of(g), example);
}

static void check_chunk(struct hyp_concurrent_kernels *g, unsigned kernel, const unsigned *sums) {
    void *data = NULL;
    size_t wrong = 0;
    if (!HYP_OK(g->attack, tol_pinned_access(g->back[kernel], &data))) return;
    for (size_t i = 0; i < g->chunk_bytes / 4; i++) {
        unsigned wanted =
            i < concurrent_kernels_count_of(g) ? sums[i] : concurrent_kernels_word_of(kernel, i);
        wrong += ((const unsigned *)data)[i] != wanted;
    }
    HYP_CHECK(g->attack, wrong == 0, "%zu of %zu words of chunk %u were changed by the copies",
              wrong, g->chunk_bytes / 4, kernel);
}

void hyp_concurrent_kernels_end(struct hyp_concurrent_kernels *g) {
    unsigned *words = malloc(4 * (size_t)concurrent_kernels_count_of(g) + 1);
    for (unsigned i = 0; i < g->kernels; i++) {
        bool is_whole = words != NULL && g->sums[i] != NULL && g->streams[i] != NULL;
        if (is_whole && g->made > 0) {
            HYP_OK(g->attack, tol_stream_synchronize(g->streams[i]));
            check_sums(g, i, words);
            if (g->chunk_bytes > 0) check_chunk(g, i, words);
        }
        tol_stream_destroy(g->streams[i]);
        tol_pinned_destroy(g->there[i]);
        tol_pinned_destroy(g->back[i]);
        tol_buffer_destroy(g->sums[i]);
    }
    free(words);
    tol_buffer_destroy(g->times);
}
