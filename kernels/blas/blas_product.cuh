// blas_product: D = follow(alpha A B + beta C + bias) for matrices of any strides (BLAS's gemm,
// gemv, ger, syrk and dot, and cublasLt's matmul). T is the type of A and B, U of C and D, S of the
// sums.
#pragma once

#include "blas_number.cuh"

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), the approximation of cuBLASLt's epilogues.
__device__ inline float blas_gelu(float x) {
    return 0.5f * x * (1.0f + tanhf(0.797884561f * fmaf(0.044715f * x * x, x, x)));
}

template <typename S> __device__ inline S blas_follow_by(int follow, S x) {
    return follow == BLAS_FOLLOW_RELU && x < 0 ? (S)0 : x;
}
template <> __device__ inline float blas_follow_by<float>(int follow, float x) {
    if (follow == BLAS_FOLLOW_GELU) return blas_gelu(x);
    return follow == BLAS_FOLLOW_RELU && x < 0 ? 0.0f : x;
}
template <> __device__ inline blas_complex<float> blas_follow_by(int, blas_complex<float> x) {
    return x;
}
template <> __device__ inline blas_complex<double> blas_follow_by(int, blas_complex<double> x) {
    return x;
}

__device__ inline bool blas_is_filled(int fill, int row, int column) {
    return fill == BLAS_FILL_ALL || (fill == BLAS_FILL_LOWER ? row >= column : row <= column);
}

// Where the elements of D of a matrix of the batch go, and what they are made of. What is the same
// for all of them is read once.
template <typename U, typename S> struct blas_output {
    const blas_product &x;
    int batch;
    S alpha, beta;
    bool is_vector; // of alphas or betas, each for a row or a column
    const U *c, *bias;
    U *d;
    long long c_row, c_column, d_row, d_column;
    int follow;

    __device__ blas_output(const blas_product &product, int of_batch)
        : x(product), batch(of_batch), c(nullptr), bias(nullptr), c_row(x.c.row),
          c_column(x.c.column), d_row(x.d.row), d_column(x.d.column), follow(x.follow) {
        is_vector =
            x.alpha.row != 0 || x.alpha.column != 0 || x.beta.row != 0 || x.beta.column != 0;
        alpha = blas_scale_at<S>(x.alpha, x.scale, 0, 0, batch);
        beta = blas_scale_at<S>(x.beta, x.scale, 0, 0, batch);
        if (is_vector || !is_zero(beta)) c = blas_matrix_of<const U>(x.c, batch);
        if (x.bias.address != nullptr) bias = blas_matrix_of<const U>(x.bias, batch);
        d = blas_matrix_of<U>(x.d, batch);
    }

    // How many steps the product needs: none if alpha is 0.
    __device__ int steps() const { return is_vector || !is_zero(alpha) ? x.k : 0; }

    __device__ void store(int row, int column, S sum) const {
        S left = alpha, right = beta;
        if (is_vector) {
            left = blas_scale_at<S>(x.alpha, x.scale, row, column, batch);
            right = blas_scale_at<S>(x.beta, x.scale, row, column, batch);
        }
        S value = is_zero(left) ? S{} : left * sum;
        if (!is_zero(right)) {
            __builtin_assume(__isGlobal(c));
            value = multiply_add(right, blas_as<S>::of(c[row * c_row + column * c_column]), value);
        }
        if (bias != nullptr) {
            __builtin_assume(__isGlobal(bias));
            value = value + blas_as<S>::of(bias[row * x.bias.row + column * x.bias.column]);
        }
        if (follow != BLAS_FOLLOW_NONE) value = blas_follow_by(follow, value);
        d[row * d_row + column * d_column] = blas_stored<U, S>::of(value);
    }
};

enum { BLAS_STEP = 16 };

