// gate: holds a stream until the host opens it, so that the work queued after it runs without
// gaps and the cost of queueing is not measured.
//
// The idea: one thread polls *open. If the host dies, or waits for the stream before it opens the
// gate, the GPU would hang; so the gate opens by itself after limit_ns of the GPU's own time and
// writes 1 to *overdue. Times measured after an overdue gate are invalid.
// Owner: one thread. Requires: gridDim = blockDim = (1, 1, 1); open is in pinned host memory.
extern "C" __global__ void gate(const volatile unsigned *open, unsigned *overdue,
                                unsigned long long limit_ns) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    while (*open == 0) {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        if (now - begin > limit_ns) {
            *overdue = 1;
            return;
        }
    }
}
