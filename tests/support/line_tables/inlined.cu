#include "inlined.h"

__global__ void scale(float* x, int n) {
  x[threadIdx.x] = outer(x[n], x, n) * 2;
}

__device__ __noinline__ float slow(float a) {
  return a / (a + 1.0f);
}

__global__ void divide(float* x, int n) {
  x[threadIdx.x] = slow(x[n]);
}
