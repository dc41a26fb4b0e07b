// A kernel is launched once it is resolved; a name is not a kernel.
// refused: incompatible
#include "tollens.h"

tol_status launch_by_name(struct tol_stream *stream);
tol_status launch_by_name(struct tol_stream *stream) {
    return tol_launch(stream, "fill", tol_launch_linear(1, 1), TOL_NO_ARGUMENTS);
}
