/*
 * One pool, its blocks with one mark each, and the driver's calls.
 */
#include "pool_scene.h"

struct scene_calls scene_calls;

static bool is_about_memory(enum tol_driver_index index) {
    return index == TOL_DRIVER_INDEX_cuMemCreate || index == TOL_DRIVER_INDEX_cuMemMap ||
           index == TOL_DRIVER_INDEX_cuMemUnmap || index == TOL_DRIVER_INDEX_cuMemSetAccess ||
           index == TOL_DRIVER_INDEX_cuMemGetInfo_v2;
}

static void refuse_nth(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (scene_calls.nth == 0 || !is_about_memory(call->index)) return;
    scene_calls.count++;
    if (scene_calls.count < scene_calls.nth ||
        scene_calls.count - scene_calls.nth >= scene_calls.times)
        return;
    call->forward = false;
    call->result = CUDA_ERROR_NOT_PERMITTED;
}

static void count_call(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->result != CUDA_SUCCESS) return;
    const int64_t size =
        call->index == TOL_DRIVER_INDEX_cuMemMap || call->index == TOL_DRIVER_INDEX_cuMemUnmap
            ? (int64_t)(*(const size_t *)call->arguments[1] / MIB)
            : 0;
    scene_calls.creates += call->index == TOL_DRIVER_INDEX_cuMemCreate;
    scene_calls.releases += call->index == TOL_DRIVER_INDEX_cuMemRelease;
    scene_calls.maps += call->index == TOL_DRIVER_INDEX_cuMemMap;
    scene_calls.unmaps += call->index == TOL_DRIVER_INDEX_cuMemUnmap;
    scene_calls.opens += call->index == TOL_DRIVER_INDEX_cuMemSetAccess;
    scene_calls.handles += call->index == TOL_DRIVER_INDEX_cuMemCreate;
    scene_calls.handles -= call->index == TOL_DRIVER_INDEX_cuMemRelease;
    scene_calls.mapped += call->index == TOL_DRIVER_INDEX_cuMemMap ? size : -size;
}

void scene_watch(void) {
    scene_calls = (struct scene_calls){0};
    MUST(tol_interpose_install(
        test_driver(), &(struct tol_interpose_options){.before = refuse_nth, .after = count_call}));
}

struct tol_pool_options scene_options(size_t limit, size_t large) {
    struct tol_pool_options options;
    tol_pool_tight(tol_context_device(test_context()), &options);
    options.limit_bytes = limit;
    options.large_bytes = large;
    options.first_count = 0;
    options.slack_bytes = 64 * MIB; /* nothing is trimmed */
    options.park_bytes = 0;         /* a freed block is idle at once */
    return options;
}

void scene_open(struct scene *s, const struct tol_pool_options *options) {
    *s = (struct scene){.pool = NULL};
    tol_status status = tol_pool_create(test_context(), options, &s->pool);
    if (status == TOL_UNSUPPORTED) cr_skip_test("%s", tol_message());
    cr_assert(status == TOL_OK, "%s", tol_message());
}

const struct tol_driver_table *scene_driver(void) {
    MUST(tol_context_bind(test_context()));
    return tol_context_functions(test_context());
}

struct tol_pool_stats scene_stats(const struct scene *s) {
    struct tol_pool_stats stats;
    MUST(tol_pool_stats(s->pool, &stats));
    cr_assert(stats.held == stats.used + stats.kept + stats.idle + stats.page_waste,
              "%llu bytes are held, and %llu, %llu, %llu and %llu", (unsigned long long)stats.held,
              (unsigned long long)stats.used, (unsigned long long)stats.kept,
              (unsigned long long)stats.idle, (unsigned long long)stats.page_waste);
    return stats;
}

static unsigned mark_of(struct tol_block block) {
    return (unsigned)(block.name * 0x9e3779b97f4a7c15u >> 32);
}

void scene_mark(const struct scene *s, struct tol_block block) {
    const size_t bytes = tol_pool_bytes(s->pool, block);
    CUdeviceptr at = tol_pool_address(s->pool, block);
    cr_assert_eq(scene_driver()->cuMemsetD32_v2(at, mark_of(block), bytes / 4), CUDA_SUCCESS);
    cr_assert_eq(scene_driver()->cuCtxSynchronize(), CUDA_SUCCESS);
}

void scene_look(const struct scene *s, struct tol_block block) {
    static unsigned host[8 * 1024 * 1024];
    const size_t bytes = tol_pool_bytes(s->pool, block);
    cr_assert(bytes > 0 && bytes <= sizeof host);
    cr_assert_eq(scene_driver()->cuMemcpyDtoH_v2(host, tol_pool_address(s->pool, block), bytes),
                 CUDA_SUCCESS);
    size_t whole = 0;
    while (whole < bytes / 4 && host[whole] == mark_of(block)) whole++;
    cr_assert(whole == bytes / 4, "word %zu of %zu bytes is another's", whole, bytes);
}

tol_status scene_add(struct scene *s, size_t bytes) {
    tol_status status = tol_pool_allocate(s->pool, bytes, NULL, &s->blocks[s->count]);
    if (status == TOL_OK) scene_mark(s, s->blocks[s->count++]);
    return status;
}

void scene_drop(struct scene *s, size_t i, struct tol_stream *stream) {
    scene_look(s, s->blocks[i]);
    MUST(tol_pool_free(s->pool, s->blocks[i], stream));
    for (s->count--; i < s->count; i++) s->blocks[i] = s->blocks[i + 1];
}

void scene_comb(struct scene *s, const struct tol_pool_options *options) {
    scene_open(s, options);
    for (int i = 0; i < 8; i++) MUST(scene_add(s, 2 * MIB));
    for (size_t i = 4; i-- > 0;) scene_drop(s, 2 * i, NULL);
    cr_assert(scene_stats(s).held == 16 * MIB && scene_stats(s).idle == 8 * MIB && s->count == 4);
}

void scene_end(struct scene *s) {
    while (s->count > 0) scene_drop(s, s->count - 1, NULL);
    MUST(tol_pool_trim(s->pool, 0));
    struct tol_pool_stats stats = scene_stats(s);
    cr_assert(stats.held == 0 && stats.driver_allocations == stats.driver_frees,
              "%llu bytes are held, %llu handles of %llu", (unsigned long long)stats.held,
              (unsigned long long)stats.driver_frees, (unsigned long long)stats.driver_allocations);
    cr_assert(scene_calls.handles == 0 && scene_calls.mapped == 0,
              "%lld handles, %lld MiB are mapped", (long long)scene_calls.handles,
              (long long)scene_calls.mapped);
    tol_pool_destroy(s->pool);
}

void scene_end_test(void) {
    tol_interpose_remove(test_driver());
    test_end();
}
