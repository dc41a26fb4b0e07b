// tick_4: tick_1 with four arguments of three sizes, all of which the sum needs: it adds one for
// first 2, second 3 * 2^32, third 4.0. Others would show in the count.
extern "C" __global__ void tick_4(unsigned *count, unsigned first, unsigned long long second,
                                  float third) {
    *count += first + (unsigned)(second >> 32) - (unsigned)third;
}
