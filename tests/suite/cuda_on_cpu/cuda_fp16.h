// Halves as the upper halves of floats: only their size matters here.
#include <cuda_runtime.h>
struct __half { unsigned short bits; };
struct __half2 { __half x, y; };
inline float __half2float(__half x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
inline __half __float2half(float x) { return {static_cast<unsigned short>(__float_as_uint(x) >> 16)}; }
inline __half2 __float2half2_rn(float x) { return {__float2half(x), __float2half(x)}; }
inline __half __hfma(__half a, __half b, __half c) { return __float2half(__half2float(a) * __half2float(b) + __half2float(c)); }
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
