/*
 * Place check: what an operation checks of a place before it launches a kernel that uses it.
 * Internal to the operations: not installed. Pure; thread-safe.
 */
#ifndef KN_PLACE_CHECK_H
#define KN_PLACE_CHECK_H

#include "place.h"

/* TOL_INVALID_ARGUMENT: the place is NULL or not aligned. TOL_OUT_OF_RANGE: it is shorter than
 * bytes. name is used in the message. */
tol_status kn_place_check(const char *name, struct kn_place place, size_t bytes, size_t alignment);

/* The same for count rows of length elements, consecutive rows stride elements apart. */
tol_status kn_place_check_rows(const char *name, struct kn_place place, size_t count, size_t stride,
                               size_t length, size_t element_bytes, size_t alignment);

#endif
