"""C++ shared by all kernels of one large system: a team of threads, led by one of them, and its matrix products.

The first thread of block 0 runs the integrator, the very functions that a CPU runs. For operations on whole arrays it tells the threads
of all other blocks what to do, and waits. Sums have the order of odesim.runtime.sums for any number of threads.

Matrix products on a GPU, which a kernel that leads itself must do itself: cuBLAS is called from the host.

In strict mode and in float32 each sum is added in order, and has the bits of odesim.runtime.matrices.product. Otherwise float64
goes to the matrix units (m16n8k8, from sm_80 on): tiles of three sizes, copied to shared memory two steps ahead. Where the numbers of a
fragment lie is NVIDIA's (PTX ISA, matrix fragments for mma with .f64). A row of a tile is 4 numbers longer than the tile, so that the 16
numbers that half a warp reads at once lie in 16 banks. A thread has 128 registers, of which the sums of a large tile take half.
"""

TENSOR = "#define ODESIM_TENSOR"
"""The line before PRODUCT for products by matrix units, where the device has them."""

PRODUCT = r"""
#ifndef ODESIM_SHARED
#define ODESIM_SHARED(R, name, n) __shared__ R name[n]
#endif

#if defined(ODESIM_TENSOR) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define ODESIM_STAGE 1600  // numbers of both tiles for 8 steps of a sum: 8 (128 + 4 + 64 + 4)

// c (16, 8) += a (16, 8) b (8, 8), by a warp: lane 4 g + q has a[g, q], a[g + 8, q], a[g, q + 4], a[g + 8, q + 4], b[q, g], b[q + 4, g] and
// c[g, 2 q], c[g, 2 q + 1], c[g + 8, 2 q], c[g + 8, 2 q + 1]
__device__ __forceinline__ void odesim_multiply(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3]) : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
    _Pragma("unroll") for (int k = 0; k < 2; ++k)
        _Pragma("unroll") for (int r = 0; r < 2; ++r)
            asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                         : "+d"(c[2 * r]), "+d"(c[2 * r + 1]) : "d"(a[2 * k + r]), "d"(b[k]));
#endif
}
// What a thread copies of N rows of a matrix to shared memory, 8 steps at a time: element (i, k) at a[i * down + k * along], from row top
// on. Neighbours in memory go to neighbouring threads. Copy p is hop (p & 1) + 4 steps (p / 2) from the first; one that is not there is 0
template <int N> struct odesim_source {
    static constexpr int copies = N / 32;
    const double* from;
    int hop, next;  // in a
    int to, over, left;  // in shared memory; steps that are left for the first copies
    bool first, second;
    __device__ __forceinline__ odesim_source(const double* a, long long down, long long along, long long top, long long rows,
                                             long long depth) {
        const bool whole = along == 1;
        const int thread = threadIdx.x, i = whole ? (thread >> 2) % N : thread % N;
        const int k = whole ? (thread & 3) + thread / (4 * N) * 4 : thread / N;
        const int beside = N == 128 && whole ? 64 : 0;
        const int ahead = beside ? 0 : N == 128 ? 2 : 4;  // steps of a hop
        from = a + (top + i) * down + k * along;
        hop = (int)(beside * down + ahead * along);
        next = (int)(4 * along);
        to = k * (N + 4) + i;
        over = beside + ahead * (N + 4);
        left = (int)depth - k;
        first = top + i < rows;
        second = top + i + beside < rows;
    }
    __device__ __forceinline__ void fetch(double* stage) {
        _Pragma("unroll") for (int p = 0; p < copies; ++p) {
            const bool there = (p & 1 ? second : first) && (p & 1 ? over / (N + 4) : 0) + p / 2 * 4 < left;
            const unsigned target = (unsigned)__cvta_generic_to_shared(stage + to + (p & 1) * over + p / 2 * 4 * (N + 4));
            const double* source = there ? from + (p & 1) * hop + p / 2 * next : from;
            asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" :: "r"(target), "l"(source), "r"(there ? 8 : 0)
                         : "memory");
        }
        from += 2 * next;
        left -= 8;
    }
};
// tiles of 16 M U rows and 8 N V columns: U x V warps, each with M x N products of fragments
template <int M, int N, int U, int V>
__device__ __noinline__ void odesim_tensor(odesim_team& team, double* buffer, double* out, const double* a, const double* b, long long over,
                                           long long next, long long down, long long along, long long below, long long beside,
                                           long long rows, long long depth, long long columns, long long add) {
    constexpr int high = 16 * M * U, wide = 8 * N * V;
    const int lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    const int row = threadIdx.x / 32 / V * 16 * M, column = threadIdx.x / 32 % V * 8 * N;
    const int across = (int)((columns + wide - 1) / wide), tiles = (int)((rows + high - 1) / high) * across, steps = (int)((depth + 7) / 8);
    for (int place = (int)team.block; place < tiles; place += (int)team.blocks) {
        const long long top = (long long)(place / across) * high, first = (long long)(place % across) * wide;
        double c[M][N][4] = {};
        const long long i = top + row + g, j = first + column + 2 * q;
        double* target = out + i * over + j * next;
        if (add)
            _Pragma("unroll") for (int m = 0; m < M; ++m)
                _Pragma("unroll") for (int n = 0; n < N; ++n)
                    _Pragma("unroll") for (int e = 0; e < 4; ++e)
                        if (i + 16 * m + e / 2 * 8 < rows && j + 8 * n + e % 2 < columns)
                            c[m][n][e] = target[(16 * m + e / 2 * 8) * over + (8 * n + e % 2) * next];
        odesim_source<high> left(a, down, along, top, rows, depth);
        odesim_source<wide> right(b, beside, below, first, columns, depth);
        int stage = 0, ahead = 0;  // of three: what is read, and what is written two steps ahead
        _Pragma("unroll 1") for (int step = -2; step < steps; ++step) {
            if (step >= 0) {
                asm volatile("cp.async.wait_group 1;" ::: "memory");
                __syncthreads();  // this step's numbers are there for all, and those of the step before are used
            }
            left.fetch(buffer + ahead * ODESIM_STAGE);
            right.fetch(buffer + ahead * ODESIM_STAGE + 8 * (high + 4));
            asm volatile("cp.async.commit_group;" ::: "memory");
            ahead = ahead == 2 ? 0 : ahead + 1;
            if (step < 0) continue;
            const double *p = buffer + stage * ODESIM_STAGE + q * (high + 4) + row + g;
            const double *r = buffer + stage * ODESIM_STAGE + 8 * (high + 4) + q * (wide + 4) + column + g;
            stage = stage == 2 ? 0 : stage + 1;
            double u[M][4];
            _Pragma("unroll") for (int m = 0; m < M; ++m)
                _Pragma("unroll") for (int e = 0; e < 4; ++e) u[m][e] = p[e / 2 * 4 * (high + 4) + 16 * m + 8 * (e % 2)];
            _Pragma("unroll") for (int n = 0; n < N; ++n) {
                const double v[2] = {r[8 * n], r[4 * (wide + 4) + 8 * n]};
                _Pragma("unroll") for (int m = 0; m < M; ++m) odesim_multiply(c[m][n], u[m], v);
            }
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
        _Pragma("unroll") for (int m = 0; m < M; ++m)
            _Pragma("unroll") for (int n = 0; n < N; ++n)
                _Pragma("unroll") for (int e = 0; e < 4; ++e)
                    if (i + 16 * m + e / 2 * 8 < rows && j + 8 * n + e % 2 < columns)
                        target[(16 * m + e / 2 * 8) * over + (8 * n + e % 2) * next] = c[m][n][e];
    }
}
// whether the matrix units did it: large tiles where each block of threads has one, else smaller ones (n = 1024 on an H200: .15 ms by tiles
// of 64 x 64, .23 by 128 tiles of 128 x 64; n = 2048: .91 and .84)
__device__ __noinline__ bool odesim_by_tensor(odesim_team& team, double* out, const double* a, const double* b, long long over,
                                              long long next, long long down, long long along, long long below, long long beside,
                                              long long rows, long long depth, long long columns, long long add) {
    ODESIM_SHARED(double, buffer, 3 * ODESIM_STAGE);
    const long long farthest = 64 * (down > along ? down : along) | 64 * (below > beside ? below : beside) | rows | columns | depth;
    if (blockDim.x != 256 || rows < 16 || columns < 8 || depth < 8 || farthest >> 31) return false;
    const long long high = (rows + 63) / 64, wide = (columns + 63) / 64;
    if ((rows + 127) / 128 * wide >= team.blocks)
        odesim_tensor<2, 4, 4, 2>(team, buffer, out, a, b, over, next, down, along, below, beside, rows, depth, columns, add);
    else if (2 * high * wide >= team.blocks)
        odesim_tensor<1, 4, 4, 2>(team, buffer, out, a, b, over, next, down, along, below, beside, rows, depth, columns, add);
    else
        odesim_tensor<1, 1, 2, 4>(team, buffer, out, a, b, over, next, down, along, below, beside, rows, depth, columns, add);
    return true;
}
template <class R> struct odesim_entry { static constexpr bool wide = false; };
template <> struct odesim_entry<double> { static constexpr bool wide = true; };
#endif

// the same as odesim_product, a thread an element: for products too small for tiles
template <class R> __device__ void odesim_by_element(odesim_team& team, R* out, const R* a, const R* b, long long over, long long next,
                                                     long long down, long long along, long long below, long long beside, long long rows,
                                                     long long depth, long long columns, long long add) {
    for (long long e = team.thread; e < rows * columns; e += team.threads) {
        const long long i = e / columns, j = e % columns;
        R sum = add ? out[i * over + j * next] : 0;
        for (long long k = 0; k < depth; ++k) sum = sum + a[i * down + k * along] * b[k * below + j * beside];
        out[i * over + j * next] = sum;
    }
}
// out (rows, columns) = a (rows, depth) b (depth, columns), or out += a b where add is not 0; (i, k) of a at i * down + k * along,
// (k, j) of b at k * below + j * beside, (i, j) of out at i * over + j * next.
// A block of threads takes a tile at a time, each thread 4 x 4 of its elements; where tiles are few, a thread takes an element
template <class R> __device__ __noinline__ void odesim_product(odesim_team& team, R* out, const R* a, const R* b, long long over,
                                                               long long next, long long down, long long along, long long below,
                                                               long long beside, long long rows, long long depth, long long columns,
                                                               long long add) {
#if defined(ODESIM_TENSOR) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (odesim_entry<R>::wide) {
        if (odesim_by_tensor(team, out, a, b, over, next, down, along, below, beside, rows, depth, columns, add)) return;
        odesim_by_element(team, out, a, b, over, next, down, along, below, beside, rows, depth, columns, add);
        return;
    } else {
#endif
    ODESIM_SHARED(R, left, 16 * 65);
    ODESIM_SHARED(R, right, 16 * 65);
    const int across = blockDim.x >= 256 ? 16 : 8, tile = 4 * across, thread = threadIdx.x, threads = blockDim.x;
    const long long high = (rows + tile - 1) / tile, wide = (columns + tile - 1) / tile;
    if (4 * high * wide < team.blocks) {
        odesim_by_element(team, out, a, b, over, next, down, along, below, beside, rows, depth, columns, add);
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
#if defined(ODESIM_TENSOR) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    }
#endif
}
""".strip("\n")
TEAM = r"""
struct odesim_team { long long thread, threads, warp, warps, block, blocks, lane; long long* mail; long long epoch; };

// mail: 0 the number of the order, 1 threads' blocks that are done with it, 2 blocks that wait, 3 what to do, 4... the numbers for it
__device__ __forceinline__ long long odesim_read(long long* p) { return *(volatile long long*)p; }
__device__ __forceinline__ void odesim_add(long long* p) { atomicAdd((unsigned long long*)p, 1ULL); }

__device__ __noinline__ void odesim_wait(odesim_team& team) {  // until all blocks but the first are here
    team.epoch += 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        odesim_add(team.mail + 2);
        while (odesim_read(team.mail + 2) < team.epoch * team.blocks) ODESIM_PAUSE();
        __threadfence();
    }
    __syncthreads();
}

// e % n, and e becomes e / n; a division of 64 bits takes a hundred instructions, one of 32 a quarter of that
__device__ __forceinline__ long long odesim_split(long long& e, long long n) {
    if ((unsigned long long)(e | n) >> 32) { const long long rest = e % n; e /= n; return rest; }
    const unsigned whole = (unsigned)e / (unsigned)n, rest = (unsigned)e - whole * (unsigned)n;
    e = whole;
    return rest;
}

__device__ __forceinline__ double odesim_larger(double a, double b) { return (b > a) || (b != b) ? b : a; }
__device__ __forceinline__ void odesim_keep(odesim_team& team, double* p, double x) { if (team.lane == 0) *p = x; }

// n numbers of a block: x0, x1 are elements lane and lane + 32, sum those at lane, lane + 32, ... added; in lane 0
__device__ __forceinline__ double odesim_fold_sum(double sum, double x0, double x1, long long n) {
    if (n > 64) {
        for (int width = 16; width > 0; width /= 2) sum = sum + __shfl_down_sync(0xffffffffu, sum, width);
        return sum;
    }
    double total = 0.0;
    for (int k = 0; k < n; ++k) total = total + __shfl_sync(0xffffffffu, k < 32 ? x0 : x1, k & 31);
    return total;
}
__device__ __forceinline__ double odesim_fold_max(double most, double x0, double x1, long long n) {
    for (int width = 16; width > 0; width /= 2) most = odesim_larger(most, __shfl_down_sync(0xffffffffu, most, width));
    return most + 0.0;
}

// p[0] of each row of n numbers, added or the MOST of them: the upper half onto the lower, again and again; a block of threads a row
// (one number is its own sum, for which nobody waits)
template <bool MOST>
__device__ __noinline__ void odesim_tree(odesim_team& team, double* p, long long n, long long rows) {
    if (n <= 1) return;
    for (long long row = team.block; row < rows; row += team.blocks) {
        double* a = p + row * n;
        for (long long w = n; w > 1;) {
            const long long h = (w + 1) / 2;
            for (long long k = threadIdx.x; k < w - h; k += blockDim.x) a[k] = MOST ? odesim_larger(a[k], a[k + h]) : a[k] + a[k + h];
            __syncthreads();
            w = h;
        }
        if (MOST && threadIdx.x == 0) a[0] = a[0] + 0.0;
    }
    odesim_wait(team);
}

// sums[u] = x[i] (0 without x) + sum_j coef[j] k[rows[j], i] at i = first + u * step, one term after another; rounded to R after every four
// terms, or two where two are left. LATE: the last so many terms, which are added without a rounding between them. Several elements at
// once, so that memory is asked for many numbers before the first is needed.
template <int LATE, int U, class R> __device__ __forceinline__ void odesim_combine(const R* x, const R* k, const long long* rows,
                                                                                  const double* coef, long long ns, long long n,
                                                                                  long long first, long long step, R* out) {
    long long early = ns, terms = 0;
    if (LATE > 0 && sizeof(R) < 8) {
        early = -LATE;
        for (long long j = 0; j < ns; ++j) early += coef[j] != 0.0;
    }
    double sums[U];
    R now[U], next[U];
    long long j = -1, after = 0;
    _Pragma("unroll") for (int u = 0; u < U; ++u) sums[u] = x ? x[first + u * step] : (R)0;
    _Pragma("unroll 1") while (true) {  // the numbers of the next term are on their way while one is added
        while (after < ns && coef[after] == 0.0) ++after;
        if (after < ns) {
            const R* slopes = k + rows[after] * n + first;
            _Pragma("unroll") for (int u = 0; u < U; ++u) next[u] = slopes[u * step];
        }
        if (j >= 0) {
            const double c = coef[j];
            terms += 1;
            _Pragma("unroll") for (int u = 0; u < U; ++u) {
                sums[u] = sums[u] + c * now[u];
                if (terms <= early && (terms % 4 == 0 || terms == early)) sums[u] = (R)sums[u];
            }
        }
        if (after >= ns) break;
        _Pragma("unroll") for (int u = 0; u < U; ++u) now[u] = next[u];
        j = after++;
    }
    _Pragma("unroll") for (int u = 0; u < U; ++u) out[u] = (R)sums[u];
}

// values now (n,) against their senses, as odesim.stepper.operations.judge has it
template <class R> __device__ void odesim_judge_all(odesim_team& team, long long n, const long long* sense, const R* value, double* best,
                                                    double* worst, double* times, double t, long long first) {
    for (long long i = team.thread; i < n; i += team.threads) {
        const double now = value[i];
        if (first == 1) { best[i] = now; worst[i] = 0.0; times[i] = t; }
        double off = now - best[i];
        if (sense[i] == 0) off = fabs(off);
        else if (sense[i] == 1) { if (now < best[i]) best[i] = now; }
        else if (sense[i] == 2) { off = -off; if (now > best[i]) best[i] = now; }
        else off = -now;
        if (worst[i] == worst[i] && !(off <= worst[i])) { worst[i] = off; times[i] = t; }
    }
}

// y (n,) = x + sum_j coef[j] k_j
template <class R> __device__ void odesim_fill_all(odesim_team& team, const R* x, const R* k, const long long* rows, const double* coef,
                                                   long long ns, long long n, R* y) {
    R found[4];
    long long i = team.thread;
    for (; i + 3 * team.threads < n; i += 4 * team.threads) {
        odesim_combine<0, 4>(x, k, rows, coef, ns, n, i, team.threads, found);
        _Pragma("unroll") for (int u = 0; u < 4; ++u) y[i + u * team.threads] = found[u];
    }
    for (; i < n; i += team.threads) {
        odesim_combine<0, 1>(x, k, rows, coef, ns, n, i, 0, found);
        y[i] = found[0];
    }
}
""".strip("\n")

