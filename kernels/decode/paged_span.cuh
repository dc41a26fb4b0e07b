// The part of a span of positions in the attention of a row, for a cache of halves or of bytes.
#pragma once

#include "../pdl.cuh"
#include "paged.cuh"

enum {
    THREADS = PAGED_SPAN_THREADS,
    SHARERS = THREADS / PAGED_SPAN, // of a key
    HEAD_MAX = 256,
    SPAN_PAGES = PAGED_SPAN / PAGE,
    VALUE_PIECE = 4
};

// The sums take the place of what the scores needed.
template <int GROUP> struct span_shared {
    union {
        struct {
            float q[GROUP][HEAD_MAX];
            float scores[SHARERS][GROUP][PAGED_SPAN];
        };
        float sums[VALUE_PIECE * GROUP][THREADS];
    };
    float weights[GROUP][PAGED_SPAN];
    float largest[GROUP], total[GROUP];
    uint64_t pages[SPAN_PAGES];
};

// What a cache of halves, or of bytes, has of eight elements of a key and of four of a value:
// loads, many of which are on their way together, and what they become.
struct cached_halves {
    using some_key = uint4;
    using some_value = uint2;

    static __device__ inline some_key load_key(const paged_cache &c, uint64_t page, int head,
                                               int head_size, int position, int piece) {
        return *(const uint4 *)key_at(c, page, head, head_size, position, piece);
    }
    static __device__ inline void key(const some_key &bits, float2 (&key)[KEY_PIECE / 2]) {
        const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
        for (int i = 0; i < 4; i++) key[i] = __half22float2(*(const __half2 *)&words[i]);
    }
    static __device__ inline some_value load_value(const paged_cache &c, uint64_t page, int head,
                                                   int head_size, int position, int piece) {
        return ((const uint2 *)value_at(c, page, head, head_size, position))[piece];
    }
    static __device__ inline float4 value(const some_value &bits) {
        const float2 low = __half22float2(*(const __half2 *)&bits.x);
        const float2 high = __half22float2(*(const __half2 *)&bits.y);
        return make_float4(low.x, low.y, high.x, high.y);
    }
};

struct cached_bytes {
    struct some_key {
        uint2 bits;
        __half scale;
    };
    struct some_value {
        char4 bits;
        __half scale;
    };

    static __device__ inline some_key load_key(const paged_cache &c, uint64_t page, int head,
                                               int head_size, int position, int piece) {
        return {*(const uint2 *)key_bytes_at(c, page, head, head_size, position, piece),
                scales_at(page, c.key_scales_at, head, head_size,
                          position)[piece * KEY_PIECE / SCALED]};
    }
    static __device__ inline void key(const some_key &from, float2 (&key)[KEY_PIECE / 2]) {
        const float scale = __half2float(from.scale);
        const uint32_t words[2] = {from.bits.x, from.bits.y};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t two = words[i / 2] >> (i % 2 * 16);
            key[i] = make_float2(scale * (float)(int8_t)two, scale * (float)(int8_t)(two >> 8));
        }
    }
    static __device__ inline some_value load_value(const paged_cache &c, uint64_t page, int head,
                                                   int head_size, int position, int piece) {
        return {((const char4 *)value_bytes_at(c, page, head, head_size, position))[piece],
                scales_at(page, c.value_scales_at, head, head_size,
                          position)[VALUE_PIECE * piece / SCALED]};
    }
    static __device__ inline float4 value(const some_value &from) {
        const float scale = __half2float(from.scale);
        return make_float4(scale * (float)from.bits.x, scale * (float)from.bits.y,
                           scale * (float)from.bits.z, scale * (float)from.bits.w);
    }
};

