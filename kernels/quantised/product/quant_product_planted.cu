// quant product of Q4_K by step 8 or 9 with one defect per kernel: tests must notice each.
// Target: compute_90a
//
// The idea: the pipeline of quant_product_wgmma.cuh or quant_product_split.cuh with a mistake that
// is easily made. No table of the operation offers these kernels.
// Owner and requirements: as these files say.
#include "quant_product_split.cuh"

#if __CUDA_ARCH__ >= 900
QUANT_WGMMA(quant_product_planted_early_stage, chunk_q4_k, 128, WGMMA_EARLY_STAGE)
QUANT_WGMMA(quant_product_planted_lost_chunk, chunk_q4_k, 128, WGMMA_LOST_CHUNK)
QUANT_WGMMA(quant_product_planted_stale_fragments, chunk_q4_k, 128, WGMMA_STALE_FRAGMENTS)
QUANT_WGMMA(quant_product_planted_lost_consumer, chunk_q4_k, 128, WGMMA_LOST_CONSUMER)
QUANT_SPLIT(quant_product_planted_lost_share, deep_q4_k, 32, WGMMA_LOST_SHARE)
#endif
