// grind: sums[i] += the steps-th number of a linear congruential generator that begins at i. Keeps
// a few multiprocessors busy for a chosen time.
//
// The idea: the work can be checked, so launches can be counted afterwards, thread by thread.
// times[0] becomes the earliest time at which a block began and times[1] the latest at which one
// ended, on the device's nanosecond timer: that shows which launches ran concurrently.
// Owner: thread i of the grid owns sums[i]. Bound by integer arithmetic.
// Requires: times[0] begins at the largest number and times[1] at 0.
extern "C" __global__ void grind(unsigned *sums, unsigned long long *times, unsigned steps) {
    unsigned long long begin, end;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    unsigned number = blockIdx.x * blockDim.x + threadIdx.x, x = number;
#pragma unroll 1
    for (unsigned i = 0; i < steps; i++) x = x * 1664525u + 1013904223u;
    sums[number] += x;
    __syncthreads();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end)::"memory");
    if (threadIdx.x == 0) {
        atomicMin(&times[0], begin);
        atomicMax(&times[1], end);
    }
}
