/*
 * Example 3, pool: a thousand blocks of device memory for a handful of calls to the driver.
 *
 * A block is a value, not a pointer: it knows when it was freed, so freeing it twice is refused and
 * harms nothing. Blocks belong to the order of a stream: what is freed there can be had again at
 * once, although the work that used it may still be queued.
 */
#include <stdio.h>
#include <tollens.h>

#define TRY(call)                                                                                  \
    if ((call) != TOL_OK) return fprintf(stderr, "%s\n", tol_message()), 1

int main(void) {
    tol_auto_driver struct tol_driver *driver = NULL;
    tol_auto_context struct tol_context *context = NULL;
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_pool struct tol_pool *pool = NULL;
    struct tol_block blocks[10];
    struct tol_pool_stats stats;
    char state[4096];
    TRY(tol_driver_open(NULL, &driver));
    TRY(tol_context_create(driver, 0, &context));
    TRY(tol_stream_create(context, NULL, &stream));
    TRY(tol_pool_create(context, NULL, &pool)); /* NULL: the default profile */
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 10; i++) {
            TRY(tol_pool_allocate(pool, (size_t)(i + 1) * 10000, stream, &blocks[i]));
            /* tol_pool_address(pool, blocks[i]) is what a kernel on this stream would get. */
        }
        for (int i = 0; i < 10; i++) TRY(tol_pool_free(pool, blocks[i], stream));
    }
    TRY(tol_pool_stats(pool, &stats));
    printf("%llu blocks were allocated; the driver created memory %llu times\n",
           (unsigned long long)stats.allocations, (unsigned long long)stats.driver_allocations);
    if (tol_pool_free(pool, blocks[0], stream) != TOL_OK) printf("twice: %s\n", tol_message());

    /* What it would say of a request, before or after that fails. */
    tol_pool_diagnose(pool, (size_t)1 << 50, state, sizeof state);
    printf("%.60s...\n", state);
    TRY(tol_pool_trim(pool, 0));
    TRY(tol_pool_stats(pool, &stats));
    printf("after a trim it holds %llu bytes\n", (unsigned long long)stats.held);
    return stats.requested > 0;
}
