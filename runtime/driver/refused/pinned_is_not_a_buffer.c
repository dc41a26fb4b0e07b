// Pinned host memory is for staging; it is not device memory.
// refused: incompatible
#include "tollens.h"

tol_status copy_from_pinned(struct tol_buffer *to, struct tol_pinned *from);
tol_status copy_from_pinned(struct tol_buffer *to, struct tol_pinned *from) {
    return tol_buffer_copy(to, 0, from, 0, 1);
}
