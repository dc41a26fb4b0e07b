// spin: runs until *stop is not zero, or for ever. For tests of deadlines.
//
// One thread is enough; *stop lies in host memory that the device can see, or in device memory.
extern "C" __global__ void spin(const volatile unsigned *stop) {
    while (*stop == 0) {
    }
}
