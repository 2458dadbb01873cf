// CUDA's vector types, dim3 and qualifiers.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#ifndef __CUDACC__
#define __CUDACC__ 1
#endif
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 800
#endif
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
static constexpr int warpSize = 32;

typedef unsigned char uchar;
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;

#define KW_VECTORS(T, N, A2, A4)                                                                            \
  struct N##1 { T x; };                                                                                     \
  struct __attribute__((aligned(A2))) N##2 { T x, y; };                                                     \
  struct N##3 { T x, y, z; };                                                                               \
  struct __attribute__((aligned(A4))) N##4 { T x, y, z, w; };                                               \
  static inline N##1 make_##N##1(T x) { return {x}; }                                                       \
  static inline N##2 make_##N##2(T x, T y) { return {x, y}; }                                               \
  static inline N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                       \
  static inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
KW_VECTORS(float, float, 8, 16)
KW_VECTORS(double, double, 16, 16)
KW_VECTORS(int, int, 8, 16)
KW_VECTORS(unsigned int, uint, 8, 16)
KW_VECTORS(short, short, 4, 8)
KW_VECTORS(unsigned short, ushort, 4, 8)
KW_VECTORS(signed char, char, 2, 4)
KW_VECTORS(unsigned char, uchar, 2, 4)
KW_VECTORS(long, long, 16, 16)
KW_VECTORS(unsigned long, ulong, 16, 16)
KW_VECTORS(long long, longlong, 16, 16)
KW_VECTORS(unsigned long long, ulonglong, 16, 16)

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int a = 1, unsigned int b = 1, unsigned int c = 1) : x(a), y(b), z(c) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  operator uint3() const { return {x, y, z}; }
};
