/*
 * Pages of bits, and the marks of operations.
 */
#include "touch.h"

#include "space.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_SHIFT = 12, PAGE_BYTES = 1 << PAGE_SHIFT, WORDS = PAGE_BYTES / 64, BUCKETS = 4096 };

/* A page of one allocation: two small ones may share a page of addresses. */
struct page {
    uint64_t number, base, serial;
    uint64_t *bits[SOFT_TOUCHES]; /* NULL: no byte was touched so */
    struct soft_deed *deed;       /* whose mark it is */
    struct page *next;
};

/* Most operations touch few pages: the table begins small, and grows so that it has at least one
 * bucket per page. */
enum { FEW_BUCKETS = 16 };

struct soft_touched {
    pthread_mutex_t lock;
    bool told_host, asked_host;
    struct page *last; /* the page touched last: the next access is probably there too */
    size_t count, buckets;
    struct page **pages; /* few, or memory of its own */
    struct page *few[FEW_BUCKETS];
};

static struct {
    struct page *pages[BUCKETS];
    size_t count, swept; /* the number of marks, and of those left by the latest sweep */
} marks;

static size_t touch_hash_of(uint64_t number) {
    return (size_t)(number * 0x9e3779b97f4a7c15u >> 32);
}

static size_t touch_bucket_of(uint64_t number) {
    return touch_hash_of(number) % BUCKETS;
}

static void free_page(struct page *page) {
    for (int t = 0; t < SOFT_TOUCHES; t++) free(page->bits[t]);
    free(page);
}

struct soft_touched *soft_touched_new(void) {
    struct soft_touched *touched = calloc(1, sizeof *touched);
    if (touched == NULL) return NULL;
    pthread_mutex_init(&touched->lock, NULL);
    touched->pages = touched->few;
    touched->buckets = FEW_BUCKETS;
    return touched;
}

void soft_touched_free(struct soft_touched *touched) {
    if (touched == NULL) return;
    for (size_t b = 0; b < touched->buckets; b++) {
        while (touched->pages[b] != NULL) {
            struct page *page = touched->pages[b];
            touched->pages[b] = page->next;
            free_page(page);
        }
    }
    pthread_mutex_destroy(&touched->lock);
    if (touched->pages != touched->few) free(touched->pages);
    free(touched);
}

/* Eight times the buckets; without memory for them the lists just grow longer. */
static void widen_table(struct soft_touched *touched) {
    size_t buckets = touched->buckets * 8;
    struct page **pages = calloc(buckets, sizeof *pages);
    if (pages == NULL) return;
    for (size_t b = 0; b < touched->buckets; b++) {
        while (touched->pages[b] != NULL) {
            struct page *page = touched->pages[b],
                        **to = &pages[touch_hash_of(page->number) % buckets];
            touched->pages[b] = page->next;
            page->next = *to;
            *to = page;
        }
    }
    if (touched->pages != touched->few) free(touched->pages);
    touched->pages = pages;
    touched->buckets = buckets;
}

/* The page of an address in an allocation; NULL without memory: less is found. */
static struct page *touch_page_of(struct soft_touched *touched, uint64_t number, uint64_t base) {
    struct page *page = touched->last;
    if (page != NULL && page->number == number && page->base == base) return page;
    struct page **bucket = &touched->pages[touch_hash_of(number) % touched->buckets];
    for (page = *bucket; page != NULL; page = page->next) {
        if (page->number == number && page->base == base) break;
    }
    if (page == NULL) {
        page = calloc(1, sizeof *page);
        if (page == NULL) return NULL;
        if (touched->count++ >= touched->buckets) widen_table(touched);
        bucket = &touched->pages[touch_hash_of(number) % touched->buckets];
        page->number = number;
        page->base = base;
        page->next = *bucket;
        *bucket = page;
    }
    return touched->last = page;
}

