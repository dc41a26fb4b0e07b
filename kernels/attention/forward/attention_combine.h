/*
 * Threads of the kernels that merge the parts of blocks that split the keys, on host and device: at
 * least two for each element of the largest head. Internal to the operation.
 */
#ifndef KN_ATTENTION_COMBINE_H
#define KN_ATTENTION_COMBINE_H

enum { KN_ATTENTION_COMBINE_THREADS = 512 };

#endif
