/*
 * Where pages are: pages that were touched are seen, and others are not claimed.
 */
#include "numa_pages.h"

#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 20 };

static char *map(size_t page) {
    char *memory =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(memory != MAP_FAILED);
    (void)madvise(memory, PAGES * page, MADV_NOHUGEPAGE);
    return memory;
}

/* Goal: what was not touched is on no node, and half of a range is no whole. */
Test(numa_pages, only_pages_that_were_touched_are_seen) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct tol_numa_pages pages;
    char *memory = map(page);
    if (!tol_numa_ask(memory, PAGES * page, &pages)) cr_skip_test("move_pages is not allowed here");
    cr_assert(pages.asked == PAGES && pages.seen == 0, "%zu of %zu", pages.seen, pages.asked);
    cr_assert_eq(tol_numa_found(&pages), -1);
    for (size_t i = 0; i < PAGES / 2; i++) memory[i * page] = 1;
    cr_assert(tol_numa_ask(memory, PAGES * page, &pages));
    cr_assert(pages.seen == PAGES / 2, "%zu", pages.seen);
    cr_assert_eq(tol_numa_found(&pages), -1, "half of them were not touched");
    cr_assert(tol_numa_ask(memory + 1, PAGES / 2 * page - 2, &pages));
    cr_assert(pages.asked == PAGES / 2 && tol_numa_found(&pages) >= 0);
    munmap(memory, PAGES * page);
}

/* Goal: both witnesses say the same about pages that were touched. */
Test(numa_pages, the_file_and_the_call_agree) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct tol_numa_pages asked, read;
    char *whole = map(page), *memory = whole + page;
    const size_t bytes = (PAGES - 2) * page;
    /* Apart from its neighbours, so that it is a mapping of its own. */
    cr_assert(mprotect(whole, page, PROT_NONE) == 0 &&
              mprotect(memory + bytes, page, PROT_NONE) == 0);
    memset(memory, 1, bytes);
    FILE *maps = fopen("/proc/self/numa_maps", "r");
    if (maps == NULL || !tol_numa_ask(memory, bytes, &asked))
        cr_skip_test("one of them is lacking");
    cr_assert(tol_numa_read(maps, memory, bytes, &read));
    fclose(maps);
    cr_assert(asked.asked == PAGES - 2 && asked.seen == PAGES - 2 && tol_numa_found(&asked) >= 0);
    cr_assert(read.asked == asked.asked && read.seen == asked.seen, "%zu %zu", read.asked,
              read.seen);
    cr_assert(memcmp(read.on, asked.on, sizeof read.on) == 0);
    munmap(whole, PAGES * page);
}

static bool read_text(const char *text, uintptr_t begin, size_t bytes,
                      struct tol_numa_pages *pages) {
    FILE *maps = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    cr_assert(maps != NULL);
    const bool ok = tol_numa_read(maps, (void *)begin, bytes, pages);
    fclose(maps);
    return ok;
}

Test(numa_pages, the_file_is_read_as_the_kernel_writes_it) {
    static const char text[] =
        "00400000 default file=/bin/N7=3 mapped=10 N0=10 kernelpagesize_kB=4\n"
        "7f0000000000 prefer:1 anon=512 dirty=512 active=0 N1=512 kernelpagesize_kB=4\n"
        "7f0000200000 interleave:0-1 anon=4 dirty=4 N0=2 N1=2 kernelpagesize_kB=4\n"
        "7f0040000000 default huge anon=2 dirty=2 N1=2 kernelpagesize_kB=2048\n"
        "7f0080000000 default\n";
    struct tol_numa_pages pages;
    cr_assert(read_text(text, 0x7f0000000000, 2 << 20, &pages));
    cr_assert(pages.asked == 512 && pages.seen == 512 && tol_numa_found(&pages) == 1);
    cr_assert(read_text(text, 0x7f0000001001, 4096, &pages));
    cr_assert(pages.asked == 2 && tol_numa_found(&pages) == 1);
    cr_assert(read_text(text, 0x7f0000200000, 4 * 4096, &pages));
    cr_assert(pages.seen == 4 && tol_numa_found(&pages) == -1, "they are on two nodes");
    cr_assert(read_text(text, 0x7f0040000000, 4 << 20, &pages));
    cr_assert(pages.asked == 2 && tol_numa_found(&pages) == 1);
    cr_assert(read_text(text, 0x7f0000200000, 1 << 20, &pages));
    cr_assert_eq(tol_numa_found(&pages), -1, "there are fewer pages than requested");
    cr_assert_not(read_text(text, 0x7f0080000000, 4096, &pages), "nothing is known of it");
    cr_assert_not(read_text(text, 0x1000, 4096, &pages), "it is before all mappings");
    cr_assert_not(read_text("nonsense\n\n", 0x1000, 4096, &pages));
}

