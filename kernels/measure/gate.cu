// gate: holds a stream until the host opens it, so that work queued behind it runs without gaps and
// what it costs to queue is not measured. One thread.
//
// *open lies in pinned host memory. A host that dies or waits for the stream first would hold the
// GPU for ever, so the gate opens by itself after limit_ns of the GPU's own time and then writes
// one to *overdue: times taken behind it are worth nothing.
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
