/*
 * What a copy of ordinary memory reaches of the bandwidth of pinned memory: the runtime's copy in
 * pieces, the driver's own copy of the same memory, a copy of pinned memory, and one for which the
 * pages are registered and released again, in one run, to the device and back. The first three take
 * turns.
 *
 *     bench-transfer [--library PATH] [--json FILE] [--max MIB] [--block KIB] [--first KIB]
 *                    [--threads N] [--spinners N] [--spin US] [--pack streamed|cached]
 *                    [--unpack streamed|cached] [--candidates]
 *
 * Without a library it takes the platform's, or the soft device beside it. `ninja bench-transfer`
 * runs it. --candidates then copies 64 KiB to 16 MiB in both directions with other options, each
 * compared with the driver's and pinned copies. It asserts no times; the goals are 1.15 of the
 * driver's bandwidth from 64 KiB on, and 0.5 of pinned copies' from 1 MiB on.
 */
#include "transfer_bench.h"

#include "core/any_driver.h"
#include "core/monotonic.h"
#include "core/check.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS_MAX = 41, SIZES_MAX = 16 };

static const char *const way_names[WAYS] = {"pinned", "driver_pageable", "runtime_pageable",
                                            "registered"};

static double transfer_bench_now_s(void) {
    return (double)tol_now_ns() * 1e-9;
}

static tol_status transfer_bench_copy_once(struct bench *b, enum way way, bool is_write,
                                           size_t bytes) {
    tol_status status = TOL_OK;
    char *host = way == PINNED ? b->pinned : b->pageable;
    if (way == RUNTIME) {
        return is_write ? tol_transfer_write(b->transfer, b->place, 0, host, bytes)
                        : tol_transfer_read(b->transfer, b->place, 0, host, bytes);
    }
    if (way == REGISTERED && (b->pin == NULL || b->pin(host, bytes, 0) != CUDA_SUCCESS)) {
        b->pin = NULL; /* the row says 0 */
        return TOL_OK;
    }
    if (is_write) {
        TOL_CU(b->cu, cuMemcpyHtoD_v2, (b->place.address, host, bytes), "%zu bytes", bytes);
    } else {
        TOL_CU(b->cu, cuMemcpyDtoH_v2, (host, b->place.address, bytes), "%zu bytes", bytes);
    }
    /* The driver's copy to the device may return before it is done. */
    TOL_CU(b->cu, cuCtxSynchronize, (), "a copy of %zu bytes", bytes);
    if (way == REGISTERED) (void)b->unpin(host);
out:
    return status;
}

static int transfer_bench_compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Ways FIRST up to LAST in turn. Registering takes turns of its own, since it lasts long enough for
 * the runtime's threads to fall asleep. */
static tol_status transfer_bench_take_turns(struct bench *b, struct row *row, int first, int last,
                                            int turns, double seconds[WAYS][TURNS_MAX]) {
    tol_status status = TOL_OK;
    const int ways = last - first;
    for (int turn = -2; turn < turns; turn++) {
        for (int i = 0; i < ways; i++) {
            enum way way = (enum way)(first + (i + turn + 2) % ways);
            double begin = transfer_bench_now_s();
            TOL_TRY(transfer_bench_copy_once(b, way, row->is_write, row->bytes));
            if (turn >= 0) seconds[way][turn] = transfer_bench_now_s() - begin;
        }
    }
out:
    return status;
}

tol_status measure_ways(struct bench *b, struct row *row, enum way first, enum way last) {
    tol_status status = TOL_OK;
    static double seconds[WAYS][TURNS_MAX];
    int turns = row->bytes >= (size_t)256 << 20 ? 7 : row->bytes >= (size_t)16 << 20 ? 21 : 41;
    TOL_TRY(transfer_bench_take_turns(b, row, (int)first, (int)last, turns, seconds));
    for (int way = (int)first; way < (int)last; way++) {
        qsort(seconds[way], (size_t)turns, sizeof seconds[way][0], transfer_bench_compare);
        row->gb_per_s[way] = (double)row->bytes / seconds[way][turns / 2] * 1e-9;
    }
out:
    return status;
}

