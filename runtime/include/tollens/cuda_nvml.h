/*
 * Structures of NVML (libnvidia-ml), as its functions read and write them. Source: nvml.h of CUDA
 * 13.0.
 */
#ifndef TOLLENS_CUDA_NVML_H
#define TOLLENS_CUDA_NVML_H

/* nvmlMemory_t and nvmlMemory_v2_t, in bytes: only the second separates what is reserved from what
 * is used. Its version is its size with 2 in the top byte. */
struct cuda_nvml_memory {
    unsigned long long total, free, used;
};
struct cuda_nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

/* nvmlProcessInfo_t, as the functions _v2 and _v3 write it. */
struct cuda_nvml_process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance; /* ~0u: none */
};

#endif