// Loads the steps of a matrix: tile[l][i] = matrix(first + i, l), 0 outside. Neighbours in a warp
// read neighbours. Where a thread begins, and how far its next element is, is computed once.
template <typename T, typename S, int THREADS, int PITCH> struct blas_loader {
    const T *from; // of the thread's first element of the next steps
    S *to;
    long long pace; // from one to the next steps, in elements of the matrix
    long long next; // from one to the next element of the thread
    int other, l, other_next, l_next, count, steps, is_conjugate;

    __device__ blas_loader(const T *matrix, S *tile, long long by_other, long long by_step,
                           int first, int count_of, int steps_of, int conjugates)
        : pace(BLAS_STEP * by_step), count(count_of - first), steps(steps_of),
          is_conjugate(conjugates) {
        const int i = threadIdx.x, along = by_step == 1;
        other = along ? i / BLAS_STEP : i % BLAS_TILE;
        l = along ? i % BLAS_STEP : i / BLAS_TILE;
        other_next = along ? THREADS / BLAS_STEP : 0;
        l_next = along ? 0 : THREADS / BLAS_TILE;
        next = other_next * by_other + l_next * by_step;
        from = matrix + (first + other) * by_other + l * by_step;
        to = tile + l * PITCH + other;
    }

    __device__ void load() {
        const T *element = from;
        S *stored = to;
        int row = other, step = l;
#pragma unroll 4
        for (int i = 0; i < BLAS_TILE * BLAS_STEP / THREADS; i++) {
            S value = S{};
            __builtin_assume(__isGlobal(element));
            if (row < count && step < steps) value = blas_as<S>::of(*element);
            *stored = conjugate_if(is_conjugate, value);
            element += next;
            stored += l_next * PITCH + other_next;
            row += other_next;
            step += l_next;
        }
        from += pace;
        steps -= BLAS_STEP;
    }
};

// Stores a tile whose sums the threads have. Half of each thread's rows at a time go through shared
// memory, where the steps were, so that neighbours in a warp store neighbours.
template <typename U, typename S, int R>
__device__ inline void blas_store_tile(const blas_output<U, S> &output, int row, int column,
                                       const S (&sum)[R][R], S *shared) {
    const int m = output.x.m, n = output.x.n, fill = output.x.fill;
    constexpr int SIDE = BLAS_TILE / R, HALF = R / 2;
    const int y = threadIdx.x / SIDE, z = threadIdx.x % SIDE * R;
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int i = 0; i < R; i++) {
#pragma unroll
            for (int j = 0; j < R; j++) {
                if (i / HALF == half) {
                    shared[(y * HALF + i % HALF) * BLAS_TILE + z + j] = sum[i][j];
                }
            }
        }
        __syncthreads(); // other threads wrote what this one reads
#pragma unroll 1
        for (int i = threadIdx.x; i < BLAS_TILE * BLAS_TILE / 2; i += blockDim.x) {
            const int line = i / BLAS_TILE;
            const int r = row + line / HALF * R + half * HALF + line % HALF;
            const int c = column + i % BLAS_TILE;
            if (r < m && c < n && blas_is_filled(fill, r, c)) {
                output.store(r, c, shared[i]);
            }
        }
        __syncthreads(); // it is overwritten next
    }
}

