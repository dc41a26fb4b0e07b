// Pointers and frontiers: breadth-first search, a search tree built with atomics, list ranking.
#include "corpus.h"

extern "C" __global__ void advance(const uint32_t *begins, const uint32_t *edges, int32_t *distance,
                                   int32_t level, uint32_t *changed, uint32_t count) {
    uint32_t node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= count || distance[node] != level) return;
    for (uint32_t e = begins[node]; e < begins[node + 1]; e++) {
        if (atomicCAS(&distance[edges[e]], -1, level + 1) == -1) atomicExch(changed, 1);
    }
}

struct node {
    uint32_t key;
    node *child[2];
};

extern "C" __global__ void grow(node *nodes, node **root, const uint32_t *keys, uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    node *own = &nodes[i];
    own->key = keys[i];
    own->child[0] = own->child[1] = nullptr;
    __threadfence();
    node **link = root;
    for (;;) {
        node *found = (node *)atomicCAS((unsigned long long *)link, 0ull, (unsigned long long)own);
        if (found == nullptr) return;
        link = &found->child[own->key > found->key];
    }
}

// The keys in order, by a walk without recursion over a stack in local memory.
extern "C" __global__ void walk(node *const *root, uint32_t *out) {
    node *stack[64];
    const node *at = *root;
    uint32_t depth = 0, count = 0;
    while (at != nullptr || depth > 0) {
        while (at != nullptr) {
            stack[depth++] = const_cast<node *>(at);
            at = at->child[0];
        }
        at = stack[--depth];
        out[count++] = at->key;
        at = at->child[1];
    }
}

// How far each node is from the end of its list, by jumping over pointers.
extern "C" __global__ void rank_list(const uint32_t *next, uint32_t *rank, uint32_t count) {
    extern __shared__ uint32_t room[];
    uint32_t *to = room, *distance = room + count, i = threadIdx.x;
    to[i] = next[i];
    distance[i] = next[i] == i ? 0 : 1;
    __syncthreads();
    for (uint32_t step = 1; step < count; step *= 2) {
        uint32_t behind = distance[to[i]], further = to[to[i]];
        __syncthreads();
        distance[i] += behind;
        to[i] = further;
        __syncthreads();
    }
    rank[i] = distance[i];
}
