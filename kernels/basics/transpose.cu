// transpose: out[x][y] = in[y][x], in of rows x columns, both row after row without gaps.
//
// The idea: a tile goes through shared memory, so that reads and writes of device memory are both
// contiguous; a column more than needed keeps the tile's columns in different banks.
// Owner: block (bx, by) owns the tile that begins at in[32 by][32 bx]; it has 32 x 8 threads, each
// of which carries four elements. Bound by memory: 8 bytes per element.
// Requires: blockDim = (32, 8, 1), gridDim = (columns / 32, rows / 32, 1), both rounded up.
enum { TILE = 32, ROWS_PER_PASS = 8 };

extern "C" __global__ void transpose(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE + 1];
    int column = blockIdx.x * TILE + threadIdx.x;
    for (int pass = 0; pass < TILE; pass += ROWS_PER_PASS) {
        int row = blockIdx.y * TILE + threadIdx.y + pass;
        if (row < rows && column < columns) {
            tile[threadIdx.y + pass][threadIdx.x] = in[(size_t)row * columns + column];
        }
    }
    __syncthreads(); // the tile is read in the other direction, by other warps
    int out_column = blockIdx.y * TILE + threadIdx.x;
    for (int pass = 0; pass < TILE; pass += ROWS_PER_PASS) {
        int out_row = blockIdx.x * TILE + threadIdx.y + pass;
        if (out_row < columns && out_column < rows) {
            out[(size_t)out_row * rows + out_column] = tile[threadIdx.x][threadIdx.y + pass];
        }
    }
}