static tol_status transfer_bench_measure(struct bench *b, struct row *row) {
    tol_status status = TOL_OK;
    TOL_TRY(measure_ways(b, row, PINNED, REGISTERED));
    TOL_TRY(measure_ways(b, row, REGISTERED, WAYS));
    if (b->pin == NULL) row->gb_per_s[REGISTERED] = 0;
out:
    return status;
}

static tol_status transfer_bench_write_json(const struct bench *b, const struct row *rows,
                                            size_t count) {
    tol_status status = TOL_OK;
    struct tol_transfer_stats stats;
    const struct tol_device *device = tol_context_device(b->context);
    TOL_TRY(tol_transfer_stats(b->transfer, &stats));
    FILE *file = fopen(b->json, "w");
    TOL_CHECK(file != NULL, TOL_INVALID_ARGUMENT, "%s cannot be written", b->json);
    fprintf(file,
            "{\n  \"device\": \"%s\",\n  \"pci_bus_id\": \"%s\",\n  \"numa_node\": %d,\n"
            "  \"block_bytes\": %zu,\n  \"first_bytes\": %zu,\n  \"threads\": %u,\n"
            "  \"spinners\": %u,\n  \"spin_us\": %u,\n  \"pinned_bytes\": %llu,\n"
            "  \"rows\": [\n",
            device->name, device->pci_bus_id, stats.numa_node, b->options.block_bytes,
            b->options.first_bytes, b->options.threads, b->options.spinners, b->options.spin_us,
            (unsigned long long)stats.pinned_bytes);
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "    {\"direction\": \"%s\", \"bytes\": %zu",
                rows[i].is_write ? "h2d" : "d2h", rows[i].bytes);
        for (int way = 0; way < WAYS; way++) {
            fprintf(file, ", \"%s_gb_per_s\": %.3f", way_names[way], rows[i].gb_per_s[way]);
        }
        fprintf(file, ", \"of_pinned\": %.4f, \"of_driver\": %.4f}%s\n",
                rows[i].gb_per_s[RUNTIME] / rows[i].gb_per_s[PINNED],
                rows[i].gb_per_s[RUNTIME] / rows[i].gb_per_s[DRIVER], i + 1 < count ? "," : "");
    }
    fprintf(file, "  ]\n}\n");
    TOL_CHECK(fclose(file) == 0, TOL_INVALID_ARGUMENT, "%s cannot be written", b->json);
out:
    return status;
}

static void transfer_bench_print_row(const struct row *row) {
    printf("%-4s %12zu %10.2f %10.2f %10.2f %10.2f %10.3f %10.3f\n", row->is_write ? "h2d" : "d2h",
           row->bytes, row->gb_per_s[PINNED], row->gb_per_s[DRIVER], row->gb_per_s[RUNTIME],
           row->gb_per_s[REGISTERED], row->gb_per_s[RUNTIME] / row->gb_per_s[PINNED],
           row->gb_per_s[RUNTIME] / row->gb_per_s[DRIVER]);
    fflush(stdout);
}

static tol_status transfer_bench_run(struct bench *b) {
    tol_status status = TOL_OK;
    static struct row rows[2 * SIZES_MAX];
    size_t count = 0;
    printf("%s, %u threads, blocks of %zu KiB, the first of %zu; GB/s, medians\n"
           "%-4s %12s %10s %10s %10s %10s %10s %10s\n",
           tol_context_device(b->context)->name, b->options.threads, b->options.block_bytes >> 10,
           b->options.first_bytes >> 10, "", "bytes", "pinned", "driver's", "runtime's",
           "registered", "of pinned", "of driver");
    for (int direction = 0; direction < 2; direction++) {
        for (size_t bytes = 4096; bytes <= b->max_bytes; bytes *= 4) {
            struct row *row = &rows[count++];
            *row = (struct row){.bytes = bytes, .is_write = direction == 0};
            TOL_TRY(transfer_bench_measure(b, row));
            transfer_bench_print_row(row);
        }
    }
    if (b->json != NULL) status = transfer_bench_write_json(b, rows, count);
out:
    return status;
}

/* ---- candidates ---- */

/* One option changed, by name; NULL: none. */
struct candidate {
    const char *name;
    void (*change)(struct tol_transfer_options *options);
};

