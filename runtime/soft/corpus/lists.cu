// Memory that threads allocate and free: each keeps a sorted list, whose nodes another kernel adds
// up and frees.
#include <stdint.h>
#include <stdlib.h>

struct node {
    int32_t value;
    node *next;
};

static __device__ void insert(node **list, int32_t value) {
    while (*list != nullptr && (*list)->value < value) list = &(*list)->next;
    node *added = (node *)malloc(sizeof(node));
    if (added == nullptr) return;
    added->value = value;
    added->next = *list;
    *list = added;
}

extern "C" __global__ void make_lists(const int32_t *in, node **lists, uint32_t each) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    node *list = nullptr;
    for (uint32_t k = 0; k < each; k++) insert(&list, in[i * each + k]);
    lists[i] = list;
}

// The place of a value weighs it, so that the order counts.
extern "C" __global__ void take_apart(node **lists, int32_t *out) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    int32_t sum = 0, place = 1;
    for (node *n = lists[i]; n != nullptr;) {
        node *next = n->next;
        sum += place++ * n->value;
        free(n);
        n = next;
    }
    out[i] = sum;
}

// A block for all threads, as large as the launch says.
extern "C" __global__ void reversed(const int32_t *in, int32_t *out) {
    __shared__ int32_t *shared;
    if (threadIdx.x == 0) shared = (int32_t *)malloc(blockDim.x * sizeof(int32_t));
    __syncthreads();
    shared[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) free(shared);
}
