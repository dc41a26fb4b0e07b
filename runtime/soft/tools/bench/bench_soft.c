/*
 * bench-soft: the speed of the soft device on this machine, as a table or as JSON.
 *
 *     build/bench-soft [--json] [--rounds N] [--kernel NAME] [--core LEVEL]
 *
 * Run it where the repository begins, on a machine that has nothing else to do. Exit code 1 only
 * if something fails; a slow result is printed and is not a failure.
 */
#include "bench.h"

#include "lower/core.h"
#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEVELS = 3, WORKERS = 2, LANES = 32 };
static const int levels[LEVELS] = {1, 3, 4};

static struct {
    bool json;
    int rounds, core;
    const char *kernel;
    char machine[80];
    long processors;
    bool has[LEVELS];
    struct bench_figures best[LEVELS][WORKERS];
} bench = {.rounds = 3};

static void find_machine(void) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[200];
    snprintf(bench.machine, sizeof bench.machine, "an unknown processor");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *colon = strchr(line, ':');
        if (colon == NULL || strncmp(line, "model name", 10) != 0) continue;
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(bench.machine, sizeof bench.machine, "%s", colon + 2);
        break;
    }
    if (file != NULL) fclose(file);
    bench.processors = sysconf(_SC_NPROCESSORS_ONLN);
}

/* In a process of its own; calls and loads are measured at the level that is the default. */
static void measure_here(int level, int workers, bool with_calls, struct bench_figures *figures) {
    char text[16];
    snprintf(text, sizeof text, "%d", level);
    setenv("TOLLENS_SOFT_CORE", text, 1);
    snprintf(text, sizeof text, "%d", workers);
    setenv("TOLLENS_SOFT_WORKERS", text, 1);
    bool is_level = soft_core()->name[1] - '0' == level;
    figures->ok = is_level && bench_open() && bench_kernels(bench.kernel, figures) &&
                  (!with_calls || (bench_launches(figures) && bench_loads(figures)));
}

static bool bench_soft_measure(int level, int workers, bool with_calls,
                               struct bench_figures *figures) {
    int ends[2];
    *figures = (struct bench_figures){0};
    if (pipe(ends) != 0) return false;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct bench_figures mine = {0};
        measure_here(level, workers, with_calls, &mine);
        bool written = write(ends[1], &mine, sizeof mine) == sizeof mine;
        _exit(written && mine.ok ? 0 : 1);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t more = 1; child > 0 && more > 0; got += (size_t)more) {
        more = read(ends[0], (char *)figures + got, sizeof *figures - got);
        if (more < 0) break;
    }
    close(ends[0]);
    if (child > 0) waitpid(child, NULL, 0);
    return got == sizeof *figures && figures->ok;
}

static void keep_less(double *best, double now) {
    if (now > 0 && (*best <= 0 || now < *best)) *best = now;
}

static void keep_best(struct bench_figures *best, const struct bench_figures *now) {
    for (unsigned k = 0; k < bench_kernel_count(); k++) {
        keep_less(&best->kernels[k].ms, now->kernels[k].ms);
        keep_less(&best->kernels[k].cpu_ms, now->kernels[k].cpu_ms);
        best->kernels[k].instructions = now->kernels[k].instructions;
        best->kernels[k].products = now->kernels[k].products;
    }
    keep_less(&best->launch_us, now->launch_us);
    keep_less(&best->enqueue_us, now->enqueue_us);
    if (now->modules > 0 && (best->modules == 0 || now->load_ms < best->load_ms)) {
        best->load_ms = now->load_ms;
        best->modules = now->modules;
        best->module_bytes = now->module_bytes;
        best->slowest_ms = now->slowest_ms;
        memcpy(best->slowest, now->slowest, sizeof best->slowest);
    }
}

static void find_levels(void) {
    bool v3 = false, v4 = false;
#if defined(__x86_64__)
    __builtin_cpu_init();
    v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    v4 = v3 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
    const bool has[LEVELS] = {true, v3, v4};
    for (int l = 0; l < LEVELS; l++) {
        bench.has[l] = has[l] && (bench.core == 0 || bench.core == levels[l]);
    }
}

static bool measure_all(void) {
    for (int round = 0; round < bench.rounds; round++) {
        for (int l = 0; l < LEVELS; l++) {
            for (int w = 0; w < WORKERS && bench.has[l]; w++) {
                struct bench_figures now;
                bool last = l == LEVELS - 1 || !bench.has[l + 1];
                if (!bench_soft_measure(levels[l], w + 1, last && w == 1, &now)) return false;
                keep_best(&bench.best[l][w], &now);
            }
        }
    }
    return true;
}