static void first_64(struct tol_transfer_options *o) {
    o->first_bytes = 64 * KIB;
}
static void first_256(struct tol_transfer_options *o) {
    o->first_bytes = 256 * KIB;
}
static void first_whole(struct tol_transfer_options *o) {
    o->first_bytes = 0;
}
static void pack_cached(struct tol_transfer_options *o) {
    o->pack = TOL_TRANSFER_CACHED;
}
static void pack_streamed_all(struct tol_transfer_options *o) {
    o->streamed_bytes = 0;
}
static void streamed_64(struct tol_transfer_options *o) {
    o->streamed_bytes = 64 * KIB;
}
static void streamed_64_whole(struct tol_transfer_options *o) {
    o->streamed_bytes = 64 * KIB;
    o->first_bytes = 0;
}
static void streamed_64_first_256(struct tol_transfer_options *o) {
    o->streamed_bytes = 64 * KIB;
    o->first_bytes = 256 * KIB;
}
static void unpack_streamed(struct tol_transfer_options *o) {
    o->unpack = TOL_TRANSFER_STREAMED;
}
static void spin_never(struct tol_transfer_options *o) {
    o->spin_us = 0;
}
static void spin_long(struct tol_transfer_options *o) {
    o->spin_us = 2000;
}
static void spin_many(struct tol_transfer_options *o) {
    o->spinners = 7;
    o->spin_us = 2000;
}
static void threads_4(struct tol_transfer_options *o) {
    o->threads = 4;
}
static void threads_8(struct tol_transfer_options *o) {
    o->threads = 8;
}
static void block_2048(struct tol_transfer_options *o) {
    o->block_bytes = 2048 * KIB;
}

static const struct candidate candidates[] = {{"as they are", NULL},
                                              {"first 64 KiB", first_64},
                                              {"first 256 KiB", first_256},
                                              {"first whole", first_whole},
                                              {"pack cached", pack_cached},
                                              {"unpack streamed", unpack_streamed},
                                              {"pack streamed, all", pack_streamed_all},
                                              {"streamed from 64 KiB", streamed_64},
                                              {"streamed, first 256 KiB", streamed_64_first_256},
                                              {"streamed, first whole", streamed_64_whole},
                                              {"spin never", spin_never},
                                              {"spin 2 ms", spin_long},
                                              {"spin 2 ms, 7 threads", spin_many},
                                              {"4 threads", threads_4},
                                              {"8 threads", threads_8},
                                              {"blocks of 2 MiB", block_2048}};

/* Each candidate on its own transfer, so its threads are the only ones that spin. */
static tol_status try_candidate(struct bench *b, const struct candidate *candidate) {
    tol_status status = TOL_OK;
    struct bench own = *b;
    own.transfer = NULL;
    if (candidate->change != NULL) candidate->change(&own.options);
    TOL_TRY(tol_transfer_create(b->context, &own.options, &own.transfer));
    printf("-- %s\n", candidate->name);
    for (int direction = 0; direction < 2; direction++) {
        for (size_t bytes = 64 * KIB; bytes <= 16384 * KIB && bytes <= b->max_bytes; bytes *= 2) {
            struct row row = {.bytes = bytes, .is_write = direction == 0};
            TOL_TRY(transfer_bench_measure(&own, &row));
            transfer_bench_print_row(&row);
        }
    }
out:
    tol_transfer_destroy(own.transfer);
    return status;
}

static tol_status try_candidates(struct bench *b) {
    tol_status status = TOL_OK;
    tol_transfer_destroy(b->transfer); /* its threads spin too */
    b->transfer = NULL;
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        TOL_TRY(try_candidate(b, &candidates[i]));
    }
out:
    return status;
}

