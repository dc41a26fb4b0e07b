/*
 * Kernel set: the kernels that a program uses in a context, each loaded at its first use.
 *
 * Every operation takes one. Finding a loaded kernel takes no lock. Thread-safe.
 */
#ifndef KN_KERNEL_SET_H
#define KN_KERNEL_SET_H

#include "choose/choose.h"
#include "choose/plan.h"
#include "choose/tuning.h"

struct kn_kernels;

/* Creates an empty set, which keeps the context alive. TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status kn_kernels_create(struct tol_context *context, struct kn_kernels **kernels);

/* Waits for work in flight, as tol_module_destroy does, and unloads all kernels. NULL is a
 * no-op. */
TOL_API void kn_kernels_destroy(struct kn_kernels *kernels);

TOL_API struct tol_context *kn_kernels_context(const struct kn_kernels *kernels);

/* Has calls without a variant take what a tuning names for their problem, where that serves; NULL:
 * none. The tuning must outlive the set, or its next use of another. */
TOL_API void kn_kernels_use(struct kn_kernels *kernels, const struct kn_tuning *tuning);

/* The variant that the set's tuning names for a problem, or NULL. */
const char *kn_kernels_tuned(const struct kn_kernels *kernels, const struct kn_tuning_key *key);

/* The kernel of a variant, valid as long as the set. The variant must outlive the set. Fails as
 * kn_image_load, tol_module_kernel and tol_kernel_allow_shared do. */
tol_status kn_kernels_find(struct kn_kernels *kernels, const struct kn_variant *variant,
                           const struct tol_kernel **kernel);

/* What a call wants: a variant by its name, a table of its own, or NULL for each. */
struct kn_wish {
    const char *name;
    const struct kn_variants *variants;
};

/* Whether the operation's table, its models and the tuning in use decide. */
static inline bool kn_wish_is_open(struct kn_wish wish) {
    return wish.name == NULL && wish.variants == NULL;
}

/* What calls of operations decided, kept (plan.h). A key is completed by kn_kernels_recall with
 * which tuning is in use, before anything is decided: what is kept under it holds as long as that
 * is so. */
bool kn_kernels_recall(struct kn_kernels *kernels, struct kn_plan_key *key, void *plan,
                       size_t bytes);
void kn_kernels_keep(struct kn_kernels *kernels, const struct kn_plan_key *key, const void *plan,
                     size_t bytes);

/* How many clusters of a variant whose kernel is in the set run at once in launches of this shape,
 * by the driver; 0: it does not say. The kernel has a cluster's size. The last answer stays. */
unsigned kn_kernels_clusters(struct kn_kernels *kernels, const struct kn_variant *variant,
                             const struct tol_launch_shape *shape);

/* kn_variant_pick, and the kernel of the picked variant. */
tol_status kn_kernels_pick(struct kn_kernels *kernels, const struct kn_variants *variants,
                           const char *name, const void *problem, const struct kn_variant **variant,
                           const struct tol_kernel **kernel);

/* kn_kernels_pick of what the call wants. If that is neither a name nor a table, the variant that
 * the set's tuning names for the problem's key, if it serves; else the best of the operation's
 * table. key: NULL if the operation is not tuned. What refuses a problem must not depend on whether
 * a variant is named. */
tol_status kn_kernels_choose(struct kn_kernels *kernels, const struct kn_variants *table,
                             struct kn_wish wish, const struct kn_tuning_key *key,
                             const void *problem, const struct kn_variant **variant,
                             const struct tol_kernel **kernel);

#endif
