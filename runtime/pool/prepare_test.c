/*
 * The thread that maps memory ahead: that it does, that nothing is lost, and when it does not.
 */
#include "pool_state.h"
#include "test/test_device.h"
#include "tollens/interpose.h"

#include <sched.h>

#define MIB ((size_t)1 << 20)
enum { BLOCKS = 320, BLOCK_BYTES = 6 << 20 };

static struct tol_block blocks[BLOCKS];

static struct tol_pool *pool_with(size_t prepare_bytes, size_t limit) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    tol_pool_default(tol_context_device(test_context()), &options);
    options.prepare_bytes = prepare_bytes;
    options.limit_bytes = limit;
    options.first_bytes = 2 * MIB;
    options.first_count = 2;
    options.slack_bytes = 0;
    options.park_bytes = 0;
    tol_status status = tol_pool_create(test_context(), &options, &pool);
    if (status == TOL_UNSUPPORTED) cr_skip_test("%s", tol_message());
    cr_assert(status == TOL_OK, "%s", tol_message());
    if (pool->is_chunked || pool->pages.step != 1) cr_skip_test("pages are not the driver's");
    return pool;
}

static struct tol_pool_stats stats_of(struct tol_pool *pool) {
    struct tol_pool_stats s;
    MUST(tol_pool_stats(pool, &s));
    cr_assert_eq(s.held, s.used + s.kept + s.idle + s.page_waste);
    return s;
}

/* Gives the thread time, where it has something to do. */
static void let_it_work(struct tol_pool *pool) {
    for (int i = 0; i < 100000; i++) {
        pthread_mutex_lock(&pool->lock);
        const bool is_at_work = pool->prepare.is_busy || pool->prepare.grows || pool->prepare.trims;
        pthread_mutex_unlock(&pool->lock);
        if (!is_at_work) return;
        sched_yield();
    }
}

static void grow(struct tol_pool *pool, int from, int to) {
    for (int i = from; i < to; i++) {
        MUST(tol_pool_allocate(pool, BLOCK_BYTES, NULL, &blocks[i]));
        let_it_work(pool);
    }
}

static void drop_all_and_end(struct tol_pool *pool, int count) {
    for (int i = 0; i < count; i++) MUST(tol_pool_free(pool, blocks[i], NULL));
    MUST(tol_pool_trim(pool, 0));
    const struct tol_pool_stats s = stats_of(pool);
    cr_assert(s.held == 0 && s.driver_allocations == s.driver_frees,
              "%llu bytes are held; %llu handles were taken and %llu given back",
              (unsigned long long)s.held, (unsigned long long)s.driver_allocations,
              (unsigned long long)s.driver_frees);
    tol_pool_destroy(pool);
}

Test(prepare, most_handles_are_mapped_ahead, .fini = test_end) {
    struct tol_pool *pool = pool_with(16 * MIB, 0);
    grow(pool, 0, BLOCKS / 2);
    const struct tol_pool_stats half = stats_of(pool);
    grow(pool, BLOCKS / 2, BLOCKS);
    const struct tol_pool_stats s = stats_of(pool);
    const uint64_t handles = s.driver_allocations - half.driver_allocations;
    cr_assert(s.prepared - half.prepared > handles / 2, "%llu of %llu handles",
              (unsigned long long)(s.prepared - half.prepared), (unsigned long long)handles);
    cr_assert(s.held - s.used <= 16 * MIB, "%llu bytes are held in vain",
              (unsigned long long)(s.held - s.used));
    drop_all_and_end(pool, BLOCKS);
}

