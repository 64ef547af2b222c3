#pragma once

__device__ __forceinline__ float inner(float a, float* x) {
  return a * x[(int)a];
}

__device__ __forceinline__ float outer(float a, float* x, int j) {
  float b = inner(a, x);
  return b + x[j];
}
