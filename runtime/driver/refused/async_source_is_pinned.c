// An asynchronous copy takes no plain pointer: the source would have to stay valid until the copy
// is done.
// refused: incompatible
#include "tollens.h"

tol_status copy_from_stack(struct tol_stream *stream, struct tol_buffer *to);
tol_status copy_from_stack(struct tol_stream *stream, struct tol_buffer *to) {
    char source[4] = {0};
    return tol_copy_to_device(stream, to, 0, source, 0, sizeof source);
}