SUM = r"""
// sums[32]: the sum of @TERM@ over all components, the first of its arguments x + sum_j coef[j] k_j
template <class R> __device__ void odesim_@NAME@_all(odesim_team& team, const R* x, const R* k, const long long* rows, const double* coef,
                                                     long long ns, long long n, @ROWS@, @NUMBERS@double* sums) {
    const long long blocks = (n + 1023) / 1024;
    for (long long block = team.warp; block < blocks; block += team.warps) {
        const long long low = 1024 * block, size = n - low < 1024 ? n - low : 1024;
        double sum = 0.0, x0 = 0.0, x1 = 0.0, entry_[@COUNT@][4];
        R e[4];
        long long l = team.lane;
        for (; l + 96 < size; l += 128) {
            _Pragma("unroll") for (int u = 0; u < 4; ++u) { @LOAD@ }
            odesim_combine<0, 4>(x, k, rows, coef, ns, n, low + l, 32, e);
            _Pragma("unroll") for (int u = 0; u < 4; ++u) sum = sum + @TERM@((double)e[u], @ENTRIES@);
        }
        for (; l < size; l += 32) {
            const int u = 0;
            odesim_combine<0, 1>(x, k, rows, coef, ns, n, low + l, 0, e);
            @LOAD@
            const double term = @TERM@((double)e[0], @ENTRIES@);
            if (l < 32) x0 = term; else if (l < 64) x1 = term;  // which count where there are no more
            sum = sum + term;
        }
        odesim_keep(team, sums + 32 + block, odesim_fold_sum(sum, x0, x1, size));
    }
    odesim_wait(team);
    odesim_tree<false>(team, sums + 32, blocks, 1);
}
""".strip("\n")

