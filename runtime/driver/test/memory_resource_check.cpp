/*
 * A C++ program on tollens/memory_resource.hpp: ci/resource compiles it with and without CCCL, and
 * runs it on a device. Prints what is wrong, and exits with 1.
 */
#include <tollens/memory_resource.hpp>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#if defined(TOLLENS_HAS_CCCL)
static_assert(cuda::mr::resource<tollens::pool_resource>, "a resource");
static_assert(cuda::mr::async_resource<tollens::pool_resource>, "a resource with streams");
static_assert(cuda::mr::async_resource_with<tollens::pool_resource, cuda::mr::device_accessible>,
              "for the device");
#if !defined(WANTS_CCCL)
#error "CCCL was found where it was hidden"
#endif
#elif defined(WANTS_CCCL)
#error "CCCL was not found"
#endif

static void must(bool holds, const char *what) {
    if (holds) return;
    std::fprintf(stderr, "memory_resource_check: %s\n", what);
    std::exit(1);
}

static struct tol_pool_stats stats_of(const tollens::pool_resource &resource) {
    struct tol_pool_stats stats = {};
    must(tol_pool_stats(resource.pool(), &stats) == TOL_OK, "the statistics fail");
    return stats;
}

static CUstream new_stream(const tollens::pool_resource &resource) {
    CUstream stream = nullptr;
    tol_context *context = tol_pool_context(resource.pool());
    must(tol_context_bind(context) == TOL_OK, "a context cannot be bound");
    must(tol_context_functions(context)->cuStreamCreateWithPriority(
             &stream, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS,
         "a stream cannot be created");
    return stream;
}

static void check_calls(tollens::pool_resource &resource, CUstream stream) {
    void *host = resource.allocate(1000);
    void *small = resource.allocate_async(100, 64, stream);
    must(host != nullptr && small != nullptr && host != small, "blocks are not apart");
    must(reinterpret_cast<std::uintptr_t>(small) % 256 == 0, "a block is not aligned");
    resource.deallocate_async(small, 100, 64, stream);
    void *again = resource.allocate(stream, 100);
    must(again == small, "a stream does not get its own block again");
    resource.deallocate(stream, again, 100);
    resource.deallocate(host, 1000);
    resource.deallocate_sync(resource.allocate_sync(5), 5);
    resource.deallocate_async(resource.allocate_async(7, stream), 7, stream);
    must(stats_of(resource).blocks == 0, "blocks are left");
}

static void check_failures(tollens::pool_resource &resource) {
    bool thrown = false;
    try {
        (void)resource.allocate(static_cast<std::size_t>(1) << 50);
    } catch (const std::bad_alloc &failure) {
        thrown = std::string(failure.what()).find("bytes") != std::string::npos;
    }
    must(thrown, "out of memory is not thrown as a std::bad_alloc in words");
    void *block = resource.allocate(10);
    resource.deallocate(block, 10);
    must(resource.failed_deallocations() == 0, "a free has failed");
    resource.deallocate(block, 10);
    must(resource.failed_deallocations() == 1, "a second free is not refused");
    static_assert(noexcept(resource.deallocate(block, 10)), "destructors free");
    thrown = false;
    try {
        (void)resource.allocate(10, 512);
    } catch (const std::invalid_argument &) {
        thrown = true;
    }
    must(thrown, "an alignment of 512 is not refused");
}

static void check_threads(tollens::pool_resource resource, CUstream one, CUstream two) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([resource, one, two, i]() mutable {
            CUstream stream = i % 2 == 0 ? one : two;
            for (std::size_t k = 1; k < 300; k++) {
                void *block = resource.allocate_async(k * 97, stream);
                resource.deallocate_async(block, k * 97, stream);
            }
        });
    }
    for (std::thread &thread : threads) thread.join();
    must(stats_of(resource).blocks == 0, "threads have left blocks");
}

int main() {
    tollens::pool_resource resource;
    const tollens::pool_resource copy = resource, other(0);
    must(copy == resource && other != resource, "copies are not equal, or others are");
    CUstream one = new_stream(resource), two = new_stream(resource);
    check_calls(resource, one);
    check_failures(resource);
    check_threads(resource, one, two);
#if defined(TOLLENS_HAS_CCCL)
    cuda::mr::async_resource_ref<cuda::mr::device_accessible> reference = resource;
    void *block = reference.allocate_async(500, 256, cuda::stream_ref(one));
    reference.deallocate_async(block, 500, 256, cuda::stream_ref(one));
    must(stats_of(resource).blocks == 0, "a reference leaves a block");
#endif
    std::puts("memory_resource_check: all holds");
    return 0;
}
