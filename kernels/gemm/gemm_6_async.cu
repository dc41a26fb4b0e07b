// gemm, step 6: tensor cores that never wait for memory.
// Target: compute_80
//
// The idea: the pipeline of gemm_async.cuh. ldmatrix loads the fragments, and transposes them where
// a matrix is transposed, so all four transpositions cost the same.
// Owner and requirements: as gemm_async.cuh says.
// Bound by: mma.sync; at 128 x 256 each byte of a tile is used for 85 multiplications.
#include "gemm_async.cuh"

GEMM_ASYNC_ALL(f16, __half)
GEMM_ASYNC_ALL(bf16, __nv_bfloat16)
