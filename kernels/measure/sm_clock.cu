// sm_clock: cycles[0] = cycles of the multiprocessor, cycles[1] = nanoseconds of the GPU's global
// timer, over at least wait_ns. Their quotient is the clock that really ran.
//
// The idea: the timer advances in steps, so the kernel waits for a step at both ends. An end is
// then off by one turn of the loop and not by one step.
// Owner: one thread. Requires: gridDim = blockDim = (1, 1, 1).
static __device__ unsigned long long at_next_step(unsigned long long *cycles) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        *cycles = clock64();
    } while (now == begin);
    return now;
}

extern "C" __global__ void sm_clock(unsigned long long *cycles, unsigned long long wait_ns) {
    unsigned long long first, last;
    unsigned long long begin = at_next_step(&first), now;
    do {
        now = at_next_step(&last);
    } while (now - begin < wait_ns);
    cycles[0] = last - first;
    cycles[1] = now - begin;
}