/* Lane instructions a second of a processor's time, in units of 10^9: time that others had the
 * processor does not count. */
static double bench_soft_rate(const struct bench_figure *figure) {
    if (figure->cpu_ms <= 0) return 0;
    return (double)figure->instructions * LANES / (figure->cpu_ms * 1e-3) * 1e-9;
}

/* The figures of calls are those of the best level with two workers. */
static const struct bench_figures *bench_soft_calls(void) {
    const struct bench_figures *found = &bench.best[0][1];
    for (int l = 0; l < LEVELS; l++) {
        if (bench.best[l][1].modules > 0) found = &bench.best[l][1];
    }
    return found;
}

struct goal {
    char what[80], unit[24];
    double wanted, got;
    bool at_least;
};

static unsigned bench_soft_kernel_of(const char *name) {
    unsigned k = 0;
    while (strcmp(bench_kernel_name(k), name) != 0) k++;
    return k;
}

/* Look-ups and atomics of one worker at the highest level. */
static const struct {
    const char *name;
    double millions; /* a second */
} lookup_goals[] = {{"atom_distinct", 400},
                    {"atom_bins", 200},
                    {"tex_fetch", 150},
                    {"tex_point", 120},
                    {"tex_linear", 60}};
enum { LOOKUP_GOALS = sizeof lookup_goals / sizeof lookup_goals[0], GOALS = 8 + LOOKUP_GOALS };

static unsigned find_lookup_goals(struct goal *goals) {
    unsigned count = 0;
    for (unsigned i = 0; i < LOOKUP_GOALS; i++) {
        const unsigned k = bench_soft_kernel_of(lookup_goals[i].name);
        const struct bench_figure *figure = &bench.best[LEVELS - 1][0].kernels[k];
        if (figure->cpu_ms <= 0) continue;
        struct goal *goal = &goals[count++];
        *goal = (struct goal){.wanted = lookup_goals[i].millions,
                              .got = figure->products / figure->cpu_ms * 1e-3,
                              .at_least = true};
        snprintf(goal->what, sizeof goal->what, "%s, level 4, one worker", lookup_goals[i].name);
        snprintf(goal->unit, sizeof goal->unit, "M/s");
    }
    return count;
}

static unsigned find_goals(struct goal goals[GOALS]) {
    unsigned count = 0, tiled = bench_soft_kernel_of("gemm_tiled"),
             products = bench_soft_kernel_of("tma_gemm");
    static const double wanted[LEVELS] = {0, 5, 8};
    for (int l = 0; l < LEVELS; l++) {
        const struct bench_figure *one = &bench.best[l][0].kernels[tiled],
                                  *two = &bench.best[l][1].kernels[tiled];
        if (one->ms <= 0 || two->ms <= 0) continue;
        if (wanted[l] > 0) {
            goals[count] =
                (struct goal){.wanted = wanted[l], .got = bench_soft_rate(one), .at_least = true};
            snprintf(goals[count].what, sizeof goals[count].what,
                     "gemm_tiled, level %d, one worker", levels[l]);
            snprintf(goals[count++].unit, sizeof goals[0].unit, "G lane-instr/s");
        }
        if (levels[l] > 1 && bench.processors > 1) {
            goals[count] = (struct goal){.wanted = 1.7, .got = one->ms / two->ms, .at_least = true};
            snprintf(goals[count].what, sizeof goals[count].what,
                     "gemm_tiled, level %d, two workers", levels[l]);
            snprintf(goals[count++].unit, sizeof goals[0].unit, "times one worker");
        }
    }
    const struct bench_figure *product = &bench.best[LEVELS - 1][0].kernels[products];
    if (product->cpu_ms > 0) {
        goals[count++] = (struct goal){"tma_gemm, level 4, one worker", "G multiply-adds/s", 3,
                                       product->products / product->cpu_ms * 1e-6, true};
    }
    count += find_lookup_goals(goals + count);
    if (bench_soft_calls()->modules == 0) return count;
    goals[count++] = (struct goal){"an empty launch and the wait for it", "us", 2,
                                   bench_soft_calls()->launch_us, false};
    goals[count++] =
        (struct goal){"loading the project's PTX", "ms", 100, bench_soft_calls()->load_ms, false};
    return count;
}

static bool is_met(const struct goal *goal) {
    return goal->at_least ? goal->got >= goal->wanted : goal->got <= goal->wanted;
}

