// tick_16: tick_1 with sixteen arguments.
//
// The idea: the sum needs all of them. It is 1 if the second argument is 106 and the others count
// down from 14 to 1, and a wrong argument shows in the count.
// Owner and requirements: as tick_1.
extern "C" __global__ void tick_16(unsigned *count, unsigned a, unsigned b, unsigned c, unsigned d,
                                   unsigned e, unsigned f, unsigned g, unsigned h, unsigned i,
                                   unsigned j, unsigned k, unsigned l, unsigned m, unsigned n,
                                   unsigned o) {
    *count += a - b - c - d - e - f - g - h - i - j - k - l - m - n - o;
}
