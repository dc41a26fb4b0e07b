/*
 * Memory resource: the pool as C++ programs take memory, in the form of CCCL's cuda::mr concepts,
 * which RMM, cuDF, Thrust and others use.
 *
 *     tollens::pool_resource resource;                   // device 0, options of the profile default
 *     void *p = resource.allocate_async(bytes, 256, stream);
 *     resource.deallocate_async(p, bytes, 256, stream);
 *     rmm::device_uvector<float> v(n, stream, resource);  // a cuda::mr::async_resource_ref
 *
 * With CCCL 3.0 the class satisfies cuda::mr::async_resource_with<cuda::mr::device_accessible>; it
 * has the calls of CCCL 3.1 (allocate_sync, allocate with the stream in front) too. Where CCCL is
 * not installed, or TOLLENS_NO_CCCL is defined, it has the same calls with a CUstream, which is a
 * cudaStream_t. C++17, header only; link with libtollens.
 *
 * Copies of a resource share one pool and are equal. Addresses are multiples of 256. A stream must
 * outlive the resource. The calling thread's context is the same after a call. All functions may be
 * called from any thread at the same time.
 *
 * Failures of allocations: tollens::out_of_memory, which is a std::bad_alloc; tollens::error for all
 * else. what() is the runtime's message. Giving memory back never throws, because destructors do it:
 * where it fails, for example after cudaDeviceReset() or for what is no block, the message goes to
 * stderr and failed_deallocations() counts it.
 */
#ifndef TOLLENS_MEMORY_RESOURCE_HPP
#define TOLLENS_MEMORY_RESOURCE_HPP

#include "pool.h"
#include "stream.h"

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <unordered_map>

#if !defined(TOLLENS_NO_CCCL) && defined(__has_include)
#if __has_include(<cuda/memory_resource>) && __has_include(<cuda_runtime_api.h>)
#if !defined(LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE)
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE /* CCCL before 3.1 asks for it */
#endif
#include <cuda/memory_resource>
#include <cuda/stream_ref>
#define TOLLENS_HAS_CCCL 1
#endif
#endif

namespace tollens {

/* What failed, in the runtime's words. */
class error : public std::runtime_error {
public:
    explicit error(tol_status code) : std::runtime_error(tol_message()), code_(code) {}
    tol_status code() const noexcept { return code_; }

private:
    tol_status code_;
};

/* The device, or the pool's limit, has no memory left. */
class out_of_memory : public std::bad_alloc {
public:
    out_of_memory() : message_(std::make_shared<std::string>(tol_message())) {}
    const char *what() const noexcept override { return message_->c_str(); }

private:
    std::shared_ptr<std::string> message_;
};

namespace detail {

inline void check(tol_status status) {
    if (status == TOL_OUT_OF_DEVICE_MEMORY) throw out_of_memory();
    if (status != TOL_OK) throw error(status);
}

/* A pool, and what it calls the addresses and the streams of the program. */
class shared_pool {
public:
    shared_pool(int device, const tol_pool_options *options) {
        tol_status status = tol_driver_open(nullptr, &driver_);
        if (status == TOL_OK) status = tol_context_create(driver_, device, &context_);
        if (status == TOL_OK) status = tol_pool_create(context_, options, &pool_);
        if (status == TOL_OK) return;
        const error failure(status);
        close();
        throw failure;
    }
    shared_pool(const shared_pool &) = delete;
    shared_pool &operator=(const shared_pool &) = delete;
    ~shared_pool() { close(); }

    void *allocate(std::size_t bytes, std::size_t alignment, bool has_stream, CUstream handle) {
        if (alignment > TOL_POOL_ALIGNMENT || (alignment & (alignment - 1)) != 0) {
            throw std::invalid_argument("tollens: the alignment is not a power of two up to 256");
        }
        const keep_context keep(context_);
        tol_block block = {};
        check(tol_pool_allocate(pool_, bytes != 0 ? bytes : 1,
                                has_stream ? stream_of(handle) : nullptr, &block));
        void *address = reinterpret_cast<void *>(
            static_cast<std::uintptr_t>(tol_pool_address(pool_, block)));
        try {
            const std::lock_guard<std::mutex> guard(lock_);
            blocks_.emplace(address, block);
        } catch (...) {
            (void)tol_pool_free(pool_, block, nullptr);
            throw;
        }
        return address;
    }

    void deallocate(void *address, bool has_stream, CUstream handle) noexcept {
        try {
            give_back(address, has_stream, handle);
        } catch (const std::exception &failure) {
            failed_++;
            std::fprintf(stderr, "tollens: %p could not be freed: %s\n", address, failure.what());
        }
    }

    tol_pool *pool() const noexcept { return pool_; }
    std::size_t failed() const noexcept { return failed_; }

private:
    void give_back(void *address, bool has_stream, CUstream handle) {
        if (address == nullptr) return;
        const keep_context keep(context_);
        tol_stream *stream = has_stream ? stream_of(handle) : nullptr;
        tol_block block = {};
        {
            const std::lock_guard<std::mutex> guard(lock_);
            const auto found = blocks_.find(address);
            if (found != blocks_.end()) {
                block = found->second;
                blocks_.erase(found);
            }
        }
        check(tol_pool_free(pool_, block, stream)); /* an empty block is refused in words */
    }

