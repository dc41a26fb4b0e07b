// tick_16: tick_1 with sixteen arguments, all of which the sum needs: it adds one where the second
// is 106 and the others behind it count down from 14 to 1, since 106 less their sum is one.
extern "C" __global__ void tick_16(unsigned *count, unsigned a, unsigned b, unsigned c, unsigned d,
                                   unsigned e, unsigned f, unsigned g, unsigned h, unsigned i,
                                   unsigned j, unsigned k, unsigned l, unsigned m, unsigned n,
                                   unsigned o) {
    *count += a - b - c - d - e - f - g - h - i - j - k - l - m - n - o;
}
