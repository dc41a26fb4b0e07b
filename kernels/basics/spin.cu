// spin: runs until *stop is not zero, or forever. For tests of deadlines.
//
// Owner: nothing is written; one thread is enough.
// Requires: stop is in host memory that is mapped into the device, or in device memory.
extern "C" __global__ void spin(const volatile unsigned *stop) {
    while (*stop == 0) {
    }
}
