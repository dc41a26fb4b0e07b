// An event is a point in a stream, not a place to queue work.
// refused: incompatible
#include "tollens.h"

tol_status fill_on_event(struct tol_event *event, struct tol_buffer *buffer);
tol_status fill_on_event(struct tol_event *event, struct tol_buffer *buffer) {
    return tol_copy_fill(event, buffer, 0, 0, 1, 1);
}
