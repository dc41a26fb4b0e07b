// met: step 1 with the meetings of the ranks inside the kernel, which run at once.
//
// The idea: a stream that waits for another device's stream, by an event or a word in the host's
// memory, takes several microseconds each time, and a call has two such waits. Here block 0 stores
// the number of the call to all ranks, each block waits for theirs before it uses their memory, and
// the last block that is done tells the others, and waits until all are.
// A rank comes to the next call only when all are done with this one, so a word never lags the
// number that a rank waits for. Waiting is bounded as in step 2; a block that gives up moves
// nothing, and then none tells that it is done.
// Owner: as of step 1. Bound by: the links. Requires: any grid, at least one block.
#include "met.cuh"

extern "C" __global__ void met_f32(collective_met x) { met<float>(x); }
extern "C" __global__ void met_f16(collective_met x) { met<__half>(x); }
extern "C" __global__ void met_bf16(collective_met x) { met<__nv_bfloat16>(x); }