// A tile of D per block, R x R elements of it per thread.
// Requires: blockDim.x = (BLAS_TILE / R)^2, gridDim.x = tiles, gridDim.y walks the batch.
template <typename T, typename U, typename S, int R>
__device__ inline void blas_tile(const blas_product &x) {
    constexpr int SIDE = BLAS_TILE / R, THREADS = SIDE * SIDE, PITCH = BLAS_TILE + 16 / sizeof(S);
    __shared__ __align__(16) S shared[2 * BLAS_STEP * PITCH];
    S *const a_tile = shared, *const b_tile = shared + BLAS_STEP * PITCH;
    const int columns = ceil_div(x.n, BLAS_TILE);
    const int row = blockIdx.x / columns * BLAS_TILE, column = blockIdx.x % columns * BLAS_TILE;
    const int y = threadIdx.x / SIDE * R, z = threadIdx.x % SIDE * R;
    for (int batch = blockIdx.y; batch < x.batch; batch += gridDim.y) {
        const blas_output<U, S> output(x, batch);
        const int steps = output.steps();
        const T *a = steps > 0 ? blas_matrix_of<const T>(x.a, batch) : nullptr;
        const T *b = steps > 0 ? blas_matrix_of<const T>(x.b, batch) : nullptr;
        blas_loader<T, S, THREADS, PITCH> a_loader(a, a_tile, x.a.row, x.a.column, row, x.m, steps,
                                                   x.a.is_conjugate);
        blas_loader<T, S, THREADS, PITCH> b_loader(b, b_tile, x.b.column, x.b.row, column, x.n,
                                                   steps, x.b.is_conjugate);
        S sum[R][R] = {};
        for (int l = 0; l < steps; l += BLAS_STEP) {
            a_loader.load();
            b_loader.load();
            __syncthreads(); // other threads wrote what this one reads
#pragma unroll 4
            for (int s = 0; s < BLAS_STEP; s++) {
#pragma unroll
                for (int i = 0; i < R; i++) {
#pragma unroll
                    for (int j = 0; j < R; j++) {
                        sum[i][j] = multiply_add(a_tile[s * PITCH + y + i],
                                                 b_tile[s * PITCH + z + j], sum[i][j]);
                    }
                }
            }
            __syncthreads(); // the tiles are overwritten next
        }
        blas_store_tile<U, S, R>(output, row, column, sum, shared);
    }
}

// The sum of every step-th product of an element from one on.
template <typename T, typename S>
__device__ inline S blas_sum_of(const blas_product &x, const T *a, const T *b, int row, int column,
                                int first, int step, int steps) {
    S sum = S{};
    a += row * x.a.row + first * x.a.column;
    b += first * x.b.row + column * x.b.column;
    for (int l = first; l < steps; l += step) {
        __builtin_assume(__isGlobal(a) && __isGlobal(b));
        sum = multiply_add(conjugate_if(x.a.is_conjugate, blas_as<S>::of(*a)),
                           conjugate_if(x.b.is_conjugate, blas_as<S>::of(*b)), sum);
        a += step * x.a.column;
        b += step * x.b.row;
    }
    return sum;
}

// An element of D per thread or, if is_shared, per block; for products of few elements.
// Requires: blockDim.x = 32 or BLAS_THREADS; gridDim.x walks the elements, gridDim.y the batch.
template <typename T, typename U, typename S>
__device__ inline void blas_element(const blas_product &x) {
    const int first = x.is_shared ? blockIdx.x : blockIdx.x * blockDim.x + threadIdx.x;
    const int stride = x.is_shared ? gridDim.x : gridDim.x * blockDim.x;
    for (int batch = blockIdx.y; batch < x.batch; batch += gridDim.y) {
        const blas_output<U, S> output(x, batch);
        const int steps = output.steps();
        const T *a = steps > 0 ? blas_matrix_of<const T>(x.a, batch) : nullptr;
        const T *b = steps > 0 ? blas_matrix_of<const T>(x.b, batch) : nullptr;
        for (int i = first; i < x.m * x.n; i += stride) {
            const int row = i / x.n, column = i % x.n;
            if (!blas_is_filled(x.fill, row, column)) continue;
            if (!x.is_shared) {
                output.store(row, column, blas_sum_of<T, S>(x, a, b, row, column, 0, 1, steps));
                continue;
            }
            const S sum = blas_block_sum(
                blas_sum_of<T, S>(x, a, b, row, column, threadIdx.x, blockDim.x, steps));
            if (threadIdx.x == 0) output.store(row, column, sum);
            __syncthreads(); // the partial sums are overwritten next
        }
    }
}

#define BLAS_PRODUCT(name, T, U, S, R)                                                             \
    extern "C" __global__ void __launch_bounds__((BLAS_TILE / R) * (BLAS_TILE / R))                \
        blas_tile_##name(blas_product x) {                                                         \
        blas_tile<T, U, S, R>(x);                                                                  \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(BLAS_THREADS)                                     \
        blas_element_##name(blas_product x) {                                                      \
        blas_element<T, U, S>(x);                                                                  \
    }
