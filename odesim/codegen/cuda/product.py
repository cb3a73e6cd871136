"""Matrix products on a GPU: tiles in shared memory, with the sum of each element in order.

cuBLAS cannot be called from a kernel that leads itself, and its sums have no order that a processor could follow. The products here have
the bits of odesim.codegen.runtime.products.product in strict mode, tiled or not.
"""

PRODUCT = r"""
#ifndef ODESIM_SHARED
#define ODESIM_SHARED(R, name, n) __shared__ R name[n]
#endif

// out (rows, columns) = a (rows, depth) b (depth, columns), or out += a b where add is not 0; (i, k) of a at i * down + k * along,
// (k, j) of b at k * below + j * beside, (i, j) of out at i * over + j * next.
// A block of threads takes a tile at a time, each thread 4 x 4 of its elements; where tiles are few, a thread takes an element
template <class R> __device__ __noinline__ void odesim_product(odesim_team& team, R* out, const R* a, const R* b, long long over,
                                                               long long next, long long down, long long along, long long below,
                                                               long long beside, long long rows, long long depth, long long columns,
                                                               long long add) {
    ODESIM_SHARED(R, left, 16 * 65);
    ODESIM_SHARED(R, right, 16 * 65);
    const int across = blockDim.x >= 256 ? 16 : 8, tile = 4 * across, thread = threadIdx.x, threads = blockDim.x;
    const long long high = (rows + tile - 1) / tile, wide = (columns + tile - 1) / tile;
    if (4 * high * wide < team.blocks) {
        for (long long e = team.thread; e < rows * columns; e += team.threads) {
            const long long i = e / columns, j = e % columns;
            R sum = add ? out[i * over + j * next] : 0;
            for (long long k = 0; k < depth; ++k) sum = sum + a[i * down + k * along] * b[k * below + j * beside];
            out[i * over + j * next] = sum;
        }
        return;
    }
    const int x = thread % across, y = thread / across;
    for (long long place = team.block; place < high * wide; place += team.blocks) {
        const long long top = place / wide * tile, first = place % wide * tile;
        R sum[4][4] = {};
        for (int r = 0; r < 4 && add && y < across; ++r)
            for (int c = 0; c < 4; ++c) {
                const long long i = top + y + across * r, j = first + x + across * c;
                if (i < rows && j < columns) sum[r][c] = out[i * over + j * next];
            }
        for (long long done = 0; done < depth; done += 16) {
            const int deep = depth - done < 16 ? depth - done : 16;
            __syncthreads();  // what was there is used
            for (int e = thread; e < 16 * tile; e += threads) {  // neighbours in memory to neighbouring threads
                int k = along == 1 ? e % 16 : e / tile, i = along == 1 ? e / 16 : e % tile;
                if (k < deep && top + i < rows) left[65 * k + i] = a[(top + i) * down + (done + k) * along];
                k = below == 1 ? e % 16 : e / tile, i = below == 1 ? e / 16 : e % tile;
                if (k < deep && first + i < columns) right[65 * k + i] = b[(done + k) * below + (first + i) * beside];
            }
            __syncthreads();
            if (y < across)
                for (int k = 0; k < deep; ++k) {
                    R u[4], v[4];
                    for (int r = 0; r < 4; ++r) {
                        u[r] = left[65 * k + y + across * r];
                        v[r] = right[65 * k + x + across * r];
                    }
                    for (int r = 0; r < 4; ++r)
                        for (int c = 0; c < 4; ++c) sum[r][c] = sum[r][c] + u[r] * v[c];
                }
        }
        for (int r = 0; r < 4; ++r)
            for (int c = 0; c < 4; ++c) {
                const long long i = top + y + across * r, j = first + x + across * c;
                if (y < across && i < rows && j < columns) out[i * over + j * next] = sum[r][c];
            }
    }
}
""".strip("\n")
