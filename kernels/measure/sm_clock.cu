// sm_clock: counts the cycles of its multiprocessor over at least wait_ns of the GPU's global
// timer: cycles[0] of them in cycles[1] nanoseconds give the clock that really ran, whatever any
// tool says of it. One thread.
//
// The timer moves in steps, so both ends wait for a step: an end is off by one turn of the loop and
// not by one step.
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
