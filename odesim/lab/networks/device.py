"""What a transformer does between its matrix products, one kernel each on a GPU, where a pass over memory costs more than its arithmetic.

numpy's functions of layers.py say what is computed; here are their sums in another order, the same one in every run: no sum depends on
who comes first.
"""

from functools import cache
from typing import Any

from odesim.base.arrays import Array, array_namespace

WARPS = 8  # of a block; a warp takes a row, but a row of logits, which may be long, has a block
CHUNK = 128  # rows that one thread adds up in a sum over rows

TEXT = r"""
__device__ real all_sum(real x) {  // of a warp, the same in each lane
    for (int w = 16; w > 0; w /= 2) x += __shfl_down_sync(0xffffffffu, x, w);
    return __shfl_sync(0xffffffffu, x, 0);
}
__device__ real all_max(real x) {
    for (int w = 16; w > 0; w /= 2) { const real y = __shfl_down_sync(0xffffffffu, x, w); x = y > x || y != y ? y : x; }
    return __shfl_sync(0xffffffffu, x, 0);
}
#define LANE (threadIdx.x & 31)
#define ROW ((long long)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32)

// y, slope: x Phi(x), Phi(x) + x phi(x)
extern "C" __global__ void gelu(const real* x, real* y, real* slope, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const real a = x[i], below = (real)0.5 * (real)erfc(-a * (real)0.70710678118654752), bell = (real)exp(-(real)0.5 * a * a);
    y[i] = a * below;
    slope[i] = below + (bell > 0 ? a * bell * (real)0.39894228040143268 : (real)0);  // not inf * 0
}

// normed rows (rows, d), 1 / standard deviation (rows,), y = normed * gain + shift of (rows / each, d)
extern "C" __global__ void layer_norm(const real* x, const real* gain, const real* shift, real* y, real* normed, real* scale,
                                      long long rows, long long each, long long d, double eps) {
    const long long row = ROW;
    if (row >= rows) return;
    const real* p = gain + row / each * d;
    const real* q = shift + row / each * d;
    x += row * d; y += row * d; normed += row * d;
    real sum = 0, squares = 0;
    for (long long k = LANE; k < d; k += 32) sum += x[k];
    const real mean = all_sum(sum) / (real)d;
    for (long long k = LANE; k < d; k += 32) squares += (x[k] - mean) * (x[k] - mean);
    const real by = (real)1 / (real)sqrt(all_sum(squares) / (real)d + (real)eps);
    for (long long k = LANE; k < d; k += 32) {
        const real u = (x[k] - mean) * by;
        normed[k] = u;
        y[k] = u * p[k] + q[k];
    }
    if (LANE == 0) scale[row] = by;
}

// dx = scale (g - mean g - normed mean(g normed)), g = dy * gain
extern "C" __global__ void layer_norm_back(const real* dy, const real* normed, const real* scale, const real* gain, real* dx,
                                           long long rows, long long each, long long d) {
    const long long row = ROW;
    if (row >= rows) return;
    const real* p = gain + row / each * d;
    dy += row * d; normed += row * d; dx += row * d;
    real sum = 0, along = 0;
    for (long long k = LANE; k < d; k += 32) {
        const real g = dy[k] * p[k];
        sum += g;
        along += g * normed[k];
    }
    const real mean = all_sum(sum) / (real)d, slope = all_sum(along) / (real)d, by = scale[row];
    for (long long k = LANE; k < d; k += 32) dx[k] = (dy[k] * p[k] - mean - normed[k] * slope) * by;
}

// sums (R, parts, d) over `chunk` rows each of a (R, rows, d), and of a * b where there is b
extern "C" __global__ void row_sums(const real* a, const real* b, real* sums, real* products, long long rows, long long d,
                                    long long chunk, long long parts) {
    const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x, place = blockIdx.y;
    if (k >= d) return;
    const long long first = place % parts * chunk, end = first + chunk < rows ? first + chunk : rows;
    const long long start = place / parts * rows * d + k;
    real sum = 0, product = 0;
    for (long long i = first; i < end; ++i) {
        const real x = a[start + i * d];
        sum += x;
        if (b) product += x * b[start + i * d];
    }
    sums[place * d + k] = sum;
    if (b) products[place * d + k] = product;
}

// rows of T logits at (sample, head, query): softmax(scale a + bias); 0 where every key is masked
extern "C" __global__ void softmax(real* a, const real* bias, long long rows, long long T, long long heads, long long queries,
                                   long long by_sample, long long by_query, long long by_key, double scale) {
    const long long row = ROW;
    if (row >= rows) return;
    a += row * T;
    const real* more = bias ? bias + row / (heads * queries) * by_sample + row % queries * by_query : nullptr;
    real top = -INFINITE, sum = 0;
    for (long long k = LANE; k < T; k += 32) {
        const real u = a[k] * (real)scale + (more ? more[k * by_key] : (real)0);
        a[k] = u;
        top = u > top || u != u ? u : top;
    }
    top = all_max(top);
    const real down = top > -INFINITE ? top : top != top ? top : (real)0;
    for (long long k = LANE; k < T; k += 32) {
        const real u = (real)exp(a[k] - down);
        a[k] = u;
        sum += u;
    }
    const real total = all_sum(sum), by = total > 0 ? (real)1 / total : total == 0 ? (real)1 : total;
    for (long long k = LANE; k < T; k += 32) a[k] *= by;
}

// ds (rows, T) by the weights a becomes the gradient by the logits before the scale
extern "C" __global__ void softmax_back(real* ds, const real* a, long long rows, long long T, double scale) {
    const long long row = ROW;
    if (row >= rows) return;
    ds += row * T; a += row * T;
    real sum = 0;
    for (long long k = LANE; k < T; k += 32) sum += ds[k] * a[k];
    const real mean = all_sum(sum);
    for (long long k = LANE; k < T; k += 32) ds[k] = (ds[k] - mean) * a[k] * (real)scale;
}

// a block a row z of C logits: loss log sum exp - z[target], and z becomes share (softmax - indicator)
extern "C" __global__ void cross_entropy(real* z, const long long* target, const real* share, real* loss, long long C) {
    SHARED(part, 32);
    const long long row = blockIdx.x;
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    z += row * C;
    real top = -INFINITE, sum = 0;
    for (long long k = threadIdx.x; k < C; k += blockDim.x) { const real u = z[k]; top = u > top || u != u ? u : top; }
    top = all_max(top);
    if (LANE == 0) part[warp] = top;
    __syncthreads();
    for (int w = 0; w < warps; ++w) { const real u = part[w]; top = u > top || u != u ? u : top; }
    const real at = z[target[row]] - top, by = share[row];
    __syncthreads();
    for (long long k = threadIdx.x; k < C; k += blockDim.x) {
        const real u = (real)exp(z[k] - top);
        z[k] = u;
        sum += u;
    }
    sum = all_sum(sum);
    if (LANE == 0) part[warp] = sum;
    __syncthreads();
    real total = 0;
    for (int w = 0; w < warps; ++w) total += part[w];
    for (long long k = threadIdx.x; k < C; k += blockDim.x) z[k] = z[k] * (by / total) - (k == target[row] ? by : (real)0);
    if (threadIdx.x == 0) loss[row] = (real)log(total) - at;
}

// a block a row of the table (rows, d): the sum of dy at order[starts[row]], ..., in this order
extern "C" __global__ void embed_back(const real* dy, const long long* order, const long long* starts, real* table, long long d) {
    const long long row = blockIdx.x;
    for (long long k = threadIdx.x; k < d; k += blockDim.x) {
        real sum = 0;
        for (long long j = starts[row]; j < starts[row + 1]; ++j) sum += dy[order[j] * d + k];
        table[row * d + k] = sum;
    }
}
""".strip("\n")

