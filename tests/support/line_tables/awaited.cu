__global__ void chase(const int* __restrict__ next, int* out, int n) {
  int at = threadIdx.x;
  for (int k = 0; k < n; ++k) {
    at = next[at];
  }
  out[threadIdx.x] = at;
}
__global__ void split(const float* a, const float* b, float* out, int n) {
  float x = a[threadIdx.x];
  float y = b[threadIdx.x];
  __syncthreads();
  if (n > 3) {
    x = x * 2.0f;
  } else {
    x = y * 3.0f;
  }
  out[threadIdx.x] = x;
}
