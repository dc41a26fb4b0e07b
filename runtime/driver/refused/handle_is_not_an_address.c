// A handle to video memory is not its address: a launch does not take it for one.
// refused: incompatible
#include "tollens.h"

tol_status pass_a_handle(struct tol_vram_context *vram, struct tol_vram memory);
tol_status pass_a_handle(struct tol_vram_context *vram, struct tol_vram memory) {
    CUdeviceptr address = memory;
    return tol_vram_write_at(vram, memory, 0, &address, sizeof address);
}
