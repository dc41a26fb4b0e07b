// linear, step 6: step 5 by PDL: it requests its weights before the preceding kernel has ended.
// Target: compute_90
//
// The idea: weights are constant, so the first chunks of each ring are copied before x is written.
// Owner, bound and requirements: as step 5. It may be launched by PDL.
#define EARLY
#include "linear_bytes.cuh"

LINEAR_BYTES(_early, q4_k, bytes_k<false>)
LINEAR_BYTES(_early, q5_k, bytes_k<true>)
LINEAR_BYTES(_early, q6_k, bytes_q6_k)
