// A tile arrives by a bulk copy (TMA), and an mbarrier tells when: line 14 waits for it, and line 15 reads it.
#include <cstdint>

__global__ void bulk_copies(const float *in, float *out, int n) {
  __shared__ __align__(128) float tile[1024];
  __shared__ __align__(8) uint64_t full;
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(tile), barrier = (uint32_t)__cvta_generic_to_shared(&full);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier));
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < n; i++) {
    if (threadIdx.x == 0) asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 4096;" ::"r"(barrier));
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];" ::"r"(at), "l"(in + i * 1024), "r"(barrier) : "memory");
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again; }" ::"r"(barrier), "r"(i & 1) : "memory");
    sum += tile[threadIdx.x];
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}