/* Goal: a block is claimed to be on a node only once its pages were seen there. */
Test(numa_pages, a_pinned_block_is_where_its_pages_were_seen) {
    enum { BYTES = 1 << 20 };
    struct tol_pinned *pinned = NULL;
    struct tol_pinned_nodes nodes = {0};
    struct tol_numa_pages pages;
    void *data = NULL;
    MUST(tol_pinned_create(test_context(), BYTES, &pinned));
    MUST(tol_pinned_access(pinned, &data));
    memset(data, 1, BYTES);
    MUST(tol_pinned_nodes(pinned, &nodes));
    tol_numa_look(data, BYTES, &pages);
    printf("numa: pinned memory of device %d: asked for on node %d, found on node %d, %zu of %zu "
           "pages seen\n",
           tol_context_device(test_context())->ordinal, nodes.wanted, nodes.found, nodes.seen,
           nodes.pages);
    cr_assert(nodes.pages == pages.asked && nodes.seen == pages.seen);
    cr_assert_eq(nodes.found, tol_numa_found(&pages));
    cr_assert(nodes.found >= 0 ? nodes.seen == nodes.pages : nodes.seen <= nodes.pages);
    if (nodes.wanted >= 0 && nodes.found >= 0) cr_assert_eq(nodes.found, nodes.wanted);
    /* The soft device's pinned memory is ordinary. */
    if (!test_on_gpu() && tol_numa_ask(data, BYTES, &pages)) cr_assert(nodes.found >= 0);
    MUST_FAIL(tol_pinned_nodes(NULL, &nodes), TOL_INVALID_ARGUMENT, "NULL");
    tol_pinned_destroy(pinned);
    test_end();
}

/* Goal: the same of staging, which a copy of ordinary memory has touched. */
Test(numa_pages, staging_is_where_its_pages_were_seen) {
    enum { BYTES = 4 << 20 };
    struct tol_transfer *transfer = NULL;
    struct tol_buffer *buffer = NULL;
    struct tol_transfer_stats stats;
    struct tol_numa_pages pages;
    char *memory = malloc(BYTES);
    cr_assert(memory != NULL);
    memset(memory, 7, BYTES);
    MUST(tol_transfer_create(test_context(), NULL, &transfer));
    MUST(tol_buffer_create(test_context(), BYTES, 1, &buffer));
    MUST(tol_transfer_write(transfer, (struct tol_place){tol_buffer_address(buffer), BYTES}, 0,
                            memory, BYTES));
    MUST(tol_transfer_stats(transfer, &stats));
    printf("numa: staging of %llu bytes: asked for on node %d, found on node %d\n",
           (unsigned long long)stats.pinned_bytes, stats.numa_node, stats.numa_found);
    if (stats.numa_node >= 0 && stats.numa_found >= 0) {
        cr_assert_eq(stats.numa_found, stats.numa_node);
    }
    if (!test_on_gpu() && stats.pinned_bytes > 0 && tol_numa_ask(memory, BYTES, &pages)) {
        cr_assert(stats.numa_found >= 0, "%d", stats.numa_found);
    }
    tol_buffer_destroy(buffer);
    tol_transfer_destroy(transfer);
    free(memory);
    test_end();
}
