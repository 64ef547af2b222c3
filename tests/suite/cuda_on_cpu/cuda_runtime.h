// As much of CUDA as the suite's programs ask for, on a CPU: the threads of a block are fibers that meet at barriers, blocks follow each
// other, and memory ends at a page that nothing may touch. It finds accesses beyond an array, and tells what each buffer sums up to.
#pragma once

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <type_traits>
#include <vector>

#define __global__ static
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __constant__ static
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

using std::max;
using std::min;

enum cudaError_t { cudaSuccess };
enum { cudaDevAttrMultiProcessorCount, cudaFuncAttributeMaxDynamicSharedMemorySize, cudaMemcpyHostToDevice };

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct float2 { float x, y; };
struct float3 { float x, y, z; };
struct float4 { float x, y, z, w; };
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

// ---- fibers
struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    dim3 index;
    bool is_done;
};
inline std::vector<Fiber> fibers;
inline ucontext_t scheduler;
inline size_t running = 0, n_threads = 0;
inline std::function<void()> body;
inline std::vector<char> dynamic_shared;
inline unsigned long long exchanged[32][32];  // by warp and lane

inline void give_way() { swapcontext(&fibers[running].context, &scheduler); }

inline void run_fiber() {
    body();
    fibers[running].is_done = true;
    give_way();
}

