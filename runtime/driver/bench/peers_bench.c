/*
 * What copies between devices reach of the driver's own: one way, both ways and all pairs at once,
 * and the latency of small ones, pair by pair, in one run; the links that NVML reports; and what
 * share of a PCI Express link copies of pinned memory have is the test bus/ of test-runtime.
 *
 *     bench-peers [--library PATH] [--json FILE] [--mib N] [--turns N]
 *
 * Without a library it takes the platform's, or the soft device beside it with two devices. `ninja
 * bench-peers` runs it. The demand is 0.97 of the driver's bandwidth for every pair: exit code 1 if
 * a GPU does not hold it, 3 if there is one device only.
 */
#include "bench/peer_speed.h"
#include "core/any_driver.h"
#include "tollens/device.h"
#include "tollens/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LATENCY_BYTES = 4096, LATENCY_CALLS = 301 };

static const double DEMAND = 0.97;

struct bench {
    struct tol_driver *driver;
    struct tol_context *contexts[PEER_SPEED_DEVICES];
    struct tol_links before[PEER_SPEED_DEVICES], after[PEER_SPEED_DEVICES];
    size_t count, mib;
    unsigned turns;
    const char *library, *json;
    FILE *file;
    unsigned written; /* matrices */
    double least;     /* share of the driver's bandwidth */
};

static void print_side(const char *name, const char *unit, size_t count,
                       const double (*side)[PEER_SPEED_DEVICES]) {
    printf("  %s, %s\n    from\\to", name, unit);
    for (size_t to = 0; to < count; to++) printf("%9zu", to);
    for (size_t from = 0; from < count; from++) {
        printf("\n    %7zu", from);
        for (size_t to = 0; to < count; to++) {
            if (from == to) {
                printf("%9s", "-");
            } else {
                printf("%9.2f", side[from][to]);
            }
        }
    }
    printf("\n");
}

static void write_side(FILE *file, const char *name, size_t count,
                       const double (*side)[PEER_SPEED_DEVICES]) {
    fprintf(file, ", \"%s\": [", name);
    for (size_t i = 0; i < count * count; i++) {
        fprintf(file, "%s%.4f%s", i % count == 0 ? "[" : "", side[i / count][i % count],
                i % count + 1 < count   ? ", "
                : i + 1 < count * count ? "], "
                                        : "]");
    }
    fprintf(file, "]");
}

static void peers_bench_show(struct bench *b, const char *name, const char *unit,
                             bool is_less_better, const struct peer_matrix *matrix) {
    const double least = peer_speed_least(matrix, b->count, is_less_better);
    printf("%s: %s%.3f of the driver's\n", name, matrix->raw_all > 0 ? "together " : "at least ",
           least);
    print_side("driver", unit, b->count, matrix->raw);
    print_side("runtime", unit, b->count, matrix->runtime);
    if (matrix->raw_all > 0) {
        printf("  together: driver %.2f %s, runtime %.2f\n", matrix->raw_all, unit,
               matrix->runtime_all);
    }
    fflush(stdout);
    if (b->file == NULL) return;
    fprintf(b->file, "%s    {\"name\": \"%s\", \"unit\": \"%s\", \"least\": %.4f",
            b->written++ > 0 ? ",\n" : "", name, unit, least);
    write_side(b->file, "driver", b->count, matrix->raw);
    write_side(b->file, "runtime", b->count, matrix->runtime);
    fprintf(b->file, "}");
}

static tol_status peers_bench_measure(struct bench *b) {
    struct peer_matrix matrix;
    tol_status status = TOL_OK;
    b->least = 0;
    for (int load = 0; load < PEER_LOADS && status == TOL_OK; load++) {
        const unsigned turns = peer_speed_turns((enum peer_load)load, b->count, b->turns);
        status = peer_speed_bandwidth(b->contexts, b->count, tol_driver_functions(b->driver),
                                      (enum peer_load)load, b->mib << 20, turns, 2, &matrix);
        if (status != TOL_OK) return status;
        const double least = peer_speed_least(&matrix, b->count, false);
        if (load == 0 || least < b->least) b->least = least;
        peers_bench_show(b, peer_load_name((enum peer_load)load), "GB/s", false, &matrix);
    }
    if (status == TOL_OK) {
        status = peer_speed_latency(b->contexts, b->count, tol_driver_functions(b->driver),
                                    LATENCY_BYTES, LATENCY_CALLS, &matrix);
    }
    if (status == TOL_OK) peers_bench_show(b, "latency of 4 KiB", "us", true, &matrix);
    return status;
}