/* The options, or false. */
static bool transfer_bench_read_options(struct bench *b, int argc, char **argv,
                                        const char **library) {
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--candidates") == 0) {
            b->has_candidates = true;
            i--;
            continue;
        }
        size_t number = value != NULL ? (size_t)strtoull(value, NULL, 10) : 0;
        if (value == NULL) return false;
        if (strcmp(argv[i], "--library") == 0) {
            *library = value;
        } else if (strcmp(argv[i], "--json") == 0) {
            b->json = value;
        } else if (strcmp(argv[i], "--first") == 0) {
            b->options.first_bytes = number << 10;
        } else if (strcmp(argv[i], "--spin") == 0) {
            b->options.spin_us = (unsigned)number;
        } else if (strcmp(argv[i], "--spinners") == 0) {
            b->options.spinners = (unsigned)number;
        } else if (strcmp(argv[i], "--pack") == 0 || strcmp(argv[i], "--unpack") == 0) {
            const bool is_cached = strcmp(value, "cached") == 0;
            if (!is_cached && strcmp(value, "streamed") != 0) return false;
            *(argv[i][2] == 'p' ? &b->options.pack : &b->options.unpack) =
                is_cached ? TOL_TRANSFER_CACHED : TOL_TRANSFER_STREAMED;
        } else if (number == 0) {
            return false;
        } else if (strcmp(argv[i], "--max") == 0) {
            b->max_bytes = number << 20;
        } else if (strcmp(argv[i], "--block") == 0) {
            b->options.block_bytes = number << 10;
        } else if (strcmp(argv[i], "--threads") == 0) {
            b->options.threads = (unsigned)number;
        } else {
            return false;
        }
    }
    return true;
}

/* The library is loaded, so nothing is loaded here. */
static void find_pinning(struct bench *b, const struct tol_driver *driver) {
    void *library = dlopen(tol_driver_path(driver), RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL) return;
    *(void **)&b->pin = dlsym(library, "cuMemHostRegister_v2");
    *(void **)&b->unpin = dlsym(library, "cuMemHostUnregister");
    if (b->unpin == NULL) b->pin = NULL;
}

int main(int argc, char **argv) {
    tol_status status = TOL_OK;
    struct tol_driver *driver = NULL;
    struct tol_buffer *buffer = NULL;
    struct bench b = {0};
    const char *library = NULL;
    void *pinned = NULL;
    bool is_fallback = false;
    tol_transfer_default(&b.options);
    if (!transfer_bench_read_options(&b, argc, argv, &library)) {
        fprintf(stderr, "usage: bench-transfer [--library PATH] [--json FILE] [--max MIB] "
                        "[--block KIB] [--first KIB] [--threads N] [--spinners N] [--spin US] "
                        "[--pack streamed|cached] [--unpack streamed|cached] [--candidates]\n");
        return 2;
    }
    TOL_TRY(tol_any_driver_open(library, &driver, &is_fallback));
    if (b.max_bytes == 0) b.max_bytes = (size_t)(is_fallback ? 64 : 1024) << 20;
    if (b.max_bytes > (size_t)8 << 30) b.max_bytes = (size_t)8 << 30;
    TOL_TRY(tol_context_create(driver, 0, &b.context));
    TOL_TRY(tol_context_bind(b.context));
    b.cu = tol_context_functions(b.context);
    TOL_TRY(tol_buffer_create(b.context, b.max_bytes, 1, &buffer));
    b.place = tol_place_of_buffer(buffer);
    TOL_TRY(tol_transfer_create(b.context, &b.options, &b.transfer));
    TOL_CU(b.cu, cuMemHostAlloc, (&pinned, b.max_bytes, 0), "%zu bytes", b.max_bytes);
    b.pinned = pinned;
    b.pageable = malloc(b.max_bytes + 4096);
    TOL_CHECK(b.pageable != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", b.max_bytes);
    memset(b.pinned, 1, b.max_bytes);
    memset(b.pageable, 2, b.max_bytes + 4096);
    find_pinning(&b, driver);
    TOL_TRY(transfer_bench_run(&b));
    if (b.has_candidates) status = try_candidates(&b);
out:
    if (status != TOL_OK) fprintf(stderr, "bench-transfer: %s\n", tol_message());
    if (b.pinned != NULL) b.cu->cuMemFreeHost(b.pinned);
    free(b.pageable);
    tol_transfer_destroy(b.transfer);
    tol_buffer_destroy(buffer);
    tol_context_destroy(b.context);
    tol_driver_close(driver);
    return status == TOL_OK ? 0 : 1;
}
