// What lanes of a warp ask each other, declared for texts of kernels that run on the CPU: no test there has more than one.
#pragma once

int __float_as_int(float x);
float __int_as_float(int x);
int __reduce_max_sync(unsigned mask, int x);
float __shfl_xor_sync(unsigned mask, float x, int away);
float __shfl_sync(unsigned mask, float x, int lane, int lanes);