Test(prepare, what_is_to_be_trimmed_is_given_back_by_it, .fini = test_end) {
    struct tol_pool *pool = pool_with(16 * MIB, 0);
    grow(pool, 0, BLOCKS);
    const uint64_t held = stats_of(pool).held;
    uint64_t freed = 0;
    int kept = 0;
    for (int i = 0; i < BLOCKS; i++) {
        if (i >= BLOCKS / 2) {
            MUST(tol_pool_free(pool, blocks[i], NULL));
        } else {
            blocks[kept++] = blocks[i];
        }
        if (i < BLOCKS / 2) continue;
        /* A block that is placed anew has the pool look at what it holds. */
        MUST(tol_pool_allocate(pool, 100 * 1024 + (size_t)i * 4096, NULL, &blocks[kept++]));
        let_it_work(pool);
    }
    const struct tol_pool_stats s = stats_of(pool);
    freed = held - s.held;
    cr_assert(freed > held / 4 && s.prepared_frees > 0,
              "%llu of %llu bytes went back, %llu handles of %llu by the thread",
              (unsigned long long)freed, (unsigned long long)held,
              (unsigned long long)s.prepared_frees, (unsigned long long)s.driver_frees);
    drop_all_and_end(pool, kept);
}

Test(prepare, without_it_callers_take_all, .fini = test_end) {
    struct tol_pool *pool = pool_with(0, 0);
    grow(pool, 0, BLOCKS);
    cr_assert(stats_of(pool).prepared == 0 && !pool->prepare.has_thread);
    drop_all_and_end(pool, BLOCKS);
}

Test(prepare, a_small_pool_has_no_thread, .fini = test_end) {
    struct tol_pool *pool = NULL;
    MUST(tol_pool_create(test_context(), NULL, &pool));
    grow(pool, 0, 4);
    cr_assert_not(pool->prepare.has_thread);
    drop_all_and_end(pool, 4);
}

/* A limit is the program's memory to the last page. */
Test(prepare, near_a_limit_it_takes_nothing, .fini = test_end) {
    const size_t limit = 64 * MIB;
    struct tol_pool *pool = pool_with(16 * MIB, limit);
    int count = 0;
    while (tol_pool_allocate(pool, 2 * MIB, NULL, &blocks[count]) == TOL_OK) {
        count++;
        let_it_work(pool);
    }
    cr_assert_eq(count, 32);
    cr_assert(stats_of(pool).held_peak <= limit);
    drop_all_and_end(pool, count);
}

static bool is_caller(void) {
    static pthread_t caller;
    static bool is_known;
    if (!is_known) caller = pthread_self();
    is_known = true;
    return pthread_equal(caller, pthread_self()) != 0;
}

static int which;
static _Atomic(int) refused;

/* Every third of the thread's calls of one function fails. */
static void refuse_the_thread(struct tol_interpose_call *call, void *user) {
    static const enum tol_driver_index functions[] = {
        TOL_DRIVER_INDEX_cuMemCreate, TOL_DRIVER_INDEX_cuMemMap, TOL_DRIVER_INDEX_cuMemSetAccess,
        TOL_DRIVER_INDEX_cuMemUnmap};
    static _Atomic(unsigned) calls;
    (void)user;
    if (is_caller() || call->index != functions[which]) return;
    if (atomic_fetch_add(&calls, 1) % 3 != 2) return;
    call->forward = false;
    call->result = CUDA_ERROR_OUT_OF_MEMORY;
    atomic_fetch_add(&refused, 1);
}

Test(prepare, what_the_driver_refuses_it_is_not_lost, .fini = test_end, .timeout = 120) {
    (void)is_caller();
    for (which = 0; which < 4; which++) {
        size_t before = 0, after = 0;
        MUST(tol_interpose_install(test_driver(),
                                   &(struct tol_interpose_options){.before = refuse_the_thread}));
        MUST(tol_context_memory(test_context(), &before, NULL));
        struct tol_pool *pool = pool_with(16 * MIB, 0);
        grow(pool, 0, BLOCKS);
        for (int i = 0; i < BLOCKS; i += 2) {
            MUST(tol_pool_free(pool, blocks[i], NULL));
            MUST(tol_pool_allocate(pool, 50 * 1024 + (size_t)i * 4096, NULL, &blocks[i]));
            let_it_work(pool);
        }
        drop_all_and_end(pool, BLOCKS);
        MUST(tol_context_memory(test_context(), &after, NULL));
        tol_interpose_remove(test_driver());
        if (!test_on_gpu()) cr_assert_eq(before, after, "function %d: memory is lost", which);
        test_end();
    }
    cr_assert(atomic_load(&refused) > 3, "%d calls were refused", atomic_load(&refused));
}