/* What the links carried meanwhile, beside what they could. */
static void show_links(const struct bench *b) {
    for (size_t i = 0; i < b->count; i++) {
        const struct tol_links *before = &b->before[i], *after = &b->after[i];
        if (!after->is_told) {
            printf("device %zu: NVML tells nothing of its links: %s\n", i, after->reason);
            continue;
        }
        printf(
            "device %zu: PCI Express generation %d (at most %d), %d lanes (at most %d), %.2f "
            "GB/s to the host and %.2f to the device after coding and packet headers\n",
            i, after->pcie_generation, after->pcie_generation_max, after->pcie_width,
            after->pcie_width_max,
            tol_pcie_peak(after->pcie_generation_max, after->pcie_width_max, TOL_PCIE_TO_HOST, 0) *
                1e-9,
            tol_pcie_peak(after->pcie_generation_max, after->pcie_width_max, TOL_PCIE_TO_DEVICE,
                          0) *
                1e-9);
        printf("device %zu: %d NVLinks, version %.1f, %.3f GB/s in each direction; sent %.3f GB, "
               "received %.3f GB in this run (below 0: not reported)\n",
               i, after->nvlinks, after->nvlink_version * 0.1,
               (double)after->nvlink_mb_per_s * 1e-3,
               (double)(after->nvlink_sent_kib - before->nvlink_sent_kib) * 1024e-9,
               (double)(after->nvlink_received_kib - before->nvlink_received_kib) * 1024e-9);
    }
}

static tol_status peers_bench_open_devices(struct bench *b, bool *is_soft) {
    int count = 0;
    tol_status status = tol_any_driver_open(b->library, &b->driver, is_soft);
    if (status != TOL_OK) return status;
    *is_soft = tol_driver_is_soft(b->driver);
    status = tol_device_count(b->driver, &count);
    if (count > PEER_SPEED_DEVICES) count = PEER_SPEED_DEVICES;
    for (int i = 0; i < count && status == TOL_OK; i++) {
        status = tol_context_create(b->driver, i, &b->contexts[i]);
        if (status == TOL_OK) status = tol_links_read(b->contexts[i], &b->before[i]);
        b->count += status == TOL_OK;
    }
    return status;
}

static bool peers_bench_read_options(struct bench *b, int argc, char **argv) {
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        const size_t number = value != NULL ? (size_t)strtoull(value, NULL, 10) : 0;
        if (value == NULL) return false;
        if (strcmp(argv[i], "--library") == 0) {
            b->library = value;
        } else if (strcmp(argv[i], "--json") == 0) {
            b->json = value;
        } else if (number == 0 || number > 1 << 20) {
            return false;
        } else if (strcmp(argv[i], "--mib") == 0) {
            b->mib = number;
        } else if (strcmp(argv[i], "--turns") == 0) {
            b->turns = (unsigned)number;
        } else {
            return false;
        }
    }
    return true;
}

static int peers_bench_judge(const struct bench *b, bool is_soft) {
    printf(
        "the least of all pairs and loads is %.3f of the driver's bandwidth; %.2f is demanded%s\n",
        b->least, DEMAND,
        is_soft              ? ", of GPUs"
        : b->least >= DEMAND ? ": held"
                             : ": NOT held");
    return is_soft || b->least >= DEMAND ? 0 : 1;
}

int main(int argc, char **argv) {
    struct bench b = {.turns = 0};
    bool is_soft = false;
    int code = 1;
    if (!peers_bench_read_options(&b, argc, argv)) {
        fprintf(stderr,
                "usage: bench-peers [--library PATH] [--json FILE] [--mib N] [--turns N]\n");
        return 2;
    }
    setenv("TOLLENS_SOFT_DEVICES", "2", 0);
    tol_status status = peers_bench_open_devices(&b, &is_soft);
    if (b.mib == 0) b.mib = is_soft ? 4 : 512;
    if (b.turns == 0) b.turns = is_soft ? 3 : 15;
    if (status == TOL_OK && b.count < 2) {
        printf("there is one device only\n");
        code = 3;
    } else if (status == TOL_OK) {
        b.file = b.json != NULL ? fopen(b.json, "w") : NULL;
        printf("%zu of %s, copies of %zu MiB\n", b.count, tol_context_device(b.contexts[0])->name,
               b.mib);
        if (b.file != NULL) {
            fprintf(b.file,
                    "{\"device\": \"%s\", \"count\": %zu, \"bytes\": %zu, \"matrices\": [\n",
                    tol_context_device(b.contexts[0])->name, b.count, b.mib << 20);
        }
        status = peers_bench_measure(&b);
        for (size_t i = 0; i < b.count && status == TOL_OK; i++) {
            status = tol_links_read(b.contexts[i], &b.after[i]);
        }
        if (status == TOL_OK) show_links(&b);
        if (b.file != NULL) fprintf(b.file, "\n]}\n");
        if (status == TOL_OK) code = peers_bench_judge(&b, is_soft);
        if ((b.file == NULL) != (b.json == NULL) || (b.file != NULL && fclose(b.file) != 0)) {
            fprintf(stderr, "bench-peers: %s cannot be written\n", b.json);
            code = 2;
        }
    }
    if (status != TOL_OK) fprintf(stderr, "bench-peers: %s\n", tol_message());
    for (size_t i = 0; i < b.count; i++) tol_context_destroy(b.contexts[i]);
    tol_driver_close(b.driver);
    return code;
}
