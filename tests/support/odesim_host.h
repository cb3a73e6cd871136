// CUDA's words on a CPU, so that a C++ compiler builds a kernel from the very text that a GPU gets. Threads of a block run one after
// another; with ODESIM_FIBERS all threads are fibers that take turns at barriers, shuffles and pauses.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static

struct odesim_dim { unsigned x, y, z; };
static odesim_dim threadIdx{0, 0, 0}, blockIdx{0, 0, 0}, blockDim{1, 1, 1}, gridDim{1, 1, 1};
using std::fabs; using std::floor; using std::fma; using std::rint; using std::sqrt;

static inline double __longlong_as_double(long long i) { double x; std::memcpy(&x, &i, 8); return x; }
#ifndef ODESIM_FIBERS
#define ODESIM_PAUSE()
#endif
#define __noinline__ __attribute__((noinline))
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
#include <map>
#include <ucontext.h>
#include <vector>

// all threads of all blocks are fibers that take turns
struct odesim_group { int size, here; long long turn; };
struct odesim_fiber { ucontext_t context; std::vector<char> stack; bool done; odesim_dim thread, block; double given; odesim_group* meets; long long turn; };
static std::vector<odesim_fiber> odesim_fibers;
static std::vector<odesim_group> odesim_blocks, odesim_warps;
static ucontext_t odesim_main;
static const std::function<void()>* odesim_kernel;
static unsigned odesim_current;
static long long odesim_moves;

static inline void odesim_yield() { swapcontext(&odesim_fibers[odesim_current].context, &odesim_main); }
static inline unsigned odesim_warp(unsigned fiber) { return fiber / blockDim.x * ((blockDim.x + 31) / 32) + fiber % blockDim.x / 32; }
static inline void odesim_release(odesim_group& g) { g.here = 0; g.turn += 1; odesim_moves += 1; }
static inline void odesim_meet(odesim_group& g) {
    odesim_fiber& me = odesim_fibers[odesim_current];
    me.meets = &g;
    me.turn = g.turn;
    if (++g.here == g.size) odesim_release(g);
    else odesim_yield();
    me.meets = nullptr;
}
static void odesim_begin() {
    (*odesim_kernel)();
    odesim_fibers[odesim_current].done = true;
    odesim_moves += 1;
    for (odesim_group* g : {&odesim_blocks[odesim_current / blockDim.x], &odesim_warps[odesim_warp(odesim_current)]})
        if (--g->size > 0 && g->here == g->size) odesim_release(*g);
    odesim_yield();
}
static inline double odesim_exchange(double value, unsigned lane) {
    const unsigned me = odesim_current, first = me - (me % blockDim.x) % 32;
    odesim_fibers[me].given = value;
    odesim_meet(odesim_warps[odesim_warp(me)]);
    const double found = odesim_fibers[first + lane].given;
    odesim_meet(odesim_warps[odesim_warp(me)]);
    return found;
}
#define ODESIM_PAUSE() odesim_yield()
// an array that the threads of a block share: each block has its own
#define ODESIM_SHARED(R, name, n) static std::map<unsigned, std::vector<R>> name##_of; name##_of[blockIdx.x].resize(n); R* const name = name##_of[blockIdx.x].data()
#define __syncthreads() odesim_meet(odesim_blocks[odesim_current / blockDim.x])
#define __syncwarp(...) odesim_meet(odesim_warps[odesim_warp(odesim_current)])
#define __threadfence()
static inline unsigned long long atomicAdd(unsigned long long* p, unsigned long long x) { odesim_moves += 1; return (*p += x) - x; }
static inline double __shfl_sync(unsigned, double v, int lane) { return odesim_exchange(v, (unsigned)lane & 31u); }
static inline double __shfl_down_sync(unsigned, double v, int d) {
    const unsigned lane = threadIdx.x & 31u;
    return odesim_exchange(v, lane + d < 32u ? lane + d : lane);
}

template <class F> static void odesim_launch(odesim_dim grid, odesim_dim block, F kernel) {
    const std::function<void()> run = kernel;
    odesim_kernel = &run;
    gridDim = grid; blockDim = block;
    const unsigned blocks = grid.x * grid.y, count = blocks * block.x, warps = (block.x + 31) / 32;
    odesim_fibers = std::vector<odesim_fiber>(count);
    odesim_blocks.assign(blocks, odesim_group{(int)block.x, 0, 0});
    odesim_warps.assign(blocks * warps, odesim_group{0, 0, 0});
    for (unsigned i = 0; i < count; ++i) {
        odesim_fiber& f = odesim_fibers[i];
        f.done = false;
        f.meets = nullptr;
        f.thread = {i % block.x, 0, 0};
        f.block = {i / block.x % grid.x, i / block.x / grid.x, 0};
        odesim_warps[odesim_warp(i)].size += 1;
        f.stack.resize(1 << 16);
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.data();
        f.context.uc_stack.ss_size = f.stack.size();
        f.context.uc_link = &odesim_main;
        makecontext(&f.context, odesim_begin, 0);
    }
    long long idle = 0, moves = -1;
    unsigned draw = 1;  // who runs before whom is chance, so that a barrier that is missing is missed
    for (unsigned left = count; left;) {
        left = 0;
        const bool backwards = (draw >> 16) & 1;
        for (unsigned i = 0; i < count; ++i) {
            odesim_current = backwards ? count - 1 - i : i;
            odesim_fiber& f = odesim_fibers[odesim_current];
            if (f.done) continue;
            draw = draw * 1664525u + 1013904223u;
            if ((f.meets && f.meets->turn == f.turn) || (draw >> 16) % 4 == 0) {
                left += 1;
                continue;
            }
            threadIdx = f.thread; blockIdx = f.block;
            swapcontext(&odesim_main, &f.context);
            left += !f.done;
        }
        idle = moves == odesim_moves ? idle + 1 : 0;
        moves = odesim_moves;
        if (idle > 100000) {
            std::fprintf(stderr, "threads wait for each other forever\n");
            std::abort();
        }
    }
}
#endif