// The part of the scores of a key that the thread has: of every SHARERS-th run of pieces.
template <class CACHED, int GROUP>
__device__ inline void score(span_shared<GROUP> &s, const paged_arguments &x, uint64_t page,
                             int head, int position, bool seen) {
    enum { AT_ONCE = 8 };
    const int pieces = x.head_size / KEY_PIECE, share = ceil_div(pieces, SHARERS);
    const int sharer = threadIdx.x / PAGED_SPAN, last = min((sharer + 1) * share, pieces);
    float scores[GROUP] = {};
    for (int begin = sharer * share; seen && begin < last; begin += AT_ONCE) {
        typename CACHED::some_key some[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            some[j] = {};
            if (begin + j < last) {
                some[j] = CACHED::load_key(x.cache, page, head, x.head_size, position, begin + j);
            }
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            float2 keys[KEY_PIECE / 2];
            CACHED::key(some[j], keys);
            if (begin + j >= last) break;
#pragma unroll
            for (int i = 0; i < KEY_PIECE / 2; i++) {
                const float2 key = keys[i];
#pragma unroll
                for (int g = 0; g < GROUP; g++) {
                    const float2 q = *(const float2 *)&s.q[g][(begin + j) * KEY_PIECE + 2 * i];
                    scores[g] = fmaf(q.y, key.y, fmaf(q.x, key.x, scores[g]));
                }
            }
        }
    }
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        s.scores[sharer][g][threadIdx.x % PAGED_SPAN] = seen ? scores[g] : -INFINITY;
    }
}

// Scores become weights relative to the largest: a warp owns a head. At least one key is seen.
template <int GROUP> __device__ inline void weigh(span_shared<GROUP> &s) {
    const int lane = threadIdx.x % WARP;
    for (int g = threadIdx.x / WARP; g < GROUP; g += THREADS / WARP) {
        float largest = -INFINITY, total = 0;
        float scores[PAGED_SPAN / WARP];
#pragma unroll
        for (int i = 0; i < PAGED_SPAN / WARP; i++) {
            scores[i] = s.scores[0][g][i * WARP + lane];
#pragma unroll
            for (int j = 1; j < SHARERS; j++) scores[i] += s.scores[j][g][i * WARP + lane];
            largest = fmaxf(largest, scores[i]);
        }
        largest = warp_max(largest);
#pragma unroll
        for (int n = 0; n < PAGED_SPAN / WARP; n++) {
            const int i = n * WARP + lane;
            const float weight = exp2f(scores[n] - largest);
            s.weights[g][i] = weight;
            total += weight;
        }
        total = warp_sum(total);
        if (lane == 0) s.largest[g] = largest, s.total[g] = total;
    }
}