HEADS = {
    name: f"typedef {kind} real;\n#define INFINITE ((real)__longlong_as_double(0x7ff0000000000000LL))\n#ifndef SHARED\n"
    f"#define SHARED(name, n) __shared__ real name[n]\n#endif\n"
    for name, kind in (("float32", "float"), ("float64", "double"))
}


def is_fused(*arrays: Any) -> bool:
    """Whether these are arrays of a GPU whose kernels can be compiled."""
    return hasattr(array_namespace(*arrays), "RawModule")


@cache
def _module(dtype: str) -> Any:
    from odesim.base.device import cupy_here

    return cupy_here().RawModule(code=HEADS[dtype] + TEXT, options=("--std=c++17",))


@cache
def _kernel(name: str, dtype: str) -> Any:
    return _module(dtype).get_function(name)


def _run(name: str, like: Array, blocks: tuple[int, ...], threads: int, *arguments: Any) -> None:
    if all(blocks):
        _kernel(name, like.dtype.name)(blocks, (threads,), arguments)


def _rows(name: str, like: Array, rows: int, *arguments: Any) -> None:
    """A kernel with a warp a row."""
    _run(name, like, (-(-rows // WARPS),), 32 * WARPS, *arguments)


def gelu(x: Array) -> tuple[Array, Array]:
    """As layers.gelu."""
    xp = array_namespace(x)
    x, y, slope = xp.ascontiguousarray(x), xp.empty(x.shape, x.dtype), xp.empty(x.shape, x.dtype)
    _run("gelu", x, (-(-x.size // 256),), 256, x, y, slope, x.size)
    return y, slope


def layer_norm(x: Array, gain: Array, shift: Array, eps: float) -> tuple[Array, Array, Array]:
    """y, normed rows (R, N, d), and 1 / standard deviation (R, N, 1)."""
    xp, (R, N, d) = array_namespace(x), x.shape
    x, gain, shift = map(xp.ascontiguousarray, (x, gain, shift))
    y, normed, scale = xp.empty(x.shape, x.dtype), xp.empty(x.shape, x.dtype), xp.empty((R, N, 1), x.dtype)
    _rows("layer_norm", x, R * N, x, gain, shift, y, normed, scale, R * N, N, d, eps)
    return y, normed, scale


def layer_norm_back(dy: Array, normed: Array, scale: Array, gain: Array) -> tuple[Array, Array, Array]:
    """As layers.layer_norm_back."""
    xp, (R, N, d) = array_namespace(dy), dy.shape
    dy, gain = xp.ascontiguousarray(dy), xp.ascontiguousarray(gain)
    dx = xp.empty(dy.shape, dy.dtype)
    _rows("layer_norm_back", dy, R * N, dy, normed, scale, gain, dx, R * N, N, d)
    dshift, dgain = sum_rows(dy, normed)
    return dx, dgain, dshift


def sum_rows(a: Array, b: Array | None = None) -> tuple[Array, Array]:
    """The sums (R, d) of the rows of a (R, N, d), and those of a * b; without b the sums twice."""
    xp, (R, N, d) = array_namespace(a), a.shape
    a, parts = xp.ascontiguousarray(a), max(-(-N // CHUNK), 1)
    sums = xp.empty((R, parts, d), a.dtype)
    products = sums if b is None else xp.empty((R, parts, d), a.dtype)
    threads = min(256, -(-d // 32) * 32)
    _run("row_sums", a, (-(-d // threads), R * parts), threads, a, 0 if b is None else b, sums, products, N, d, CHUNK, parts)
    first = sums.sum(axis=1) if parts > 1 else sums[:, 0]
    return first, first if b is None else products.sum(axis=1) if parts > 1 else products[:, 0]


def softmax(a: Array, bias: Array | None, scale: float) -> None:
    """The rows of a (R, B, H, T, T) become softmax(scale * a + bias), bias as layers.key_bias has it."""
    xp, (R, B, H, Q, T) = array_namespace(a), a.shape
    strides = (0, 0, 0)  # from a sample, query, key to the next
    if bias is not None:
        bias = xp.ascontiguousarray(bias)
        key = 0 if bias.shape[-1] == 1 else 1
        query = 0 if bias.shape[-2] == 1 else bias.shape[-1]
        strides = (bias.shape[-1] * bias.shape[-2] if bias.ndim == 5 else 0, query, key)
    _rows("softmax", a, R * B * H * Q, a, 0 if bias is None else bias, R * B * H * Q, T, H, Q, *strides, scale)


def softmax_back(ds: Array, a: Array, scale: float) -> None:
    """ds (R, B, H, T, T), the gradient by the weights a, becomes that by the logits before the scale."""
    rows, T = a.size // max(a.shape[-1], 1), a.shape[-1]
    _rows("softmax_back", a, rows, ds, a, rows, T, scale)


def cross_entropy(z: Array, target: Array, share: Array) -> Array:
    """The losses (N,) of rows of logits z (N, C), which become their gradients; target (N,) of whole numbers, share (N,)."""
    xp, (N, C) = array_namespace(z), z.shape
    loss = xp.empty(N, z.dtype)
    _run("cross_entropy", z, (N,), 32 * WARPS, z, target.astype("int64", copy=False), share, loss, C)
    return loss


def embed_back(dy: Array, rows: Array, count: int) -> Array:
    """The sums (count, d) of dy (N, d) over the entries that belong to each row, in their order; rows (N,) of whole numbers."""
    xp, d = array_namespace(dy), dy.shape[-1]
    order = xp.argsort(rows)  # cupy's is stable
    starts = xp.searchsorted(rows[order], xp.arange(count + 1))
    table = xp.empty((count, d), dy.dtype)
    _run("embed_back", dy, (count,), min(256, -(-d // 32) * 32), xp.ascontiguousarray(dy), order, starts, table, d)
    return table
