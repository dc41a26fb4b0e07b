// peer_move: to[i] = from[i] for i < bytes, where one of the two is another device's memory.
//
// The idea: 16 bytes per thread and turn where both addresses allow it, otherwise one byte; the few
// bytes before and after whole words of 16 are the last block's. Launched on the device of `to` it
// loads over the link, on that of `from` it stores over the link.
// Owner: thread t of the grid owns words t, t + threads, ... Bound by the link.
// Requires: any grid and block.
enum { WORD = 16 };

extern "C" __global__ void peer_move(unsigned char *to, const unsigned char *from,
                                     unsigned long long bytes) {
    const unsigned long long thread = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    const unsigned long long threads = gridDim.x * (unsigned long long)blockDim.x;
    unsigned long long head = (WORD - (unsigned long long)to % WORD) % WORD, words = 0;
    if (((unsigned long long)to - (unsigned long long)from) % WORD == 0) {
        if (head > bytes) head = bytes;
        words = (bytes - head) / WORD;
    } else {
        head = bytes;
    }
    for (unsigned long long i = thread; i < head; i += threads) to[i] = from[i];
    uint4 *wide = (uint4 *)(to + head);
    const uint4 *wide_from = (const uint4 *)(from + head);
    for (unsigned long long i = thread; i < words; i += threads) wide[i] = wide_from[i];
    for (unsigned long long i = head + words * WORD + thread; i < bytes; i += threads) {
        to[i] = from[i];
    }
}
