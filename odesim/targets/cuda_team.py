"""C++ shared by all kernels of one large system: a team of threads, led by one of them.

The first thread of block 0 runs the integrator, the very functions that a CPU runs. For operations on whole arrays it tells the threads
of all other blocks what to do, and waits. Sums have the order of odesim.runtime.sums for any number of threads.
"""

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

// p[0] of each row of n numbers: the upper half onto the lower, again and again; a block of threads a row
// (one number is its own sum, for which nobody waits)
__device__ __noinline__ void odesim_tree_sum(odesim_team& team, double* p, long long n, long long rows) {
    if (n <= 1) return;
    for (long long row = team.block; row < rows; row += team.blocks) {
        double* a = p + row * n;
        for (long long w = n; w > 1;) {
            const long long h = (w + 1) / 2;
            for (long long k = threadIdx.x; k < w - h; k += blockDim.x) a[k] = a[k] + a[k + h];
            __syncthreads();
            w = h;
        }
    }
    odesim_wait(team);
}
__device__ __noinline__ void odesim_tree_max(odesim_team& team, double* p, long long n, long long rows) {
    if (n <= 1) return;
    for (long long row = team.block; row < rows; row += team.blocks) {
        double* a = p + row * n;
        for (long long w = n; w > 1;) {
            const long long h = (w + 1) / 2;
            for (long long k = threadIdx.x; k < w - h; k += blockDim.x) a[k] = odesim_larger(a[k], a[k + h]);
            __syncthreads();
            w = h;
        }
        if (threadIdx.x == 0) a[0] = a[0] + 0.0;
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
    odesim_tree_sum(team, sums + 32, blocks, 1);
}
""".strip("\n")

SUM_ORDER = r"""
__device__ double odesim_@NAME@(long long* at, long long y, long long ns, @ARGUMENTS@) {
    long long* m = odesim_mail + 4;
    m[0] = (long long)at; m[1] = y; m[2] = ns; @MAIL@
    odesim_order(@NUMBER@);
    return ((volatile double*)at[@SUMS@])[32];
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
__device__ void odesim_stage(long long table, double t, long long y, long long k, long long rows, long long coef, long long ns, long long s,
                             long long z) {
    long long* m = odesim_mail + 4;
    m[0] = table; m[1] = __double_as_longlong(t); m[2] = y; m[3] = k; m[4] = rows; m[5] = coef; m[6] = ns; m[7] = s; m[8] = z;
    odesim_order(1);
}
__device__ void odesim_events(long long table, double t, long long y, long long g) {
    long long* m = odesim_mail + 4;
    m[0] = table; m[1] = __double_as_longlong(t); m[2] = y; m[3] = g;
    odesim_order(2);
}
__device__ void odesim_laws(long long table, double t, long long y, long long g) {
    long long* m = odesim_mail + 4;
    m[0] = table; m[1] = __double_as_longlong(t); m[2] = y; m[3] = g;
    odesim_order(5);
}
__device__ void odesim_judge(long long* at, double t, long long first) {
    long long* m = odesim_mail + 4;
    m[0] = (long long)at; m[1] = __double_as_longlong(t); m[2] = first;
    odesim_order(6);
}
__device__ void odesim_fill(long long* at, long long y, long long ns, long long target) {
    long long* m = odesim_mail + 4;
    m[0] = (long long)at; m[1] = y; m[2] = ns; m[3] = target;
    odesim_order(4);
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
        if (what == 1) stage_all(team, m[0], __longlong_as_double(m[1]), m[2], m[3], m[4], m[5], m[6], m[7], m[8]);
        if (what == 2) events_all(team, m[0], __longlong_as_double(m[1]), m[2], m[3]);
        @CALLS@
        if (what == 4)
            odesim_fill_all(team, (const @R@*)m[1], (const @R@*)a[@K@], (const long long*)a[@ORDER@], (const double*)a[@COEF@], m[2],
                            a[@N@], (@R@*)m[3]);
        if (what == 5) laws_all(team, m[0], __longlong_as_double(m[1]), m[2], m[3]);
        if (what == 6)
            odesim_judge_all(team, a[@LAW_SIZE@], (const long long*)a[@LAW_SENSE@], (const @R@*)a[@LAW_NOW@], (double*)a[@LAW_BEST@],
                             (double*)a[@LAW_WORST@], (double*)a[@LAW_TIME@], __longlong_as_double(m[1]), m[2]);
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            odesim_add(mail + 1);
        }
        if (what == 0) return;
    }
}
""".strip("\n")
