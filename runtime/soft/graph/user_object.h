/*
 * User objects: objects of the program that graphs keep alive.
 */
#ifndef SOFT_USER_OBJECT_H
#define SOFT_USER_OBJECT_H

#include "state/driver_state.h"

struct soft_user_object {
    unsigned references;
    CUhostFn destroy;
    void *data;
};

/* The number of references to one object in a graph. */
struct soft_held_object {
    struct soft_user_object *object;
    unsigned count;
    struct soft_held_object *next;
};

/* Releases references; the last one calls the object's destructor, on a separate thread because the
 * caller holds soft_lock. */
void soft_object_release(struct soft_user_object *object, unsigned count);

/* Makes a graph, given its list of objects, hold or release references. The caller holds
 * soft_lock. */
CUresult soft_object_hold(struct soft_held_object **objects, struct soft_user_object *object,
                          unsigned count);
CUresult soft_object_let_go(struct soft_held_object **objects, struct soft_user_object *object,
                            unsigned count);

/* What a copy of a graph holds as well, and what a graph releases when it is destroyed. */
CUresult soft_objects_copy(const struct soft_held_object *from, struct soft_held_object **to);
void soft_objects_free(struct soft_held_object **objects);

#endif