    /* Other code's current device is this thread's current context. */
    class keep_context {
    public:
        explicit keep_context(tol_context *context) : functions_(tol_context_functions(context)) {
            (void)functions_->cuCtxGetCurrent(&before_);
            check(tol_context_bind(context));
            (void)functions_->cuCtxGetCurrent(&bound_);
        }
        keep_context(const keep_context &) = delete;
        keep_context &operator=(const keep_context &) = delete;
        ~keep_context() {
            if (before_ != bound_) (void)functions_->cuCtxSetCurrent(before_);
        }

    private:
        const tol_driver_table *functions_;
        CUcontext before_ = nullptr, bound_ = nullptr;
    };

    tol_stream *stream_of(CUstream handle) {
        const std::lock_guard<std::mutex> guard(lock_);
        tol_stream *&stream = streams_[handle];
        if (stream == nullptr) check(tol_stream_adopt(context_, handle, &stream));
        return stream;
    }

    void close() noexcept {
        tol_pool_destroy(pool_);
        for (const auto &each : streams_) tol_stream_destroy(each.second);
        tol_context_destroy(context_);
        tol_driver_close(driver_);
    }

    tol_driver *driver_ = nullptr;
    tol_context *context_ = nullptr;
    tol_pool *pool_ = nullptr;
    std::atomic<std::size_t> failed_{0};
    std::mutex lock_; /* guards the next two */
    std::unordered_map<void *, tol_block> blocks_;
    std::unordered_map<CUstream, tol_stream *> streams_;
};

} // namespace detail

class pool_resource {
public:
#if defined(TOLLENS_HAS_CCCL)
    using stream_type = ::cuda::stream_ref;
#else
    using stream_type = CUstream;
#endif

    /* Opens a pool on a device's primary context. options may be null: tol_pool_default. */
    explicit pool_resource(int device = 0, const tol_pool_options *options = nullptr)
        : pool_(std::make_shared<detail::shared_pool>(device, options)) {}

    /* For the host: such a block may be used by any stream at once, and is not in use any more when
     * it is freed. */
    void *allocate(std::size_t bytes, std::size_t alignment = TOL_POOL_ALIGNMENT) {
        return pool_->allocate(bytes, alignment, false, nullptr);
    }
    void deallocate(void *address, std::size_t, std::size_t = TOL_POOL_ALIGNMENT) noexcept {
        pool_->deallocate(address, false, nullptr);
    }
    void *allocate_sync(std::size_t bytes, std::size_t alignment = TOL_POOL_ALIGNMENT) {
        return allocate(bytes, alignment);
    }
    void deallocate_sync(void *address, std::size_t bytes,
                         std::size_t alignment = TOL_POOL_ALIGNMENT) noexcept {
        deallocate(address, bytes, alignment);
    }

    /* In the order of a stream. */
    void *allocate_async(std::size_t bytes, std::size_t alignment, stream_type stream) {
        return pool_->allocate(bytes, alignment, true, handle_of(stream));
    }
    void *allocate_async(std::size_t bytes, stream_type stream) {
        return allocate_async(bytes, TOL_POOL_ALIGNMENT, stream);
    }
    void deallocate_async(void *address, std::size_t, std::size_t, stream_type stream) noexcept {
        pool_->deallocate(address, true, handle_of(stream));
    }
    void deallocate_async(void *address, std::size_t bytes, stream_type stream) noexcept {
        deallocate_async(address, bytes, TOL_POOL_ALIGNMENT, stream);
    }
    void *allocate(stream_type stream, std::size_t bytes,
                   std::size_t alignment = TOL_POOL_ALIGNMENT) {
        return allocate_async(bytes, alignment, stream);
    }
    void deallocate(stream_type stream, void *address, std::size_t bytes,
                    std::size_t alignment = TOL_POOL_ALIGNMENT) noexcept {
        deallocate_async(address, bytes, alignment, stream);
    }

    /* How often memory could not be given back, of all copies of this resource. */
    std::size_t failed_deallocations() const noexcept { return pool_->failed(); }

    /* The pool, for its statistics. Valid while a copy of the resource lives. */
    tol_pool *pool() const noexcept { return pool_->pool(); }

    friend bool operator==(const pool_resource &a, const pool_resource &b) noexcept {
        return a.pool_ == b.pool_;
    }
    friend bool operator!=(const pool_resource &a, const pool_resource &b) noexcept {
        return a.pool_ != b.pool_;
    }

#if defined(TOLLENS_HAS_CCCL)
    friend constexpr void get_property(const pool_resource &,
                                       ::cuda::mr::device_accessible) noexcept {}
#endif

private:
#if defined(TOLLENS_HAS_CCCL)
    static CUstream handle_of(stream_type stream) { return stream.get(); }
#else
    static CUstream handle_of(stream_type stream) { return stream; }
#endif

    std::shared_ptr<detail::shared_pool> pool_;
};

} // namespace tollens

#endif