// Runs all fibers of a block up to their next barrier, again and again. Every fiber that still runs meets each barrier.
inline void run_block() {
    for (size_t i = 0; i < n_threads; ++i) {
        Fiber& fiber = fibers[i];
        fiber.is_done = false;
        fiber.index = dim3(i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = &scheduler;
        makecontext(&fiber.context, run_fiber, 0);
    }
    for (bool is_any = true; is_any;) {
        is_any = false;
        for (running = 0; running < n_threads; ++running) {
            if (fibers[running].is_done) continue;
            threadIdx = fibers[running].index;
            swapcontext(&scheduler, &fibers[running].context);
            is_any = is_any || !fibers[running].is_done;
        }
    }
}

template <typename Call>
void emulate(dim3 grid, dim3 block, size_t shared_bytes, Call call) {
    n_threads = static_cast<size_t>(block.x) * block.y * block.z;
    while (fibers.size() < n_threads) fibers.push_back({{}, std::vector<char>(1 << 15), {}, true});
    gridDim = grid, blockDim = block;
    dynamic_shared.assign(shared_bytes + 1024, 0);
    body = call;
    for (unsigned z = 0; z < grid.z; ++z) {
        for (unsigned y = 0; y < grid.y; ++y) {
            for (unsigned x = 0; x < grid.x; ++x) {
                blockIdx = dim3(x, y, z);
                run_block();
            }
        }
    }
}

inline void __syncthreads() {
    const dim3 mine = threadIdx;
    give_way();
    threadIdx = mine;
}
inline void __syncwarp() { __syncthreads(); }
inline void __threadfence() {}

// A warp's lanes exchange values between two barriers. All warps of a block do so at the same time in these programs, or one of them.
template <typename Value>
Value exchange(Value value, unsigned from) {
    const size_t thread = running;
    std::memcpy(&exchanged[thread / 32][thread % 32], &value, sizeof value);
    __syncthreads();
    std::memcpy(&value, &exchanged[thread / 32][from % 32], sizeof value);
    __syncthreads();
    return value;
}
template <typename Value>
Value __shfl_xor_sync(unsigned, Value value, int distance) { return exchange(value, running % 32 ^ distance); }
template <typename Value>
Value __shfl_sync(unsigned, Value value, int lane) { return exchange(value, lane); }
inline unsigned __ballot_sync(unsigned, bool is_true) {
    const size_t thread = running;
    exchanged[thread / 32][thread % 32] = is_true;
    __syncthreads();
    unsigned found = 0;
    for (int lane = 0; lane < 32; ++lane) found |= exchanged[thread / 32][lane] ? 1u << lane : 0;
    __syncthreads();
    return found;
}

// ---- arithmetic
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __logf(float x) { return std::log(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
inline unsigned __float_as_uint(float x) { unsigned bits; std::memcpy(&bits, &x, 4); return bits; }
inline float __uint_as_float(unsigned bits) { float x; std::memcpy(&x, &bits, 4); return x; }
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255);
    return c;
}

template <typename T, typename U>
T atomicAdd(T* to, U value) { const T old = *to; *to = old + static_cast<T>(value); return old; }
template <typename T>
T atomicCAS(T* to, T compare, T value) { const T old = *to; if (old == compare) *to = value; return old; }
inline unsigned atomicInc(unsigned* to, unsigned last) { const unsigned old = *to; *to = old >= last ? 0 : old + 1; return old; }

// What inline assembly would be told; there is none of it here.
inline size_t __cvta_generic_to_shared(const void*) { return 0; }

// ---- memory
struct Allocation {
    size_t bytes, mapped;
    char* first;
    double (*sum)(const void*, size_t);
};
inline std::map<const void*, Allocation> allocations;

template <typename T>
constexpr bool holds_floats = std::is_floating_point_v<T> || (std::is_class_v<T> && !std::is_same_v<T, uint2> && !std::is_same_v<T, uint4>);

template <typename T>
double sum_of(const void* memory, size_t bytes) {
    double total = 0;
    if constexpr (std::is_same_v<T, double>) {
        for (size_t i = 0; i < bytes / 8; ++i) total += static_cast<const double*>(memory)[i];
    } else if constexpr (holds_floats<T> && sizeof(T) % 4 == 0) {
        for (size_t i = 0; i < bytes / 4; ++i) total += static_cast<const float*>(memory)[i];
    } else if constexpr (sizeof(T) % 4 == 0) {
        for (size_t i = 0; i < bytes / 4; ++i) total += static_cast<const unsigned*>(memory)[i];
    }
    return total;
}

template <typename T>
cudaError_t cudaMalloc(T** memory, size_t bytes) {
    const size_t page = 4096, mapped = (bytes + page - 1) / page * page + 2 * page;
    char* first = static_cast<char*>(mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(first, page, PROT_NONE);
    mprotect(first + mapped - page, page, PROT_NONE);  // what is allocated ends here
    char* start = first + mapped - page - bytes;
    *memory = reinterpret_cast<T*>(start);
    allocations[start] = {bytes, mapped, first, sum_of<T>};
    return cudaSuccess;
}
template <typename T>
cudaError_t cudaMemset(T* memory, int, size_t bytes) {
    if constexpr (std::is_same_v<T, double>) {
        for (size_t i = 0; i < bytes / 8; ++i) memory[i] = (i * 2654435761u % 1024) / 1024.0;
    } else if constexpr (holds_floats<T> && sizeof(T) % 4 == 0) {
        for (size_t i = 0; i < bytes / 4; ++i) reinterpret_cast<float*>(memory)[i] = (i * 2654435761u % 1024) / 1024.0f;
    } else {
        std::memset(static_cast<void*>(memory), std::is_same_v<T, unsigned char> ? 3 : 0, bytes);
    }
    return cudaSuccess;
}
inline cudaError_t cudaMemset(void* memory, int value, size_t bytes) { std::memset(memory, value, bytes); return cudaSuccess; }
inline cudaError_t cudaFree(const void* memory) {
    const Allocation found = allocations.at(memory);
    std::printf("freed %zu %.9g\n", found.bytes, found.sum(memory, found.bytes));
    munmap(found.first, found.mapped);
    allocations.erase(memory);
    return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, int) { std::memcpy(to, from, bytes); return cudaSuccess; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return ""; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) { *device = 0; return cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, int, int) { *value = 1; return cudaSuccess; }
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel, int, int) { return cudaSuccess; }
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* found, Kernel, int, size_t) {
    *found = std::atoi(std::getenv("PER_SM"));
    return cudaSuccess;
}
