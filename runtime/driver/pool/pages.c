/*
 * Reserving, mapping in runs, and giving back.
 */
#include "pages.h"

#include "core/deep.h"

#include <stdlib.h>

tol_status tol_pages_open(struct tol_pages *pages, struct tol_context *context, uint64_t bytes,
                          uint64_t page_bytes, uint32_t step) {
    tol_status status = TOL_OK;
    *pages = (struct tol_pages){.context = context, .page_bytes = page_bytes, .step = step};
    pages->prop =
        (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE,
                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, context->device_handle}};
    pages->access = (CUmemAccessDesc){.location = pages->prop.location,
                                      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    pages->page_count = (size_t)((bytes + page_bytes - 1) / page_bytes);
    TOL_CHECK(pages->page_count < UINT32_MAX, TOL_INVALID_ARGUMENT,
              "%zu pages of %llu bytes are too many for the page table", pages->page_count,
              (unsigned long long)page_bytes);
    pages->table = calloc(pages->page_count, sizeof *pages->table);
    TOL_CHECK(pages->table != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a table of %zu pages", pages->page_count);
    uint64_t reserve = pages->page_count * page_bytes;
    TOL_CONTEXT_CU(context, cuMemAddressReserve, (&pages->begin, reserve, page_bytes, 0, 0),
                   "reserving %llu bytes of addresses", (unsigned long long)reserve);
    pages->bytes = reserve;
out:
    if (status != TOL_OK) {
        free(pages->table);
        pages->table = NULL;
    }
    return status;
}

/* Each page that shares a handle has a separate mapping. false: nothing was unmapped. If the driver
 * fails to unmap one of the others twice, that one stays mapped for good. */
static bool pages_unmap(struct tol_pages *pages, const struct tol_page_handle *handle) {
    const struct tol_driver_table *driver = pages->context->functions;
    if (!handle->is_shared) {
        return driver->cuMemUnmap(tol_pages_address(pages, handle->first),
                                  handle->pages * pages->page_bytes) == CUDA_SUCCESS;
    }
    unsigned done = 0;
    for (uint32_t page = handle->first + 1; page != 0; page = pages->shares[page - 1].next) {
        const CUdeviceptr address = tol_pages_address(pages, page - 1);
        bool is_gone = driver->cuMemUnmap(address, pages->page_bytes) == CUDA_SUCCESS;
        if (!is_gone && done == 0) return false;
        if (!is_gone) driver->cuMemUnmap(address, pages->page_bytes);
        done++;
    }
    return true;
}

void tol_pages_close(struct tol_pages *pages) {
    if (pages->context == NULL) return;
    const struct tol_driver_table *driver = pages->context->functions;
    for (size_t i = 0; i < pages->handle_count; i++) {
        struct tol_page_handle *handle = &pages->handles[i];
        if (handle->pages == 0) continue;
        (void)pages_unmap(pages, handle);
        driver->cuMemRelease(handle->memory);
    }
    if (pages->bytes > 0) driver->cuMemAddressFree(pages->begin, pages->bytes);
    free(pages->handles);
    free(pages->table);
    free(pages->shares);
    *pages = (struct tol_pages){0};
}

static uint32_t pages_page_of(const struct tol_pages *pages, uint64_t address) {
    return (uint32_t)((address - pages->begin) / pages->page_bytes);
}

/* The page after the last that begin to begin + bytes touches. */
static uint32_t page_after(const struct tol_pages *pages, uint64_t begin, uint64_t bytes) {
    return pages_page_of(pages, begin + bytes - 1) + 1;
}

struct tol_page_cost tol_pages_cost(const struct tol_pages *pages, uint64_t begin, uint64_t bytes) {
    struct tol_page_cost cost = {0};
    uint32_t end = page_after(pages, begin, bytes);
    for (uint32_t page = pages_page_of(pages, begin); page < end; page++) {
        uint32_t handle = pages->table[page];
        cost.unmapped += handle == 0 || pages->handles[handle - 1].is_closed;
        cost.idle += handle == 0 || pages->handles[handle - 1].blocks == 0;
    }
    return cost;
}

struct tol_page_handle *tol_pages_new_handle(struct tol_pages *pages) {
    if (pages->unused != 0) {
        struct tol_page_handle *handle = &pages->handles[pages->unused - 1];
        pages->unused = handle->first;
        return handle;
    }
    if (pages->handle_count == pages->handle_room) {
        size_t room = pages->handle_room > 0 ? 2 * pages->handle_room : 64;
        struct tol_page_handle *more = realloc(pages->handles, room * sizeof *more);
        if (more == NULL) return NULL;
        pages->handles = more;
        pages->handle_room = room;
    }
    return &pages->handles[pages->handle_count++];
}

void tol_pages_drop_handle(struct tol_pages *pages, struct tol_page_handle *handle) {
    *handle = (struct tol_page_handle){.first = pages->unused};
    pages->unused = (uint32_t)(handle - pages->handles) + 1;
}

static void set_table(struct tol_pages *pages, const struct tol_page_handle *handle,
                      uint32_t value) {
    for (uint32_t i = 0; i < handle->pages; i++) pages->table[handle->first + i] = value;
}

/* Undoes a mapping. false: the driver failed, so it is still mapped, and nothing else can be mapped
 * there. */
static bool take_handle(struct tol_pages *pages, struct tol_page_handle *handle) {
    assert(handle->blocks == 0 && !handle->is_shared && tol_page_is_valid(pages, handle->first));
    if (!pages_unmap(pages, handle)) return false;
    pages->idle_count--;
    pages->mapped -= handle->pages * pages->page_bytes;
    set_table(pages, handle, 0);
    tol_pages_drop_handle(pages, handle);
    TOL_DEEP_ASSERT(tol_pages_is_valid(pages));
    return true;
}

static bool release_handle(struct tol_pages *pages, struct tol_page_handle *handle) {
    const CUmemGenericAllocationHandle memory = handle->memory;
    if (!take_handle(pages, handle)) return false;
    pages->context->functions->cuMemRelease(memory);
    pages->releases++;
    return true;
}

bool tol_pages_take(struct tol_pages *pages, struct tol_page_handle *handle) {
    if (!take_handle(pages, handle)) return false;
    pages->moves++;
    return true;
}

static void note_handle(struct tol_pages *pages, struct tol_page_handle *handle) {
    set_table(pages, handle, (uint32_t)(handle - pages->handles) + 1);
    if (handle->first + handle->pages > pages->top) pages->top = handle->first + handle->pages;
    pages->idle_count++;
    pages->mapped += handle->pages * pages->page_bytes;
    assert(tol_page_is_valid(pages, handle->first) &&
           tol_page_is_valid(pages, handle->first + handle->pages - 1));
    TOL_DEEP_ASSERT(tol_pages_is_valid(pages));
}

/* Without counting it. */
static tol_status put_handle(struct tol_pages *pages, uint32_t first, uint32_t count,
                             CUmemGenericAllocationHandle memory) {
    tol_status status = TOL_OK;
    const uint64_t bytes = count * pages->page_bytes;
    struct tol_page_handle *handle = tol_pages_new_handle(pages);
    TOL_CHECK(handle != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a record of a handle");
    *handle = (struct tol_page_handle){.first = first};
    TOL_CONTEXT_CU(pages->context, cuMemMap, (tol_pages_address(pages, first), bytes, 0, memory, 0),
                   "mapping %llu bytes at page %u", (unsigned long long)bytes, first);
    *handle = (struct tol_page_handle){
        .memory = memory, .first = first, .pages = count, .is_closed = true};
    note_handle(pages, handle);
    return TOL_OK;
out:
    if (handle != NULL) tol_pages_drop_handle(pages, handle);
    return status;
}

tol_status tol_pages_put(struct tol_pages *pages, uint32_t first, uint32_t count,
                         CUmemGenericAllocationHandle memory) {
    const tol_status status = put_handle(pages, first, count, memory);
    pages->moves += status == TOL_OK;
    return status;
}

tol_status tol_pages_allow(struct tol_pages *pages, uint32_t first, uint32_t end) {
    tol_status status = TOL_OK;
    TOL_CONTEXT_CU(
        pages->context, cuMemSetAccess,
        (tol_pages_address(pages, first), (end - first) * pages->page_bytes, &pages->access, 1),
        "allowing access to pages %u to %u", first, end);
    pages->opens++;
    for (uint32_t page = first; page < end;) {
        struct tol_page_handle *handle = &pages->handles[pages->table[page] - 1];
        handle->is_closed = false;
        page = handle->first + handle->pages;
    }
out:
    return status;
}

static tol_status map_handle(struct tol_pages *pages, uint32_t first, uint32_t count) {
    tol_status status = TOL_OK;
    const uint64_t bytes = count * pages->page_bytes;
    CUmemGenericAllocationHandle memory = 0;
    TOL_CONTEXT_CU(pages->context, cuMemCreate, (&memory, bytes, &pages->prop, 0),
                   "creating a handle of %llu bytes", (unsigned long long)bytes);
    status = put_handle(pages, first, count, memory);
    if (status != TOL_OK) {
        pages->context->functions->cuMemRelease(memory);
        goto out;
    }
    pages->creates++;
out:
    return status;
}

/* Whether count pages from first on have no memory and are before limit. */
static bool pages_is_empty(const struct tol_pages *pages, uint64_t first, uint32_t count,
                           uint64_t limit) {
    if (first + count > limit) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (pages->table[first + i] != 0) return false;
    }
    return true;
}

/* The number of pages of the handle for the first of some pages without memory, for a block that
 * ends at an address: those that the block alone uses. */
static uint32_t pages_join(const struct tol_pages *pages, uint32_t first, uint64_t block_end,
                           uint32_t most) {
    const uint32_t after = pages_page_of(pages, block_end);
    uint32_t count = 1;
    while (count < most && first + count < after && pages->table[first + count] == 0) count++;
    return count;
}

/* The pages without memory from the first one on, up to end. */
static uint32_t gap_from(const struct tol_pages *pages, uint32_t first, uint32_t end) {
    uint32_t count = 0;
    while (first + count < end && pages->table[first + count] == 0) count++;
    return count;
}

/* The pages of the handle that a page without memory would get. */
static void next_handle(const struct tol_pages *pages, uint32_t page, uint32_t step,
                        uint32_t *first, uint32_t *count) {
    uint32_t begin = page - page % step;
    bool whole = pages_is_empty(pages, begin, step, pages->page_count);
    *first = whole ? begin : page;
    *count = whole ? step : 1;
}

uint64_t tol_pages_missing(const struct tol_pages *pages, uint64_t begin, uint64_t bytes,
                           uint32_t step) {
    const uint32_t end = page_after(pages, begin, bytes);
    uint64_t missing = 0;
    for (uint32_t page = pages_page_of(pages, begin), first = 0, count = 0; page < end;) {
        if (pages->table[page] != 0) {
            page++;
            continue;
        }
        next_handle(pages, page, step, &first, &count);
        missing += count;
        page = first + count;
    }
    return missing * pages->page_bytes;
}

tol_status tol_pages_map(struct tol_pages *pages, uint64_t begin, uint64_t bytes,
                         const struct tol_page_growth *growth) {
    tol_status status = TOL_OK;
    const uint32_t end = page_after(pages, begin, bytes);
    const uint64_t limit = (growth->limit - pages->begin) / pages->page_bytes;
    uint32_t page = pages_page_of(pages, begin);
    uint32_t made_first = 0, made_end = 0; /* the run of pages to be opened */
    while (page < end) {
        if (pages->table[page] != 0) {
            const struct tol_page_handle *handle = &pages->handles[pages->table[page] - 1];
            if (handle->is_closed) {
                TOL_TRY(tol_pages_allow(pages, handle->first, handle->first + handle->pages));
            }
            page++;
            continue;
        }
        made_first = made_end = page;
        while (made_end < end && pages->table[made_end] == 0) {
            uint32_t first = made_end, count = growth->run;
            const uint32_t gap = gap_from(pages, made_end, end);
            if (count > 0 && count < gap && gap <= growth->joined) count = gap;
            if (count <= growth->step || !pages_is_empty(pages, first, count, limit)) {
                next_handle(pages, made_end, growth->step, &first, &count);
                if (count == 1) count = pages_join(pages, first, begin + bytes, growth->joined);
            }
            TOL_TRY(map_handle(pages, first, count));
            if (first < made_first) made_first = first;
            made_end = first + count;
        }
        TOL_TRY(tol_pages_allow(pages, made_first, made_end));
        page = made_end;
        made_first = made_end = 0;
    }
out:
    /* Memory that was mapped and opened before stays, as usable memory. Memory that the driver does
     * not unmap stays closed. */
    while (status != TOL_OK && made_first < made_end) {
        struct tol_page_handle *handle = &pages->handles[pages->table[made_first] - 1];
        made_first += handle->pages;
        (void)release_handle(pages, handle);
    }
    return status;
}

/* Adds to the blocks of each handle that a block touches. */
static void pages_count_block(struct tol_pages *pages, uint64_t begin, uint64_t bytes,
                              uint32_t change) {
    uint32_t end = page_after(pages, begin, bytes);
    for (uint32_t page = pages_page_of(pages, begin); page < end; page++) {
        assert(pages->table[page] != 0);
        TOL_QUICK_ASSERT(tol_page_is_valid(pages, page));
        struct tol_page_handle *handle = &pages->handles[pages->table[page] - 1];
        assert(change == 1 || handle->blocks > 0);
        pages->idle_count -= handle->blocks == 0;
        handle->blocks += change;
        pages->idle_count += handle->blocks == 0;
    }
    TOL_DEEP_ASSERT(tol_pages_is_valid(pages));
}

void tol_pages_enter(struct tol_pages *pages, uint64_t begin, uint64_t bytes) {
    pages_count_block(pages, begin, bytes, 1);
}

void tol_pages_leave(struct tol_pages *pages, uint64_t begin, uint64_t bytes) {
    pages_count_block(pages, begin, bytes, (uint32_t)-1);
}

struct tol_page_gap tol_pages_between(const struct tol_pages *pages, uint64_t begin, uint64_t end) {
    if (end <= begin) return (struct tol_page_gap){0};
    uint32_t first = (uint32_t)((begin - pages->begin + pages->page_bytes - 1) / pages->page_bytes);
    uint32_t after = pages_page_of(pages, end);
    if (after > pages->top) after = pages->top;
    return (struct tol_page_gap){first, after > first ? after - first : 0};
}

size_t tol_pages_gaps(const struct tol_pages *pages, uint64_t begin, uint64_t bytes,
                      struct tol_page_gap *gaps, size_t room) {
    const uint32_t end = page_after(pages, begin, bytes);
    size_t count = 0;
    for (uint32_t page = pages_page_of(pages, begin), first = 0; page < end; page++) {
        if (pages->table[page] != 0) continue;
        for (first = page; page < end && pages->table[page] == 0;) page++;
        if (count < room) gaps[count] = (struct tol_page_gap){first, page - first};
        count++;
    }
    return count;
}

uint64_t tol_pages_release(struct tol_pages *pages, uint64_t begin, uint64_t end, uint64_t want) {
    uint64_t released = 0;
    const struct tol_page_gap range = tol_pages_between(pages, begin, end);
    const uint32_t first = range.first, after = range.first + range.pages;
    /* From the end, so that a range in use stays dense at its beginning. */
    for (uint32_t page = after; page > first && released < want;) {
        uint32_t place = pages->table[--page];
        if (place == 0) continue;
        struct tol_page_handle *handle = &pages->handles[place - 1];
        page = handle->first;
        if (handle->blocks > 0 || handle->first < first || handle->first + handle->pages > after) {
            continue;
        }
        const uint64_t bytes = handle->pages * pages->page_bytes;
        if (release_handle(pages, handle)) released += bytes;
    }
    return released;
}

uint64_t tol_pages_mapped(const struct tol_pages *pages, uint64_t begin, uint64_t end_at) {
    uint64_t mapped = 0;
    for (uint64_t page = (begin - pages->begin) / pages->page_bytes; page < pages->top; page++) {
        uint64_t from = pages->begin + page * pages->page_bytes, to = from + pages->page_bytes;
        if (from >= end_at) break;
        if (pages->table[page] == 0) continue;
        mapped += (to < end_at ? to : end_at) - (from > begin ? from : begin);
    }
    return mapped;
}
