/*
 * What a block costs: the pool's profiles beside the driver's own allocators, in one run.
 *
 *     bench-pool [--json] [--steps N] [--pairs N] [--grow SHARE] [--apart N] [LIBRARY]
 *                       LIBRARY is the driver's; else it is the platform's or the soft device's
 *     TOLLENS_SOFT_MEMORY=60G bench-pool --priced [--steps N] [--grow SHARE] [LIBRARY]    exact
 *     bench-pool --torch [OPTIONS]    PyTorch's allocators: runtime/driver/torch/torch_bench.py
 *
 * Hot: the same size freed and allocated again, the rounds of all rows in turn. Walk: the H12
 * walk, 1 KiB to 10 MiB, 70 of 100 steps allocate; then steps at 50 of 100. The ratio is bytes held
 * from the driver to bytes asked for, at the end and at its worst above a GiB; beside it, how many
 * handles of memory were taken from the driver or given back, of an allocation, which is what p99
 * depends on. In flight: blocks freed while a stream uses them, and the driver calls that this
 * costs. Times are the host's, an allocation or a free each. --grow tries another value of
 * grow_share in the default profile. --apart keeps each hot thread on a processor of its own, each
 * N-th of those that the process may use: with 2, threads of one core do not share it where its
 * two processors are numbered in succession.
 * --priced: times of a walk are what its driver calls cost by their prices on an H100.
 */
#include "core/any_driver.h"
#include "pool_bench.h"
#include "tollens/interpose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSORS_MAX = 256 };

/* A number from 1 to most; most for anything else. */
static int pool_bench_read_count(const char *text, int most) {
    long number = strtol(text, NULL, 10);
    return number > 0 && number < most ? (int)number : most;
}

static bool pool_bench_read_arguments(int argc, char **argv, const char **library) {
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--json") == 0) {
            bench.is_json = true;
            continue;
        }
        if (strcmp(argv[i], "--priced") == 0) {
            bench.is_priced = true;
            continue;
        }
        if (argv[i][0] != '-' && *library == NULL) {
            *library = argv[i];
            continue;
        }
        if (value == NULL) return false;
        if (strcmp(argv[i], "--steps") == 0) {
            bench.steps = pool_bench_read_count(value, WALK_STEPS);
        } else if (strcmp(argv[i], "--pairs") == 0) {
            bench.pairs = pool_bench_read_count(value, HOT_PAIRS);
        } else if (strcmp(argv[i], "--apart") == 0) {
            bench.apart = pool_bench_read_count(value, PROCESSORS_MAX);
        } else if (strcmp(argv[i], "--grow") == 0) {
            bench.grow_share = strtod(value, NULL);
        } else {
            return false;
        }
        i++;
    }
    return true;
}

static void pool_bench_print_all(void) {
    const char *device = tol_context_device(bench.context)->name;
    if (!bench.is_json) {
        printf("%s, ns for an allocation and its free, hot:\n%-8s %-16s %12s %12s %12s\n", device,
               "bytes", "allocator", "1 thread", "4 threads", "throughput");
    }
    print_hot();
    if (!bench.is_json) {
        printf("\nfrees in flight, of 1000: ns each, and driver calls\n%-16s %8s %14s %12s\n",
               "allocator", "free", "another stream", "driver calls");
    }
    for (enum kind kind = 0; kind < DRIVER_SYNC; kind++) print_flights(kind);
    if (!bench.is_json) {
        printf("\nwalk of 1 KiB to 10 MiB, %d steps, then %d; ratio held to asked for; ns:\n"
               "%-8s %-16s %6s %8s %8s %8s %8s %9s %8s %8s %8s\n",
               bench.steps, 10 * bench.steps, "walk", "allocator", "think", "final", "worst", "p50",
               "p99", "max", "free p50", "p99", "handles");
    }
    for (enum kind kind = 0; kind < DRIVER_SYNC; kind++) print_walks(kind);
}

static void print_priced(void) {
    printf(
        "walks of 1 KiB to 10 MiB, %d steps, then %d; ratio held to asked for; us of driver calls "
        "by their prices on an H100; seed 42, and the means of %d seeds\n"
        "%-7s %-16s %7s %7s %7s %5s %6s %6s %7s %7s | %7s %7s %7s %7s %6s\n",
        bench.steps, 10 * bench.steps, 8, "walk", "allocator", "final", "worst", "handles", "two+",
        "p50", "p99", "max", "freep99", "final", "worst", "highest", "two+", "p99");
    for (enum kind kind = 0; kind < DRIVER_ASYNC; kind++) print_priced_walks(kind);
}

/* Becomes the script in the source tree that this program was built in, or of its bundle. */
static int run_torch(int count, char **arguments) {
    char script[4096];
    char *words[64] = {"python3", script};
    ssize_t length = readlink("/proc/self/exe", script, sizeof script - 64);
    script[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(script, '/');
    if (slash == NULL || count > 60) return 2;
    strcpy(slash, "/../runtime/driver/torch/torch_bench.py");
    if (access(script, R_OK) != 0) strcpy(slash, "/torch/torch_bench.py");
    for (int i = 0; i < count; i++) words[2 + i] = arguments[i];
    execvp(words[0], words);
    fprintf(stderr, "bench-pool: python3 cannot be run\n");
    return 2;
}

int main(int argc, char **argv) {
    const char *library = NULL;
    if (argc > 1 && strcmp(argv[1], "--torch") == 0) return run_torch(argc - 2, argv + 2);
    bench = (struct pool_bench){.steps = WALK_STEPS, .pairs = HOT_PAIRS, .grow_share = -1};
    if (!pool_bench_read_arguments(argc, argv, &library)) {
        fprintf(stderr,
                "usage: bench-pool [--json] [--priced] [--steps N] [--pairs N] [--grow SHARE] "
                "[--apart N] [LIBRARY], at most %d steps and %d pairs; or bench-pool --torch "
                "[OPTIONS]\n",
                WALK_STEPS, HOT_PAIRS);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* what has been measured outlives a time limit */
    must(tol_any_driver_open(library, &bench.driver, NULL), "the driver");
    if (bench.is_priced) price_calls(bench.driver);
    must(tol_context_create(bench.driver, 0, &bench.context), "device 0");
    must(tol_context_bind(bench.context), "device 0");
    if (bench.is_priced)
        print_priced();
    else
        pool_bench_print_all();
    tol_context_destroy(bench.context);
    tol_interpose_remove(bench.driver);
    tol_driver_close(bench.driver);
    return 0;
}
