__global__ void gather(const float* __restrict__ x, const int* __restrict__ index, float* out) {
  int at = index[threadIdx.x];
  out[threadIdx.x] = x[at];
}
__global__ void rows(const float* __restrict__ x, const int* __restrict__ column, const float* __restrict__ value,
                     const int* __restrict__ start, float* out) {
  float sum = 0;
  int last = start[threadIdx.x + 1];
  for (int k = start[threadIdx.x]; k < last; ++k) {
    int at = column[k];
    float one = value[k];
    sum += one *
           x[at];
  }
  out[threadIdx.x] = sum;
}
__global__ void divided(const float* __restrict__ x, float* out, int n) {
  int at = threadIdx.x / n;
  out[threadIdx.x] = x[at];
}
__global__ void chase(const long* __restrict__ next, long* out, int n) {
  long at = threadIdx.x;
  for (int k = 0; k < n; ++k) {
    at = next[at];
  }
  out[threadIdx.x] = at;
}
