// peer_flip: to[i] ^= from[i] ^ was for i < bytes, by atomic operations on another device's memory.
//
// The idea: where every byte of `to` was `was`, it is from[i] afterwards, and a lost or repeated
// operation shows. Whole words of 8 bytes are one operation; with `each` every byte is one, so that
// four threads meet at a word of 4 bytes.
// Owner: thread t of the grid owns words t, t + threads, ... that `to` lies in; the bytes of a word
// that do not belong to it are left alone. Bound by the link's atomic operations.
// Requires: any grid and block; `to` and what surrounds it is memory up to multiples of 8 bytes.
enum { WORD = 8, HALF = 4 };

static __device__ void flip_byte(unsigned char *at, unsigned char by) {
    const unsigned long long address = (unsigned long long)at;
    unsigned *word = (unsigned *)(address / HALF * HALF);
    atomicXor_system(word, (unsigned)by << (8 * (address % HALF)));
}

extern "C" __global__ void peer_flip(unsigned char *to, const unsigned char *from,
                                     unsigned long long bytes, unsigned was, unsigned each) {
    const unsigned long long thread = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    const unsigned long long threads = gridDim.x * (unsigned long long)blockDim.x;
    if (each != 0) {
        for (unsigned long long i = thread; i < bytes; i += threads) {
            flip_byte(to + i, (unsigned char)(from[i] ^ was));
        }
        return;
    }
    unsigned long long head = (WORD - (unsigned long long)to % WORD) % WORD;
    if (head > bytes) head = bytes;
    const unsigned long long words = (bytes - head) / WORD;
    for (unsigned long long i = thread; i < head; i += threads) {
        flip_byte(to + i, (unsigned char)(from[i] ^ was));
    }
    for (unsigned long long i = thread; i < words; i += threads) {
        const unsigned char *at = from + head + i * WORD;
        unsigned long long by = 0;
        for (int j = 0; j < WORD; j++) {
            by |= (unsigned long long)(unsigned char)(at[j] ^ was) << (8 * j);
        }
        atomicXor_system((unsigned long long *)(to + head) + i, by);
    }
    for (unsigned long long i = head + words * WORD + thread; i < bytes; i += threads) {
        flip_byte(to + i, (unsigned char)(from[i] ^ was));
    }
}
