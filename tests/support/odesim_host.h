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
#include <csetjmp>
#include <ucontext.h>

// All threads of all blocks are fibers that take turns: a context is made for each, then jumps lead from one to the next. Plain arrays and
// pointers: templates of the library would take longer to compile than a kernel.
struct odesim_group { int size, here; long long turn; };
struct odesim_fiber { jmp_buf at; char* stack; bool begun, done; odesim_dim thread, block; double given; odesim_group* meets; long long turn; };
static odesim_fiber* odesim_fibers;
static odesim_group *odesim_blocks, *odesim_warps;
static jmp_buf odesim_main;
static void (*odesim_kernel)(const void*);
static const void* odesim_arguments;
static unsigned odesim_current;
static long long odesim_moves;

template <class T> static T* odesim_room(unsigned long n) {
    void* room = std::calloc(n ? n : 1, sizeof(T));
    if (!room) std::abort();
    return static_cast<T*>(room);
}
static inline void odesim_yield() { if (!_setjmp(odesim_fibers[odesim_current].at)) _longjmp(odesim_main, 1); }
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
    odesim_kernel(odesim_arguments);
    odesim_fibers[odesim_current].done = true;
    odesim_moves += 1;
    odesim_group* const left[] = {&odesim_blocks[odesim_current / blockDim.x], &odesim_warps[odesim_warp(odesim_current)]};
    for (odesim_group* g : left)
        if (--g->size > 0 && g->here == g->size) odesim_release(*g);
    odesim_yield();
}
static void odesim_enter(odesim_fiber& f) {
    if (_setjmp(odesim_main)) return;
    if (f.begun) _longjmp(f.at, 1);
    f.begun = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = f.stack;
    context.uc_stack.ss_size = 1 << 16;
    context.uc_link = nullptr;
    makecontext(&context, odesim_begin, 0);
    setcontext(&context);
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
#define ODESIM_BLOCKS 1024
static inline unsigned odesim_block() { if (blockIdx.x >= ODESIM_BLOCKS) std::abort(); return blockIdx.x; }
// an array that the threads of a block share: each block has its own
#define ODESIM_SHARED(R, name, n) static R* name##_of[ODESIM_BLOCKS]; R*& name##_here = name##_of[odesim_block()]; if (!name##_here) name##_here = odesim_room<R>(n); R* const name = name##_here
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
    odesim_kernel = [](const void* given) { (*static_cast<const F*>(given))(); };
    odesim_arguments = &kernel;
    gridDim = grid; blockDim = block;
    const unsigned blocks = grid.x * grid.y, count = blocks * block.x, warps = blocks * ((block.x + 31) / 32);
    odesim_fibers = odesim_room<odesim_fiber>(count);
    odesim_blocks = odesim_room<odesim_group>(blocks);
    odesim_warps = odesim_room<odesim_group>(warps);
    char* const stacks = odesim_room<char>((unsigned long)count << 16);
    for (unsigned i = 0; i < blocks; ++i) odesim_blocks[i].size = block.x;
    for (unsigned i = 0; i < count; ++i) {
        odesim_fiber& f = odesim_fibers[i];
        f.thread = {i % block.x, 0, 0};
        f.block = {i / block.x % grid.x, i / block.x / grid.x, 0};
        odesim_warps[odesim_warp(i)].size += 1;
        f.stack = stacks + ((unsigned long)i << 16);
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
            odesim_enter(f);
            left += !f.done;
        }
        idle = moves == odesim_moves ? idle + 1 : 0;
        moves = odesim_moves;
        if (idle > 100000) {
            std::fprintf(stderr, "threads wait for each other forever\n");
            std::abort();
        }
    }
    std::free(stacks); std::free(odesim_fibers); std::free(odesim_blocks); std::free(odesim_warps);
}
#endif
