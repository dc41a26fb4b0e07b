/*
 * move_pages without a target, which moves nothing, and the lines of numa_maps.
 */
#include "numa_pages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE_MAX = 1024 };

int tol_numa_found(const struct tol_numa_pages *pages) {
    if (pages->asked == 0 || pages->seen < pages->asked) return -1;
    for (int node = 0; node < TOL_NUMA_NODES_MAX; node++) {
        if (pages->on[node] > 0) return pages->on[node] == pages->seen ? node : -1;
    }
    return -1;
}

/* The number that follows `name` among the words of a line; 0: `name` is not there. */
static size_t numa_pages_number_of(const char *line, const char *name) {
    const char *at = strstr(line, name);
    return at != NULL ? (size_t)strtoull(at + strlen(name), NULL, 10) : 0;
}

/* " N0=12 N1=3" are counts of the mapping's own pages, whose size is kernelpagesize_kB. */
static void numa_pages_count_nodes(const char *line, struct tol_numa_pages *pages) {
    *pages = (struct tol_numa_pages){.asked = pages->asked};
    for (const char *at = line; (at = strstr(at, " N")) != NULL; at += 2) {
        char *end = NULL;
        const unsigned long node = strtoul(at + 2, &end, 10);
        if (end == at + 2 || *end != '=' || node >= TOL_NUMA_NODES_MAX) continue;
        pages->on[node] = (size_t)strtoull(end + 1, NULL, 10);
        pages->seen += pages->on[node];
    }
}

bool tol_numa_read(FILE *maps, const void *begin, size_t bytes, struct tol_numa_pages *pages) {
    char line[2048], found[sizeof line] = "";
    while (fgets(line, sizeof line, maps) != NULL) {
        char *end = NULL;
        const uintmax_t start = strtoumax(line, &end, 16);
        /* Mappings are in the order of their addresses. */
        if (end != line && *end == ' ' && start <= (uintptr_t)begin) {
            memcpy(found, line, strlen(line) + 1);
        }
        /* The rest of a line that is longer than any line of interest. */
        for (int c = 0; strchr(line, '\n') == NULL && c != '\n' && c != EOF; c = fgetc(maps)) {
            continue;
        }
    }
    const size_t kilobytes = numa_pages_number_of(found, " kernelpagesize_kB=");
    if (kilobytes == 0) return false;
    const uintptr_t size = kilobytes << 10, first = (uintptr_t)begin / size;
    *pages = (struct tol_numa_pages){.asked = ((uintptr_t)begin + bytes + size - 1) / size - first};
    numa_pages_count_nodes(found, pages);
    return true;
}

#if defined(__linux__)

#include <sys/syscall.h>
#include <unistd.h>

bool tol_numa_ask(const void *begin, size_t bytes, struct tol_numa_pages *pages) {
    void *addresses[SAMPLE_MAX];
    int nodes[SAMPLE_MAX];
    const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)begin / size * size;
    const size_t all = ((uintptr_t)begin + bytes + size - 1 - first) / size;
    const size_t count = all < SAMPLE_MAX ? all : SAMPLE_MAX;
    *pages = (struct tol_numa_pages){.asked = count};
    for (size_t i = 0; i < count; i++) {
        /* The first, the last, and evenly between. */
        const size_t page =
            count > 1 ? (size_t)((double)(all - 1) * (double)i / (double)(count - 1)) : 0;
        addresses[i] = (void *)(first + page * size);
    }
    if (syscall(SYS_move_pages, 0, count, addresses, NULL, nodes, 0) != 0) return false;
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] < 0 || nodes[i] >= TOL_NUMA_NODES_MAX) continue; /* not mapped, or unknown */
        pages->on[nodes[i]]++;
        pages->seen++;
    }
    return true;
}

void tol_numa_look(const void *begin, size_t bytes, struct tol_numa_pages *pages) {
    if (tol_numa_ask(begin, bytes, pages)) return;
    FILE *maps = fopen("/proc/self/numa_maps", "r");
    if (maps == NULL || !tol_numa_read(maps, begin, bytes, pages)) {
        *pages = (struct tol_numa_pages){.asked = 1};
    }
    if (maps != NULL) fclose(maps);
}

#else

bool tol_numa_ask(const void *begin, size_t bytes, struct tol_numa_pages *pages) {
    (void)begin, (void)bytes, (void)pages;
    return false;
}

void tol_numa_look(const void *begin, size_t bytes, struct tol_numa_pages *pages) {
    (void)begin, (void)bytes;
    *pages = (struct tol_numa_pages){.asked = 1};
}

#endif