/* The bits from one to an end within one word; they are counted. */
static uint64_t mask_of(unsigned from, unsigned end, unsigned *count) {
    unsigned at = from % 64;
    *count = end - from < 64 - at ? end - from : 64 - at;
    return *count == 64 ? UINT64_MAX : ((1ull << *count) - 1) << at;
}

static void set_bits(uint64_t *bits, unsigned from, unsigned count) {
    for (unsigned end = from + count, part = 0; from < end; from += part) {
        bits[from / 64] |= mask_of(from, end, &part);
    }
}

static bool has_bits(const uint64_t *bits, unsigned from, unsigned count) {
    for (unsigned end = from + count, part = 0; from < end; from += part) {
        if ((bits[from / 64] & mask_of(from, end, &part)) != 0) return true;
    }
    return false;
}

void soft_touched_add(struct soft_touched *touched, enum soft_touch touch, uint64_t base,
                      uint64_t address, uint64_t bytes) {
    bool of_host = !soft_space_holds(address, 1);
    bool writes = touch == SOFT_TOUCH_WRITE || touch == SOFT_TOUCH_STRONG_WRITE;
    pthread_mutex_lock(&touched->lock);
    touched->told_host |= of_host && writes;
    touched->asked_host |= of_host && touch == SOFT_TOUCH_STRONG_READ;
    while (bytes > 0) {
        unsigned offset = (unsigned)(address % PAGE_BYTES), room = PAGE_BYTES - offset;
        unsigned part = bytes < room ? (unsigned)bytes : room;
        struct page *page = touch_page_of(touched, address >> PAGE_SHIFT, base);
        if (page == NULL) break;
        if (page->bits[touch] == NULL) page->bits[touch] = calloc(WORDS, sizeof(uint64_t));
        if (page->bits[touch] != NULL) set_bits(page->bits[touch], offset, part);
        address += part;
        bytes -= part;
    }
    pthread_mutex_unlock(&touched->lock);
}

bool soft_touched_has(const struct soft_touched *touched, enum soft_touch touch, uint64_t base,
                      uint64_t address, uint64_t bytes) {
    for (uint64_t at = address, end = address + bytes; at < end;) {
        uint64_t number = at >> PAGE_SHIFT, stop = (number + 1) << PAGE_SHIFT;
        const struct page *page = touched->pages[touch_hash_of(number) % touched->buckets];
        while (page != NULL && (page->number != number || page->base != base)) page = page->next;
        if (stop > end) stop = end;
        if (page != NULL && page->bits[touch] != NULL &&
            has_bits(page->bits[touch], (unsigned)(at % PAGE_BYTES), (unsigned)(stop - at))) {
            return true;
        }
        at = stop;
    }
    return false;
}

bool soft_touched_told_host(struct soft_touched *touched) {
    pthread_mutex_lock(&touched->lock);
    bool told = touched->told_host;
    pthread_mutex_unlock(&touched->lock);
    return told;
}

bool soft_touched_asked_host(struct soft_touched *touched) {
    pthread_mutex_lock(&touched->lock);
    bool asked = touched->asked_host;
    pthread_mutex_unlock(&touched->lock);
    return asked;
}

static uint64_t touch_word(const struct page *page, enum soft_touch touch, int w) {
    return page->bits[touch] != NULL ? page->bits[touch][w] : 0;
}

static bool is_touched(const struct page *page, bool is_write, unsigned offset) {
    const uint64_t bits = is_write ? touch_word(page, SOFT_TOUCH_WRITE, (int)offset / 64) |
                                         touch_word(page, SOFT_TOUCH_STRONG_WRITE, (int)offset / 64)
                                   : touch_word(page, SOFT_TOUCH_READ, (int)offset / 64) |
                                         touch_word(page, SOFT_TOUCH_STRONG_READ, (int)offset / 64);
    return (bits >> offset % 64 & 1) != 0;
}

