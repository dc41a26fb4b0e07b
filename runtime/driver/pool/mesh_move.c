/*
 * One move of a mesh plan, made with the driver completely or not at all.
 *
 * A page's bytes are copied to the same offsets of another page's memory, which is then mapped at
 * both addresses. Until the copies are done nothing has changed; if the driver fails a later step,
 * the earlier mapping is restored.
 */
#include "mesh.h"

#include "core/deadline.h"

/* The pages that a handle's piece is mapped at: one for a handle over several pages; otherwise its
 * list. */
static uint32_t first_page(const struct tol_page_handle *handle, uint32_t piece) {
    return handle->first + piece;
}

static uint32_t next_page(const struct tol_pages *pages, const struct tol_page_handle *handle,
                          uint32_t page) {
    return handle->is_shared ? pages->shares[page].next : 0; /* + 1 */
}

static uint32_t target_of(const struct tol_mesh_move *move, uint32_t piece) {
    return move->to[piece] == TOL_MESH_NEW ? move->made[piece] : (uint32_t)move->to[piece];
}

/* Releases the new handles of a move that was not made. */
static void mesh_move_unmake(struct tol_mesher *m, const struct tol_mesh_move *move,
                             uint32_t pieces) {
    struct tol_pages *pages = &m->pool->pages;
    const struct tol_driver_table *driver = pages->context->functions;
    for (uint32_t i = 0; i < pieces; i++) {
        if (move->to[i] != TOL_MESH_NEW) continue;
        struct tol_page_handle *made = &pages->handles[move->made[i]];
        driver->cuMemUnmap(m->scratch + i * pages->page_bytes, pages->page_bytes);
        driver->cuMemRelease(made->memory);
        pages->releases++;
        pages->mapped -= pages->page_bytes;
        tol_pages_drop_handle(pages, made);
    }
}

