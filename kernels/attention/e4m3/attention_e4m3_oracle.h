/*
 * The oracle of attention over numbers of 8 bits: the definition in double over the stored numbers,
 * and its error bound. For tests and claims. Pure; thread-safe.
 */
#ifndef KN_ATTENTION_E4M3_ORACLE_H
#define KN_ATTENTION_E4M3_ORACLE_H

#include "attention/forward/attention_oracle.h"

/* Of a head. */
struct kn_e4m3_scales {
    float q, k, v;
};

/* As kn_attention_oracle, for numbers of e4m3 as floats, without their scales; the type is that of
 * out. */
TOL_API bool kn_attention_e4m3_oracle(const struct kn_attention *attention,
                                      const struct kn_e4m3_scales *scales,
                                      const struct kn_attention_head *head, size_t index,
                                      struct kn_attention_row *row);

#endif
