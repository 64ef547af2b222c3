// Of BF16 numbers only the size matters here.
struct __nv_bfloat16 { unsigned short bits; };
