/*
 * The trace: the events of a program's operations and calls.
 */
#include "test/test_api.h"
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/tollens_trace_XXXXXX";
static char text[65536];

static void begin(void) {
    close(mkstemp(path));
    unlink(path);
    setenv("TOLLENS_SOFT_TRACE", path, 1);
}

static void end(void) {
    unlink(path);
}

TestSuite(soft_trace, .init = begin, .fini = end);

static void read_trace(void) {
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
}

/* The line of the nth event of a name; "" if there are fewer. Static. */
static const char *line_of(const char *name, int nth) {
    static char line[1100];
    char wanted[128];
    snprintf(wanted, sizeof wanted, "\n{\"name\":\"%s\",", name);
    const char *at = strstr(text, wanted);
    while (at != NULL && --nth >= 0) at = strstr(at + 1, wanted);
    const size_t length = at != NULL ? strcspn(at + 1, "\n") : 0;
    memcpy(line, at != NULL ? at + 1 : "", length);
    line[length] = '\0';
    return line;
}

static int count(const char *name) {
    int found = 0;
    while (line_of(name, found)[0] != '\0') found++;
    return found;
}

#define HAS(name, nth, part)                                                                       \
    cr_assert(strstr(line_of(name, nth), part) != NULL, "%s: %s", part, line_of(name, nth))

Test(soft_trace, operations_and_calls_are_events) {
    char host[256] = "", address[64];
    void *pinned = NULL;
    CUdeviceptr memory = 0;
    CUstream stream = NULL;
    CUevent event = NULL;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 200));
    OK(cuMemHostAlloc(&pinned, 100, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuMemcpyHtoD_v2(memory, host, 200));
    OK(cuMemcpyDtoDAsync_v2((CUdeviceptr)(uintptr_t)pinned, memory, 100, stream));
    OK(cuMemcpyDtoD_v2(memory + 100, memory, 50));
    OK(cuMemsetD16Async(memory, 7, 60, stream));
    OK(cuEventRecord(event, stream));
    api_put(memory, 5, stream);
    OK(cuStreamSynchronize(stream));
    REFUSED(cuMemAlloc_v2(&memory, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(memory));
    read_trace();
    snprintf(address, sizeof address, "\"address\":\"0x%llx\"", (unsigned long long)memory);
    cr_assert(strncmp(text, "[\n{", 3) == 0);
    HAS("cuMemAlloc_v2", 0, "\"cat\":\"driver\",\"ph\":\"X\",\"ts\":");
    HAS("cuMemAlloc_v2", 0, "\"result\":0,\"bytes\":200");
    HAS("cuMemAlloc_v2", 0, address);
    HAS("cuMemAlloc_v2", 1, "\"args\":{\"result\":1}");
    HAS("cuMemFree_v2", 0, address);
    HAS("cuMemHostAlloc", 0, "\"bytes\":100");
    HAS("copy HtoD", 0, "\"cat\":\"copy\"");
    HAS("copy HtoD", 0, "\"device\":0,\"bytes\":200");
    HAS("copy DtoH", 0, "\"bytes\":100");
    HAS("copy DtoD", 0, "\"bytes\":50");
    HAS("fill", 0, "\"bytes\":120,\"value\":7");
    HAS("put", 0, "\"cat\":\"kernel\"");
    HAS("put", 0, "\"grid\":[1,1,1],\"block\":[1,1,1],\"shared\":0,\"error\":0");
    cr_assert(count("event") == 1 && count("put") == 1);
    cr_assert(count("cuEventRecord") == 1 && count("cuStreamSynchronize") == 1);
    cr_assert(count("process_name") == 1 && count("cuCtxSetCurrent") == 0);
    /* Two streams have rows, and one thread. */
    cr_assert(count("thread_name") == 3);
}

static double number_of(const char *line, const char *name) {
    const char *at = strstr(line, name);
    cr_assert(at != NULL, "%s: %s", name, line);
    return strtod(at + strlen(name), NULL);
}

static void wait_3_ms(void *data) {
    (void)data;
    usleep(3000);
}

Test(soft_trace, times_are_in_order) {
    CUdeviceptr memory = 0;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 4));
    OK(cuMemsetD32_v2(memory, 0, 1));
    api_put(memory, 5, NULL);
    api_put(memory, 6, NULL);
    OK(cuLaunchHostFunc(NULL, wait_3_ms, NULL));
    OK(cuCtxSynchronize());
    read_trace();
    const double first = number_of(line_of("put", 0), "\"ts\":");
    const double took = number_of(line_of("put", 0), "\"dur\":");
    const double second = number_of(line_of("put", 1), "\"ts\":");
    const double call = number_of(line_of("cuLaunchKernel", 0), "\"ts\":");
    const double wait = number_of(line_of("cuCtxSynchronize", 0), "\"ts\":");
    const double waited = number_of(line_of("cuCtxSynchronize", 0), "\"dur\":");
    cr_assert(took > 0 && call <= first && first + took <= second + 0.002);
    cr_assert(second < wait + waited);
    cr_assert(number_of(line_of("host function", 0), "\"dur\":") >= 3000);
}

Test(soft_trace, a_kernel_that_fails_says_so) {
    api_context(0);
    cr_assert(api_fault() == CUDA_ERROR_ILLEGAL_ADDRESS);
    read_trace();
    cr_assert(strstr(text, "\"error\":700}},\n") != NULL, "%s", text);
}

Test(soft_trace, a_file_that_cannot_be_written_is_told_of_once) {
    setenv("TOLLENS_SOFT_TRACE", "/tmp/tollens_none/trace", 1);
    test_capture(stderr);
    api_context(0);
    const char *told = test_captured(stderr);
    const char *at = strstr(told, "cannot write the trace to /tmp/tollens_none/trace");
    cr_assert(at != NULL && strstr(at + 1, "cannot write") == NULL, "%s", told);
}
