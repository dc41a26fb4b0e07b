/*
 * What recording costs, in nanoseconds a value, over values as times are and over the whole range;
 * and what else is done with histograms. `ninja bench-hdr` runs it; nothing is asserted.
 */
#include "harness/clock.h"
#include "hdr_encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 4096, TURNS = 2000, REPEATS = 9 };

static int64_t values[VALUES];

/* Values below a limit, or around it. */
static void hdr_bench_draw(int64_t limit, bool around) {
    uint64_t state = 1;
    for (int i = 0; i < VALUES; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        values[i] = (int64_t)((state >> 20) % (uint64_t)limit);
        if (around) values[i] = limit + values[i] / 50;
    }
}

/* The least of several repeats: others only make it longer. */
static void show_recording(const char *name, struct tol_hdr *hdr) {
    double least = 1e9;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        uint64_t begin_ns = hyp_clock_ns();
        for (int turn = 0; turn < TURNS; turn++) {
            for (int i = 0; i < VALUES; i++) tol_hdr_record(hdr, values[i]);
        }
        double ns = (double)(hyp_clock_ns() - begin_ns) / ((double)VALUES * TURNS);
        if (ns < least) least = ns;
    }
    printf("%-44s %8.2f ns a value\n", name, least);
}

static void show_call(const char *name, double ns) {
    printf("%-44s %8.1f us\n", name, ns / 1e3);
}

int main(void) {
    struct tol_hdr *hdr = NULL, *other = NULL;
    if (tol_hdr_new_latency(&hdr) != TOL_HDR_OK || tol_hdr_new_latency(&other) != TOL_HDR_OK) {
        return 1;
    }
    hdr_bench_draw(2000, true);
    show_recording("around 2 us", hdr);
    hdr_bench_draw(100 * 1000 * 1000, false);
    show_recording("up to 100 ms", hdr);
    hdr_bench_draw(3600ll * 1000 * 1000 * 1000, false);
    show_recording("up to an hour", hdr);

    uint64_t begin_ns = hyp_clock_ns();
    int64_t p99 = tol_hdr_percentile(hdr, 99);
    show_call("a percentile", (double)(hyp_clock_ns() - begin_ns));
    begin_ns = hyp_clock_ns();
    tol_hdr_error error = tol_hdr_add(other, hdr);
    show_call("adding one to another", (double)(hyp_clock_ns() - begin_ns));
    begin_ns = hyp_clock_ns();
    char *text = hyp_hdr_encode(hdr);
    show_call("encoding", (double)(hyp_clock_ns() - begin_ns));
    if (text == NULL || error != TOL_HDR_OK || p99 == 0) return 1;
    printf("%-44s %8zu bytes for %d counts\n", "its size", strlen(text), hdr->count_of_counts);
    free(text);
    tol_hdr_free(hdr);
    tol_hdr_free(other);
    return 0;
}
