// What kernels share that exchange lines with flags: a line is 8 bytes, sent as two words that each
// arrive whole, with 4 bytes of data and the number of the call above.
#pragma once

// Looks at an inbox between two at the clock. The word that says that another thread gave up is in
// the host's memory: thousands of threads that asked for it each time would fill the bus, and each
// would wait for its turn long after its line had come.
enum { LOOKS = 64, NS_BETWEEN_ASKING = 10000000 };

static __device__ inline void store_pair(unsigned long long address, unsigned long long low,
                                         unsigned long long high) {
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(address), "l"(low), "l"(high)
                 : "memory");
}

static __device__ inline void load_pair(unsigned long long address, unsigned long long &low,
                                        unsigned long long &high) {
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(address)
                 : "memory");
}

static __device__ inline unsigned long long now_ns() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// Sends a line to a slot.
static __device__ inline void send(unsigned long long slot, unsigned long long line,
                                   unsigned long long data, unsigned epoch) {
    const unsigned long long tag = (unsigned long long)epoch << 32;
    store_pair(slot + line * 16, (data & 0xffffffffu) | tag, data >> 32 | tag);
}

// How long a thread has waited for another rank. All are 0 at first.
struct patience {
    unsigned long long begin_ns, asked_ns;
    unsigned looks;
};

// Whether to look again, after one look more: not for longer than patience_ns, nor where another
// thread gave up. Then `status` has the rank that was missing.
static __device__ inline bool look_again(patience &p, unsigned sender, unsigned long long status_at,
                                         unsigned long long patience_ns) {
    volatile unsigned *status = (volatile unsigned *)status_at;
    if (++p.looks % LOOKS != 0) return true;
    const unsigned long long now = now_ns();
    if (p.begin_ns == 0) p.begin_ns = p.asked_ns = now;
    if (now - p.begin_ns >= patience_ns) {
        *status = 1 + sender; // any of the missing ones will do
        return false;
    }
    if (now - p.asked_ns < NS_BETWEEN_ASKING) return true;
    p.asked_ns = now;
    return *status == 0;
}

// The line of another rank from its slot, or false where it did not come within patience_ns, or
// where another thread gave up.
static __device__ bool receive(unsigned long long slot, unsigned long long line, unsigned sender,
                               unsigned epoch, unsigned long long status_at,
                               unsigned long long patience_ns, unsigned long long &data) {
    const unsigned long long address = slot + line * 16;
    patience p = {0, 0, 0};
    do {
        unsigned long long low, high;
        load_pair(address, low, high);
        if ((unsigned)(low >> 32) == epoch && (unsigned)(high >> 32) == epoch) {
            data = (low & 0xffffffffu) | high << 32;
            return true;
        }
    } while (look_again(p, sender, status_at, patience_ns));
    return false;
}