void soft_touched_each(const struct soft_touched *touched,
                       void (*visit)(uint64_t address, uint64_t bytes, bool is_write, void *data),
                       void *data) {
    for (size_t b = 0; b < touched->buckets; b++) {
        for (const struct page *page = touched->pages[b]; page != NULL; page = page->next) {
            for (unsigned i = 0; i < 2 * PAGE_BYTES;) {
                const bool is_write = i >= PAGE_BYTES;
                const unsigned begin = i % PAGE_BYTES;
                unsigned end = begin;
                while (end < PAGE_BYTES && is_touched(page, is_write, end)) end++;
                if (end > begin) {
                    visit((page->number << PAGE_SHIFT) + begin, end - begin, is_write, data);
                }
                i += end > begin ? end - begin : 1;
            }
        }
    }
}

/* ---- conflicts ---- */

static void touch_widen(struct soft_conflict *found, uint64_t address, uint64_t bits, bool wrote,
                        bool writes) {
    if (bits == 0) return;
    uint64_t low = address + (unsigned)__builtin_ctzll(bits);
    uint64_t high = address + 63 - (unsigned)__builtin_clzll(bits);
    if (found->high == 0 || low < found->low) found->low = low;
    if (high > found->high) found->high = high;
    found->wrote |= wrote;
    found->writes |= writes;
}

static void touch_compare(const struct page *old, const struct page *new,
                          struct soft_conflict *found) {
    for (int w = 0; w < WORDS; w++) {
        uint64_t old_read = touch_word(old, SOFT_TOUCH_READ, w),
                 old_write = touch_word(old, SOFT_TOUCH_WRITE, w);
        uint64_t old_strong_read = touch_word(old, SOFT_TOUCH_STRONG_READ, w);
        uint64_t old_strong_write = touch_word(old, SOFT_TOUCH_STRONG_WRITE, w);
        uint64_t read = touch_word(new, SOFT_TOUCH_READ, w),
                 write = touch_word(new, SOFT_TOUCH_WRITE, w);
        uint64_t strong_read = touch_word(new, SOFT_TOUCH_STRONG_READ, w);
        uint64_t strong_write = touch_word(new, SOFT_TOUCH_STRONG_WRITE, w);
        uint64_t address = (new->number << PAGE_SHIFT) + (unsigned)w * 64u;
        touch_widen(found, address,
                    (write & (old_write | old_strong_write)) | (strong_write & old_write), true,
                    true);
        touch_widen(found, address,
                    (write & (old_read | old_strong_read)) | (strong_write & old_read), false,
                    true);
        touch_widen(found, address,
                    (read & (old_write | old_strong_write)) | (strong_read & old_write), true,
                    false);
    }
}

/* Removes from an older mark what a newer, later ordered operation covers. true: nothing is left of
 * it. */
static bool touch_prune(struct page *old, const struct page *new) {
    uint64_t left = 0;
    for (int w = 0; w < WORDS; w++) {
        uint64_t write = touch_word(new, SOFT_TOUCH_WRITE, w),
                 read = write | touch_word(new, SOFT_TOUCH_READ, w);
        for (int t = 0; t < SOFT_TOUCHES; t++) {
            bool reads = t == SOFT_TOUCH_READ || t == SOFT_TOUCH_STRONG_READ;
            if (old->bits[t] != NULL) left |= old->bits[t][w] &= ~(reads ? read : write);
        }
    }
    return left == 0;
}

/* ---- marks ---- */

static void drop_mark(struct page **link, const struct soft_touch_order *order) {
    struct page *mark = *link;
    *link = mark->next;
    order->release(mark->deed);
    free_page(mark);
    marks.count--;
}

/* Removes the marks of freed allocations. */
static void touch_sweep(const struct soft_touch_order *order) {
    for (int b = 0; b < BUCKETS; b++) {
        for (struct page **link = &marks.pages[b]; *link != NULL;) {
            struct soft_allocation now;
            bool lives = soft_space_find((*link)->base, &now) && now.serial == (*link)->serial;
            if (lives) {
                link = &(*link)->next;
            } else {
                drop_mark(link, order);
            }
        }
    }
    marks.swept = marks.count;
}