static void print_table(void) {
    printf("bench-soft: %s, %ld processors, checks: memory%s; best of %d\n\n", bench.machine,
           bench.processors, soft_options()->check_init ? " and init" : "", bench.rounds);
    printf("%-14s %5s %7s %10s %10s %22s %10s\n", "kernel", "level", "workers", "ms", "cpu ms",
           "G lane-instr/s a core", "of one");
    for (unsigned k = 0; k < bench_kernel_count(); k++) {
        for (int l = 0; l < LEVELS; l++) {
            for (int w = 0; w < WORKERS; w++) {
                const struct bench_figure *one = &bench.best[l][0].kernels[k],
                                          *figure = &bench.best[l][w].kernels[k];
                if (figure->ms <= 0) continue;
                printf("%-14s %5d %7d %10.2f %10.2f %22.2f %10.2f\n", bench_kernel_name(k),
                       levels[l], w + 1, figure->ms, figure->cpu_ms, bench_soft_rate(figure),
                       one->ms / figure->ms);
            }
        }
    }
    if (bench_soft_calls()->modules > 0) {
        printf("\nan empty launch and the wait for it: %.2f us; a launch among many: %.2f us\n",
               bench_soft_calls()->launch_us, bench_soft_calls()->enqueue_us);
        printf("loading %llu modules, %llu KiB of PTX: %.1f ms; the slowest, %s: %.1f ms\n",
               (unsigned long long)bench_soft_calls()->modules,
               (unsigned long long)bench_soft_calls()->module_bytes / 1024,
               bench_soft_calls()->load_ms, bench_soft_calls()->slowest,
               bench_soft_calls()->slowest_ms);
    }
    struct goal goals[GOALS];
    unsigned count = find_goals(goals);
    printf("\ngoals on this machine (%s):\n", bench.machine);
    for (unsigned g = 0; g < count; g++) {
        printf("  %-8s %s: %.2f %s, of %s %.1f\n", is_met(&goals[g]) ? "met" : "NOT MET",
               goals[g].what, goals[g].got, goals[g].unit,
               goals[g].at_least ? "at least" : "at most", goals[g].wanted);
    }
}

static void bench_soft_print_json(void) {
    printf("{\"machine\": \"%s\", \"processors\": %ld, \"check_init\": %s, \"rounds\": %d,\n",
           bench.machine, bench.processors, soft_options()->check_init ? "true" : "false",
           bench.rounds);
    printf(" \"kernels\": [");
    const char *comma = "\n";
    for (unsigned k = 0; k < bench_kernel_count(); k++) {
        for (int i = 0; i < LEVELS * WORKERS; i++) {
            const struct bench_figure *figure = &bench.best[i / WORKERS][i % WORKERS].kernels[k];
            if (figure->ms <= 0) continue;
            printf("%s  {\"kernel\": \"%s\", \"level\": %d, \"workers\": %d, \"ms\": %.4f, "
                   "\"cpu_ms\": %.4f, \"instructions\": %llu}",
                   comma, bench_kernel_name(k), levels[i / WORKERS], i % WORKERS + 1, figure->ms,
                   figure->cpu_ms, (unsigned long long)figure->instructions);
            comma = ",\n";
        }
    }
    printf(
        "],\n \"launch_us\": %.4f, \"enqueue_us\": %.4f, \"load_ms\": %.3f, \"modules\": %llu,\n",
        bench_soft_calls()->launch_us, bench_soft_calls()->enqueue_us, bench_soft_calls()->load_ms,
        (unsigned long long)bench_soft_calls()->modules);
    printf(" \"goals\": [");
    struct goal goals[GOALS];
    unsigned count = find_goals(goals);
    for (unsigned g = 0; g < count; g++) {
        printf("%s\n  {\"goal\": \"%s\", \"unit\": \"%s\", \"wanted\": %g, \"got\": %.4f, "
               "\"met\": %s}",
               g > 0 ? "," : "", goals[g].what, goals[g].unit, goals[g].wanted, goals[g].got,
               is_met(&goals[g]) ? "true" : "false");
    }
    printf("]}\n");
}

static int bench_soft_usage(void) {
    fprintf(stderr, "bench-soft [--json] [--rounds N] [--kernel NAME] [--core 1|3|4]\n");
    return 2;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--json") == 0) {
            bench.json = true;
            continue;
        }
        if (value == NULL) return bench_soft_usage();
        if (strcmp(argv[i], "--rounds") == 0) {
            bench.rounds = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--core") == 0) {
            bench.core = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--kernel") == 0) {
            bench.kernel = value;
        } else {
            return bench_soft_usage();
        }
        i++;
    }
    if (bench.rounds < 1) return bench_soft_usage();
    find_machine();
    find_levels();
    if (!measure_all()) return 1;
    if (bench.json) {
        bench_soft_print_json();
    } else {
        print_table();
    }
    return 0;
}
