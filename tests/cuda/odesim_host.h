// CUDA's words on a CPU, so that a C++ compiler builds a kernel from the very text that a GPU gets. Threads of a block run one after
// another; with ODESIM_FIBERS they are fibers that take turns at barriers and shuffles, and a barrier that not all reach is an error.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __shared__ static

struct odesim_dim { unsigned x, y, z; };
static odesim_dim threadIdx{0, 0, 0}, blockIdx{0, 0, 0}, blockDim{1, 1, 1}, gridDim{1, 1, 1};
using std::fabs; using std::floor; using std::fma; using std::rint; using std::sqrt;

static inline double __longlong_as_double(long long i) { double x; std::memcpy(&x, &i, 8); return x; }
static inline long long __double_as_longlong(double x) { long long i; std::memcpy(&i, &x, 8); return i; }

#ifndef ODESIM_FIBERS
template <class F> static void odesim_launch(odesim_dim grid, odesim_dim block, F kernel) {
    gridDim = grid; blockDim = block;
    for (unsigned y = 0; y < grid.y; ++y)
        for (unsigned x = 0; x < grid.x; ++x)
            for (unsigned t = 0; t < block.x; ++t) {
                blockIdx = {x, y, 0}; threadIdx = {t, 0, 0};
                kernel();
            }
}
#else
#include <functional>
#include <ucontext.h>
#include <vector>

struct odesim_fiber { ucontext_t context; std::vector<char> stack; bool done; int waits; double given; };
static std::vector<odesim_fiber>* odesim_fibers;
static ucontext_t odesim_main;
static const std::function<void()>* odesim_kernel;

static void odesim_begin() {
    (*odesim_kernel)();
    odesim_fiber& me = (*odesim_fibers)[threadIdx.x];
    me.done = true;
    swapcontext(&me.context, &odesim_main);
}
static inline void odesim_wait(int where) {
    odesim_fiber& me = (*odesim_fibers)[threadIdx.x];
    me.waits = where;
    swapcontext(&me.context, &odesim_main);
}
static inline double odesim_exchange(double value, unsigned from) {
    const unsigned me = threadIdx.x;
    (*odesim_fibers)[me].given = value;
    odesim_wait(-2);
    const double found = (*odesim_fibers)[from < blockDim.x ? from : me].given;
    odesim_wait(-3);
    return found;
}
#define __syncthreads() odesim_wait(__LINE__)
#define __syncwarp(...) odesim_wait(-1)
static inline double __shfl_sync(unsigned, double v, int lane) { return odesim_exchange(v, (threadIdx.x & ~31u) | ((unsigned)lane & 31u)); }
static inline double __shfl_xor_sync(unsigned, double v, int m) { return odesim_exchange(v, (threadIdx.x & ~31u) | ((threadIdx.x ^ m) & 31u)); }
static inline double __shfl_down_sync(unsigned, double v, int d) {
    const unsigned lane = threadIdx.x & 31u;
    return odesim_exchange(v, lane + d < 32u ? threadIdx.x + d : threadIdx.x);
}

template <class F> static void odesim_launch(odesim_dim grid, odesim_dim block, F kernel) {
    const std::function<void()> run = kernel;
    odesim_kernel = &run;
    gridDim = grid; blockDim = block;
    std::vector<odesim_fiber> fibers(block.x);
    odesim_fibers = &fibers;
    for (unsigned b = 0; b < grid.x * grid.y; ++b) {
        blockIdx = {b % grid.x, b / grid.x, 0};
        for (odesim_fiber& f : fibers) {
            f.done = false;
            f.stack.resize(1 << 16);
            getcontext(&f.context);
            f.context.uc_stack.ss_sp = f.stack.data();
            f.context.uc_stack.ss_size = f.stack.size();
            f.context.uc_link = &odesim_main;
            makecontext(&f.context, odesim_begin, 0);
        }
        for (unsigned left = block.x; left;) {
            left = 0;
            int where = 0;
            for (unsigned t = 0; t < block.x; ++t) {
                if (fibers[t].done) continue;
                threadIdx = {t, 0, 0};
                swapcontext(&odesim_main, &fibers[t].context);
                if (fibers[t].done) continue;
                if (!left++) where = fibers[t].waits;
                else if (fibers[t].waits != where) {
                    std::fprintf(stderr, "thread %u waits at %d, another one at %d\n", t, fibers[t].waits, where);
                    std::abort();
                }
            }
        }
    }
}
#endif
