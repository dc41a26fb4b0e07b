/*
 * The map of a pool has each block and each hole with memory, once.
 */
#include "walk_map.h"
#include "atomic_file.h"
#include "harness/session.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 8 };
static const size_t block_bytes = 3 << 20;

static char folder[64];
static struct tol_driver *driver;
static struct tol_context *context;
static struct tol_pool *pool;

static void begin(void) {
    struct tol_pool_options options;
    snprintf(folder, sizeof folder, "/tmp/tollens_map_XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
    cr_assert(tol_driver_open(hyp_session_soft_library(), &driver) == TOL_OK, "%s", tol_message());
    cr_assert(tol_context_create(driver, 0, &context) == TOL_OK, "%s", tol_message());
    tol_pool_default(tol_context_device(context), &options);
    cr_assert(tol_pool_create(context, &options, &pool) == TOL_OK, "%s", tol_message());
}
static void end(void) {
    tol_pool_destroy(pool);
    tol_context_destroy(context);
    tol_driver_close(driver);
    cr_assert(hyp_directory_remove(folder), "%s", hyp_error());
}
TestSuite(walk_map, .init = begin, .fini = end);

Test(walk_map, has_what_is_live_and_the_memory_between) {
    struct tol_block blocks[BLOCKS];
    struct tol_pool_stats stats;
    char path[128], state[16];
    size_t bytes = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        cr_assert(tol_pool_allocate(pool, block_bytes, NULL, &blocks[i]) == TOL_OK);
    }
    cr_assert(tol_pool_free(pool, blocks[3], NULL) == TOL_OK);
    cr_assert(tol_pool_stats(pool, &stats) == TOL_OK);
    cr_assert(hyp_walk_map_write(pool, folder, "attack", "map"), "%s", hyp_error());
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i != 3) cr_assert(tol_pool_free(pool, blocks[i], NULL) == TOL_OK);
    }
    snprintf(path, sizeof path, "%s/attack.map.csv", folder);
    char *text = hyp_file_read(path, 1 << 20, &bytes);
    cr_assert(text != NULL, "%s", hyp_error());
    char *line = strchr(text, '\n');
    cr_assert(line != NULL && strncmp(text, "address,bytes,state\n", 20) == 0, "%s", text);
    unsigned long long live = 0, count = 0, rest = 0, address = 0, size = 0;
    for (line++; sscanf(line, "%llu,%llu,%15s", &address, &size, state) == 3;
         line = strchr(line, '\n') + 1) {
        bool is_live = strcmp(state, "live") == 0;
        count += is_live;
        live += is_live ? size : 0;
        rest += is_live ? 0 : size;
    }
    cr_assert(count == BLOCKS - 1 && live >= count * block_bytes, "%s", text);
    cr_assert(live + rest == stats.held, "%llu and %llu, of %llu: %s", live, rest,
              (unsigned long long)stats.held, text);
    free(text);
}

Test(walk_map, a_folder_that_is_not_there_is_an_error) {
    cr_assert(!hyp_walk_map_write(pool, "/absent/folder", "attack", "map"));
    cr_assert(strstr(hyp_error(), "/absent/folder") != NULL, "%s", hyp_error());
}