void soft_touched_forget(const struct soft_touch_order *order) {
    for (int b = 0; b < BUCKETS; b++) {
        while (marks.pages[b] != NULL) drop_mark(&marks.pages[b], order);
    }
}

/* The conflicts found so far: one per earlier operation and allocation. */
struct findings {
    struct soft_conflict items[16];
    unsigned count;
};

static void add_finding(struct findings *findings, const struct soft_conflict *found) {
    for (unsigned i = 0; i < findings->count; i++) {
        struct soft_conflict *item = &findings->items[i];
        if (item->earlier != found->earlier || item->base != found->base) continue;
        if (found->low < item->low) item->low = found->low;
        if (found->high > item->high) item->high = found->high;
        item->wrote |= found->wrote;
        item->writes |= found->writes;
        return;
    }
    if (findings->count < 16) findings->items[findings->count++] = *found;
}

static void settle_page(struct page *page, const struct soft_allocation *allocation,
                        const struct soft_touch_order *order, void *self,
                        struct findings *findings) {
    struct page **link = &marks.pages[touch_bucket_of(page->number)];
    while (*link != NULL) {
        struct page *mark = *link;
        bool same = mark->number == page->number && mark->base == page->base;
        if (same && mark->serial != allocation->serial) {
            drop_mark(link, order);
            continue;
        }
        if (same && order->comes_before(mark->deed, self)) {
            if (touch_prune(mark, page)) {
                drop_mark(link, order);
                continue;
            }
        } else if (same) {
            struct soft_conflict found = {.earlier = mark->deed,
                                          .base = page->base,
                                          .bytes = allocation->bytes,
                                          .serial = allocation->serial};
            touch_compare(mark, page, &found);
            if (found.high != 0) add_finding(findings, &found);
        }
        link = &(*link)->next;
    }
    struct soft_deed *deed = order->hold(self);
    if (deed == NULL) {
        free_page(page);
        return;
    }
    page->serial = allocation->serial;
    page->deed = deed;
    page->next = *link;
    *link = page;
    marks.count++;
}

void soft_touched_settle(struct soft_touched *touched, const struct soft_touch_order *order,
                         void *self) {
    struct findings findings = {.count = 0};
    touched->last = NULL;
    touched->count = 0;
    for (size_t b = 0; b < touched->buckets; b++) {
        while (touched->pages[b] != NULL) {
            struct page *page = touched->pages[b];
            struct soft_allocation allocation;
            touched->pages[b] = page->next;
            bool lives =
                soft_space_find(page->base, &allocation) && allocation.address == page->base;
            if (lives) {
                settle_page(page, &allocation, order, self, &findings);
            } else {
                free_page(page);
            }
        }
    }
    for (unsigned i = 0; i < findings.count; i++) order->conflict(&findings.items[i], self);
    if (marks.count > 2 * marks.swept + 1024) touch_sweep(order);
}

void soft_touched_writers(uint64_t address, uint64_t bytes,
                          void (*visit)(const struct soft_deed *deed, void *data), void *data) {
    uint64_t number = address >> PAGE_SHIFT;
    unsigned from = (unsigned)(address % PAGE_BYTES);
    for (const struct page *mark = marks.pages[touch_bucket_of(number)]; mark != NULL;
         mark = mark->next) {
        if (mark->number != number) continue;
        uint64_t wrote = 0;
        for (unsigned i = from; i < from + bytes && i < PAGE_BYTES; i++) {
            uint64_t bits = touch_word(mark, SOFT_TOUCH_WRITE, (int)(i / 64)) |
                            touch_word(mark, SOFT_TOUCH_STRONG_WRITE, (int)(i / 64));
            wrote |= bits >> (i % 64) & 1;
        }
        if (wrote != 0) visit(mark->deed, data);
    }
}