/* A handle of one page, mapped at a scratch address. */
static tol_status make_page(struct tol_mesher *m, uint32_t piece, uint32_t *result) {
    tol_status status = TOL_OK;
    struct tol_pages *pages = &m->pool->pages;
    struct tol_context *context = pages->context;
    const uint64_t unit = pages->page_bytes, at = m->scratch + piece * unit;
    CUmemGenericAllocationHandle memory = 0;
    bool is_made = false, is_mapped = false;
    struct tol_page_handle *handle = tol_pages_new_handle(pages);
    TOL_CHECK(handle != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a record of a handle");
    *handle = (struct tol_page_handle){0};
    TOL_TRY(tol_pool_charge(m->pool, unit));
    TOL_CONTEXT_CU(context, cuMemCreate, (&memory, unit, &pages->prop, 0), "creating a page");
    is_made = true;
    TOL_CONTEXT_CU(context, cuMemMap, (at, unit, 0, memory, 0), "mapping a page");
    is_mapped = true;
    TOL_CONTEXT_CU(context, cuMemSetAccess, (at, unit, &pages->access, 1),
                   "allowing access to a page");
    handle->memory = memory;
    handle->pages = 1;
    pages->creates++;
    pages->mapped += unit;
    tol_pool_note_held(m->pool);
    *result = (uint32_t)(handle - pages->handles);
    return TOL_OK;
out:
    if (is_mapped) context->functions->cuMemUnmap(at, unit);
    if (is_made) context->functions->cuMemRelease(memory);
    if (handle != NULL) tol_pages_drop_handle(pages, handle);
    return status;
}

/* Copies the runs of bits from one page to another. */
static tol_status copy_bits(struct tol_context *context, CUdeviceptr to, CUdeviceptr from,
                            const uint64_t *bits, uint32_t granules) {
    tol_status status = TOL_OK;
    for (uint32_t begin = 0, end = 0; begin < granules; begin = end) {
        bool is_set = bits[begin / 64] >> begin % 64 & 1;
        for (end = begin; end < granules && (bits[end / 64] >> end % 64 & 1) == is_set; end++) {
            /* Whole words at once. */
            while (end % 64 == 0 && end + 64 < granules &&
                   bits[end / 64] == (is_set ? ~(uint64_t)0 : 0)) {
                end += 64;
            }
            if ((bits[end / 64] >> end % 64 & 1) != is_set) break;
        }
        if (!is_set) continue;
        uint64_t offset = (uint64_t)begin * TOL_SPAN_GRANULE;
        uint64_t bytes = (uint64_t)(end - begin) * TOL_SPAN_GRANULE;
        TOL_CONTEXT_CU(context, cuMemcpyDtoDAsync_v2, (to + offset, from + offset, bytes, NULL),
                       "copying %llu bytes of a page", (unsigned long long)bytes);
    }
out:
    return status;
}

/* New handles, and the bytes in all of them. */
static tol_status fill_targets(struct tol_mesher *m, struct tol_mesh_move *move) {
    tol_status status = TOL_OK;
    struct tol_pages *pages = &m->pool->pages;
    const uint32_t granules = (uint32_t)(pages->page_bytes / TOL_SPAN_GRANULE);
    uint32_t made = 0;
    for (; made < move->pages; made++) {
        if (move->to[made] == TOL_MESH_NEW) TOL_TRY(make_page(m, made, &move->made[made]));
    }
    for (uint32_t i = 0; i < move->pages; i++) {
        if (move->to[i] == TOL_MESH_NOWHERE) continue;
        CUdeviceptr to = m->scratch + i * pages->page_bytes;
        if (move->to[i] >= 0) to = tol_pages_address(pages, pages->handles[move->to[i]].first);
        CUdeviceptr from = tol_pages_address(pages, first_page(&pages->handles[move->handle], i));
        TOL_TRY(copy_bits(pages->context, to, from, move->bits[i], granules));
    }
    TOL_TRY(tol_deadline_wait_legacy(pages->context));
    return TOL_OK;
out:
    mesh_move_unmake(m, move, made);
    return status;
}

/* Maps a handle's memory at its earlier address. If it is still mapped there, the call fails, which
 * does no harm. */
static void mesh_move_put_back(struct tol_pages *pages, const struct tol_page_handle *handle) {
    const struct tol_driver_table *driver = pages->context->functions;
    if (!handle->is_shared) {
        CUdeviceptr at = tol_pages_address(pages, handle->first);
        driver->cuMemMap(at, handle->pages * pages->page_bytes, 0, handle->memory, 0);
        driver->cuMemSetAccess(at, handle->pages * pages->page_bytes, &pages->access, 1);
        return;
    }
    for (uint32_t page = handle->first + 1; page != 0; page = pages->shares[page - 1].next) {
        CUdeviceptr at = tol_pages_address(pages, page - 1);
        driver->cuMemMap(at, pages->page_bytes, 0, handle->memory, 0);
        driver->cuMemSetAccess(at, pages->page_bytes, &pages->access, 1);
    }
}

static void unmap_pages(struct tol_pages *pages, const uint32_t *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        pages->context->functions->cuMemUnmap(tol_pages_address(pages, list[i]), pages->page_bytes);
    }
}

/* Takes a handle's addresses and maps them onto the targets. */
static tol_status mesh_move_remap(struct tol_mesher *m, const struct tol_mesh_move *move) {
    tol_status status = TOL_OK;
    struct tol_pages *pages = &m->pool->pages;
    struct tol_context *context = pages->context;
    const struct tol_page_handle *handle = &pages->handles[move->handle];
    const uint64_t unit = pages->page_bytes;
    size_t count = 0;
    if (!handle->is_shared) {
        TOL_CONTEXT_CU(context, cuMemUnmap,
                       (tol_pages_address(pages, handle->first), handle->pages * unit),
                       "allowing access to page %u", handle->first);
    }
    for (uint32_t i = 0; i < move->pages; i++) {
        if (move->to[i] == TOL_MESH_NOWHERE) continue;
        const struct tol_page_handle *target = &pages->handles[target_of(move, i)];
        for (uint32_t page = first_page(handle, i) + 1; page != 0;
             page = next_page(pages, handle, page - 1)) {
            CUdeviceptr at = tol_pages_address(pages, page - 1);
            if (handle->is_shared)
                TOL_CONTEXT_CU(context, cuMemUnmap, (at, unit), "unmapping a page");
            TOL_CONTEXT_CU(context, cuMemMap, (at, unit, 0, target->memory, 0), "mapping a page");
            m->mapped[count++] = page - 1;
            TOL_CONTEXT_CU(context, cuMemSetAccess, (at, unit, &pages->access, 1),
                           "allowing access to a page");
        }
    }
out:
    if (status != TOL_OK) {
        unmap_pages(pages, m->mapped, count);
        mesh_move_put_back(pages, handle);
    }
    return status;
}