LEADER = r"""
static __device__ long long* odesim_mail;
static __device__ long long odesim_workers;

// the leader's side: an order, and the wait until it is carried out
__device__ __noinline__ void odesim_order(long long what) {
    odesim_mail[1] = 0;
    odesim_mail[3] = what;
    const long long number = odesim_mail[0] + 1;
    __threadfence();
    *(volatile long long*)odesim_mail = number;
    while (odesim_read(odesim_mail + 1) < odesim_workers) ODESIM_PAUSE();
    __threadfence();
}
""".strip("\n")

WORKERS = r"""
extern "C" __global__ void __launch_bounds__(256, 2) integrate(long long at, long long* mail, long long* answer) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            odesim_mail = mail;
            odesim_workers = gridDim.x - 1;
            answer[0] = @RUN@(at);
            odesim_order(0);
        }
        return;
    }
    odesim_team team;
    team.threads = (long long)(gridDim.x - 1) * blockDim.x;
    team.thread = (long long)(blockIdx.x - 1) * blockDim.x + threadIdx.x;
    team.warps = team.threads / 32; team.warp = team.thread / 32; team.lane = threadIdx.x & 31;
    team.blocks = gridDim.x - 1; team.block = blockIdx.x - 1;
    team.mail = mail; team.epoch = 0;
    for (long long number = 1;; ++number) {
        if (threadIdx.x == 0) {
            while (odesim_read(mail) < number) ODESIM_PAUSE();
            __threadfence();
        }
        __syncthreads();
        long long m[9];
        for (int k = 0; k < 9; ++k) m[k] = odesim_read(mail + 4 + k);
        const long long what = odesim_read(mail + 3);
        long long* a = (long long*)m[0];
        @CALLS@
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            odesim_add(mail + 1);
        }
        if (what == 0) return;
    }
}
""".strip("\n")
