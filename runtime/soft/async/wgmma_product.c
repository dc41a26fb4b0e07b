/*
 * The products that a warpgroup has begun.
 */
#include "wgmma_product.h"

#include <stdlib.h>

struct soft_wgmma_product *soft_wgmma_find(const struct soft_wgmma_group *group, uint64_t number) {
    struct soft_wgmma_product *product = group->first;
    while (product != NULL && product->number != number) product = product->next;
    return product;
}

struct soft_wgmma_product *soft_wgmma_add(struct soft_wgmma_group *group, uint64_t number,
                                          const struct soft_wgmma_op *op) {
    struct soft_wgmma_product *product = group->free;
    if (product != NULL) {
        group->free = product->next;
    } else {
        product = aligned_alloc(_Alignof(struct soft_wgmma_product), sizeof *product);
    }
    if (product == NULL) return NULL;
    product->next = NULL;
    product->number = number;
    product->in = op->in;
    product->a_descriptor = op->a_descriptor;
    product->b_descriptor = op->b_descriptor;
    product->accumulates = op->accumulates;
    product->settled = false;
    product->begun = product->done = 0;
    product->b_kind = SOFT_WGMMA_UNREAD;
    *group->end = product;
    group->end = &product->next;
    return product;
}

void soft_wgmma_remove(struct soft_wgmma_group *group, struct soft_wgmma_product *product) {
    struct soft_wgmma_product **link = &group->first;
    while (*link != product) link = &(*link)->next;
    *link = product->next;
    if (group->end == &product->next) group->end = link;
    product->next = group->free;
    group->free = product;
}

void soft_wgmma_clear(struct soft_wgmma_group *group) {
    while (group->first != NULL) soft_wgmma_remove(group, group->first);
}

void soft_wgmma_free(struct soft_wgmma_group *group) {
    soft_wgmma_clear(group);
    while (group->free != NULL) {
        struct soft_wgmma_product *product = group->free;
        group->free = product->next;
        free(product);
    }
}
