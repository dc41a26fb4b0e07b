/*
 * Goes through a table once: can the row compute the problem, and is it expected to be the
 * fastest? Says why none is left.
 */
#include "choose/choose.h"

#include "core/check.h"

#include <stdlib.h>
#include <string.h>

enum { SHARED_BYTES_ALWAYS = 48 << 10 }; /* what every kernel may have */

static bool choose_is_named(const struct kn_variant *row, const char *name) {
    return name == NULL || strcmp(row->name, name) == 0;
}

static bool has_shared(const struct kn_variant *row, const struct tol_device *device) {
    return row->shared_bytes <= SHARED_BYTES_ALWAYS ||
           row->shared_bytes <= (unsigned)device->shared_bytes_per_block_optin;
}

/* Why a row cannot compute a problem on a device, as a clause of a sentence; NULL: it can. */
static const char *choose_cannot(const struct kn_variant *row, const struct tol_device *device,
                                 const void *problem) {
    if (row->compute_capability_min > device->compute_capability) return "it needs a newer device";
    if (kn_image_pick(row->images, device->compute_capability, true) == NULL) {
        return "it is compiled for other devices";
    }
    if (!has_shared(row, device)) return "it needs more shared memory";
    return row->refuse != NULL ? row->refuse(row, problem) : NULL;
}

static const char *choose_declines(const struct kn_variant *row, const struct tol_device *device,
                                   const void *problem) {
    return row->decline != NULL ? row->decline(row, problem, device) : NULL;
}

/* Whether an earlier row has the name of this one. */
static bool is_repeated(const struct kn_variants *variants, size_t row) {
    for (size_t i = 0; i < row; i++) {
        if (strcmp(variants->rows[i].name, variants->rows[row].name) == 0) return true;
    }
    return false;
}

TOL_COLD static tol_status no_such_name(const struct kn_variants *variants, const char *name) {
    tol_status status =
        tol_fail(__FILE__, __LINE__, TOL_NOT_FOUND, "%s has no variant named '%s'; there are",
                 variants->operation, name);
    for (size_t i = 0; i < variants->count; i++) {
        const char *other = variants->rows[i].name;
        if (is_repeated(variants, i)) continue;
        tol_message_add("%s %s", i > 0 ? "," : "", other);
    }
    return status;
}

/* The clause of cannot, with numbers. */
static void add_reason(const struct kn_variant *row, const struct tol_device *device,
                       const char *name, const void *problem) {
    const int capability = device->compute_capability;
    const char *why = choose_cannot(row, device, problem);
    if (row->compute_capability_min > capability) {
        tol_message_add("it needs compute capability %d.%d, and the device has %d.%d",
                        row->compute_capability_min / 10, row->compute_capability_min % 10,
                        capability / 10, capability % 10);
    } else if (!has_shared(row, device)) {
        tol_message_add("it needs %u bytes of shared memory a block, and the device has %d",
                        row->shared_bytes, device->shared_bytes_per_block_optin);
    } else {
        if (why == NULL && name == NULL) why = choose_declines(row, device, problem);
        tol_message_add("%s", why);
    }
}

TOL_COLD static tol_status none_serves(const struct kn_variants *variants,
                                       const struct tol_device *device, const char *name,
                                       const void *problem) {
    tol_status status = tol_fail(__FILE__, __LINE__, TOL_UNSUPPORTED,
                                 "no variant of %s serves this problem:", variants->operation);
    const char *comma = "";
    for (size_t i = 0; i < variants->count; i++) {
        const struct kn_variant *row = &variants->rows[i];
        if (!choose_is_named(row, name)) continue;
        tol_message_add("%s %s (%s): ", comma, row->name, row->entry);
        add_reason(row, device, name, problem);
        comma = ";";
    }
    return status;
}

tol_status kn_variant_pick(const struct kn_variants *variants, const struct tol_device *device,
                           const char *name, const void *problem,
                           const struct kn_variant **variant) {
    bool is_known = false;
    for (size_t i = 0; i < variants->count; i++) {
        const struct kn_variant *row = &variants->rows[i];
        if (!choose_is_named(row, name)) continue;
        is_known = true;
        if (choose_cannot(row, device, problem) != NULL) continue;
        if (name == NULL && choose_declines(row, device, problem) != NULL) continue;
        *variant = row;
        return TOL_OK;
    }
    return is_known || name == NULL ? none_serves(variants, device, name, problem)
                                    : no_such_name(variants, name);
}

const struct kn_variant *kn_variants_find(const struct kn_variants *variants, const char *name) {
    for (size_t i = 0; name != NULL && i < variants->count; i++) {
        if (choose_is_named(&variants->rows[i], name)) return &variants->rows[i];
    }
    return NULL;
}