// A thread adds four elements of the values of every `teams`-th position; then the teams are added.
template <class CACHED, int GROUP>
__device__ inline void add_values(span_shared<GROUP> &s, const paged_arguments &x, int head,
                                  int begin, int end, int base) {
    const int pieces = x.head_size / VALUE_PIECE, teams = THREADS / pieces;
    const int team = threadIdx.x / pieces, piece = threadIdx.x % pieces;
    enum { AT_ONCE = GROUP <= 4 ? 16 : 8 };
    float sums[VALUE_PIECE * GROUP] = {};
    for (int first = begin + team; team < teams && first < end; first += AT_ONCE * teams) {
        typename CACHED::some_value some[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const int position = first + j * teams;
            some[j] = {};
            if (position < end) {
                some[j] = CACHED::load_value(x.cache, s.pages[(position - base) / PAGE], head,
                                             x.head_size, position, piece);
            }
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const int position = first + j * teams;
            const float4 value = CACHED::value(some[j]);
            if (position >= end) break;
#pragma unroll
            for (int g = 0; g < GROUP; g++) {
                const float weight = s.weights[g][position - base];
                sums[4 * g] = fmaf(weight, value.x, sums[4 * g]);
                sums[4 * g + 1] = fmaf(weight, value.y, sums[4 * g + 1]);
                sums[4 * g + 2] = fmaf(weight, value.z, sums[4 * g + 2]);
                sums[4 * g + 3] = fmaf(weight, value.w, sums[4 * g + 3]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < VALUE_PIECE * GROUP; i++) s.sums[i][threadIdx.x] = sums[i];
}

// What a block owns: heads `first` on of q, `count` of them, that share head `head` of k and v, and
// the positions from begin to end of the span at `base`, none if begin >= end. own: the row's.
template <int GROUP> struct span_place {
    int row, head, first, count, own, base, begin, end;

    __device__ inline span_place(const paged_arguments &x) {
        const int shared_by = x.heads / x.kv_heads, times = ceil_div(shared_by, GROUP);
        row = blockIdx.z, head = blockIdx.y / times;
        first = head * shared_by + blockIdx.y % times * GROUP;
        count = min(GROUP, (head + 1) * shared_by - first);
        own = ((const int *)x.cache.positions)[row], base = blockIdx.x * PAGED_SPAN;
        begin = max(base, x.window > 0 ? own - x.window + 1 : 0);
        end = min(base + PAGED_SPAN, own + 1);
    }
    __device__ inline bool is_empty() const { return begin >= end; }
    // To shared memory: the addresses of the span's pages.
    __device__ inline void load_pages(const paged_arguments &x, span_shared<GROUP> &s) const {
        if (!is_empty() && threadIdx.x <= (unsigned)(end - 1 - base) / PAGE) {
            s.pages[threadIdx.x] = pages_of(x.cache, row)[base / PAGE + threadIdx.x];
        }
    }
};

// The sums of values of the teams, from q and the pages in shared memory. Begins and ends with what
// all threads see.
template <class CACHED, int GROUP>
__device__ inline void attend(const paged_arguments &x, const span_place<GROUP> &p,
                              span_shared<GROUP> &s) {
    __syncthreads(); // q and the pages are there
    const int position = p.base + threadIdx.x % PAGED_SPAN;
    const bool seen = position >= p.begin && position < p.end;
    score<CACHED, GROUP>(s, x, seen ? s.pages[threadIdx.x % PAGED_SPAN / PAGE] : 0, p.head,
                         position, seen);
    __syncthreads(); // all scores are there
    weigh<GROUP>(s);
    __syncthreads(); // all weights are there
    add_values<CACHED, GROUP>(s, x, p.head, p.begin, p.end, p.base);
    __syncthreads(); // the sums of all teams are there
}

// Element `at` of head g of the block, not yet divided by the sum of weights.
template <int GROUP>
__device__ inline float attended(const paged_arguments &x, const span_shared<GROUP> &s, int g,
                                 int at) {
    const int pieces = x.head_size / VALUE_PIECE, teams = THREADS / pieces;
    float sum = 0;
    for (int team = 0; team < teams; team++) {
        sum += s.sums[VALUE_PIECE * g + at % VALUE_PIECE][team * pieces + at / VALUE_PIECE];
    }
    return sum;
}

// Leaves the block's part for the merge.
template <int GROUP>
__device__ inline void put_part(const paged_arguments &x, const span_place<GROUP> &p,
                                const span_shared<GROUP> &s) {
    const uint64_t part_size = x.head_size + 2;
    for (int i = threadIdx.x; i < p.count * x.head_size; i += THREADS) {
        const int g = i / x.head_size, at = i % x.head_size;
        float *part =
            (float *)x.parts +
            (((uint64_t)p.row * x.heads + p.first + g) * x.splits + blockIdx.x) * part_size;
        part[at] = attended(x, s, g, at);
        if (at == 0) part[x.head_size] = s.largest[g], part[x.head_size + 1] = s.total[g];
    }
}

template <class CACHED, int GROUP> __device__ inline void span(const paged_arguments &x) {
    __shared__ span_shared<GROUP> s;
    const span_place<GROUP> p(x);
    pdl_release();
    p.load_pages(x, s);
    pdl_wait();          // positions, slots and pages were there before
    if (p.is_empty()) return; // all threads: the merge leaves this span out
    for (int i = threadIdx.x; i < GROUP * x.head_size; i += THREADS) {
        const int g = i / x.head_size, at = i % x.head_size;
        const float *q = (const float *)x.q + p.row * x.q_stride;
        s.q[g][at] = g < p.count ? q[(uint64_t)(p.first + g) * x.head_size + at] * x.scale_log2 : 0;
    }
    attend<CACHED, GROUP>(x, p, s);
    put_part(x, p, s);
}
