// grind: keeps a few multiprocessors busy for as long as it is told, with work that can be checked.
//
// Each thread makes steps steps of a linear congruential generator that begins at its own number,
// and adds the last one to sums[number]: launches can be counted afterwards, thread by thread.
// times[0] becomes the least time at which a block began and times[1] the greatest at which one
// ended, on the device's nanosecond timer, so that who ran beside whom can be seen. One owner an
// element of sums.
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
