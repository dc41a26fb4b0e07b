/*
 * Preparing: a thread of the pool that maps memory before it is needed, and gives it back, so that
 * callers rarely wait for page tables.
 *
 * It works on one handle at a time. Under the pool's lock it plans: it takes the handle's addresses
 * out of the holes (a blocked span) and its record out of the page table, so nobody else knows of
 * them. Without the lock it calls the driver. Under the lock again it hands the addresses back.
 * held counts the handle all the time.
 *
 * The thread starts when a pool first grows beyond its first handles and sleeps unless an
 * allocation wakes it; so a pool that does not change is not touched.
 * The caller of all functions holds the pool's lock, which is released while they wait.
 */
#ifndef TOLLENS_PREPARE_H
#define TOLLENS_PREPARE_H

#include "pool_state.h"

/* Ends the thread, after the handle in hand. The one function that needs no lock held. */
void tol_prepare_close(struct tol_pool *pool);

/* Wakes the thread if less than half of what is to be mapped ahead is. */
void tol_prepare_note(struct tol_pool *pool);

/* Leaves trimming to the thread. false: it has none, or too much is held to wait for it. */
bool tol_prepare_trims(struct tol_pool *pool);

/* Whether a handle is about to be mapped ahead; and waits until it is, for 1 ms at most, with the
 * pool's lock released. false: it is not mapped yet. */
bool tol_prepare_is_near(const struct tol_pool *pool);
bool tol_prepare_await(struct tol_pool *pool);

/* Takes back what the thread was asked for and waits until it has no handle in hand. */
void tol_prepare_settle(struct tol_pool *pool);

/* The hole at the end of the addresses that the pool uses, from which it grows; NULL: none. */
struct tol_span *tol_prepare_frontier(const struct tol_pool *pool);

#endif