/* Adds a page to those that share a handle. */
static void mesh_move_share(struct tol_pages *pages, struct tol_page_handle *target,
                            uint32_t page) {
    if (!target->is_shared) {
        target->is_shared = true;
        pages->shares[target->first] = (struct tol_page_share){0};
        pages->shared_count++;
    }
    pages->shares[page].next = pages->shares[target->first].next;
    pages->shares[target->first].next = page + 1;
}

/* From here on nothing can fail: the tables record what the driver has done. */
static void note_move(struct tol_mesher *m, const struct tol_mesh_move *move) {
    struct tol_pages *pages = &m->pool->pages;
    struct tol_page_handle *handle = &pages->handles[move->handle];
    for (uint32_t i = 0; i < move->pages; i++) {
        uint32_t page = first_page(handle, i) + 1, next = 0;
        if (move->to[i] == TOL_MESH_NOWHERE) {
            pages->table[page - 1] = 0;
            continue;
        }
        struct tol_page_handle *target = &pages->handles[target_of(move, i)];
        target->blocks += move->blocks[i];
        if (move->to[i] == TOL_MESH_NEW) {
            pages->context->functions->cuMemUnmap(m->scratch + i * pages->page_bytes,
                                                  pages->page_bytes);
            target->first = page - 1;
            pages->table[page - 1] = target_of(move, i) + 1;
            continue;
        }
        for (; page != 0; page = next) {
            next = next_page(pages, handle, page - 1);
            if (!handle->is_shared) pages->shares[page - 1] = (struct tol_page_share){0};
            mesh_move_share(pages, target, page - 1);
            pages->table[page - 1] = target_of(move, i) + 1;
        }
    }
    if (handle->is_shared) pages->shared_count--;
}

/* The bytes that were copied away may still be secret. */
static void mesh_move_wipe(struct tol_mesher *m, const struct tol_page_handle *handle) {
    struct tol_pages *pages = &m->pool->pages;
    const struct tol_driver_table *driver = pages->context->functions;
    const uint64_t bytes = handle->pages * pages->page_bytes;
    if (driver->cuMemMap(m->scratch, bytes, 0, handle->memory, 0) != CUDA_SUCCESS) return;
    if (driver->cuMemSetAccess(m->scratch, bytes, &pages->access, 1) == CUDA_SUCCESS &&
        driver->cuMemsetD8Async(m->scratch, 0, bytes, NULL) == CUDA_SUCCESS) {
        (void)tol_deadline_wait_legacy(pages->context);
    }
    driver->cuMemUnmap(m->scratch, bytes);
}

enum tol_mesh_result tol_mesh_move(void *user, struct tol_mesh_move *move) {
    struct tol_mesher *m = user;
    struct tol_pages *pages = &m->pool->pages;
    tol_status status = fill_targets(m, move);
    if (status == TOL_OK) {
        status = mesh_move_remap(m, move);
        if (status != TOL_OK) mesh_move_unmake(m, move, move->pages);
    }
    if (status == TOL_OUT_OF_DEVICE_MEMORY) return TOL_MESH_SKIPPED;
    if (status != TOL_OK) return TOL_MESH_STOP;
    note_move(m, move);
    struct tol_page_handle *handle = &pages->handles[move->handle];
    if (m->pool->options.wipe) mesh_move_wipe(m, handle);
    pages->context->functions->cuMemRelease(handle->memory);
    pages->releases++;
    pages->mapped -= handle->pages * pages->page_bytes;
    tol_pages_drop_handle(pages, handle);
    m->pool->meshed++;
    return TOL_MESH_DONE;
}
