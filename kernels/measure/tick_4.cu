// tick_4: tick_1 with four arguments of three sizes.
//
// The idea: the sum needs all of them. It is 1 for first = 2, second = 3 * 2^32 and third = 4.0,
// and a wrong argument shows in the count.
// Owner and requirements: as tick_1.
extern "C" __global__ void tick_4(unsigned *count, unsigned first, unsigned long long second,
                                  float third) {
    *count += first + (unsigned)(second >> 32) - (unsigned)third;
}
