// tick_1: adds one to *count. The smallest launch that can be counted afterwards, so a launch that
// is timed and never made is found out. One thread; launches on one stream follow each other.
extern "C" __global__ void tick_1(unsigned *count) {
    *count += 1;
}
