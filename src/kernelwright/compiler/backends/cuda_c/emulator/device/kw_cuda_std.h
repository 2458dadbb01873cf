// libcu++ in small: cuda::std is std here, since a thread of the emulator runs plain C++; beside it what cuda/functional and cuda/cmath
// add. The compiler for the target reads the real headers.
#pragma once
#include <algorithm>
#include <array>
#include <cfloat>
#include <climits>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cuda {
namespace std {
using namespace ::std;
}
template <typename T = void> struct maximum { constexpr T operator()(const T& a, const T& b) const { return a < b ? b : a; } };
template <> struct maximum<void> {
  template <typename A, typename B> constexpr auto operator()(const A& a, const B& b) const { return a < b ? b : a; }
};
template <typename T = void> struct minimum { constexpr T operator()(const T& a, const T& b) const { return b < a ? b : a; } };
template <> struct minimum<void> {
  template <typename A, typename B> constexpr auto operator()(const A& a, const B& b) const { return b < a ? b : a; }
};
template <typename R, typename F> constexpr F proclaim_return_type(F f) { return f; }
template <typename T, typename U> constexpr auto ceil_div(T a, U b) { return (a + b - 1) / b; }
template <typename T, typename U> constexpr auto round_up(T a, U b) { return (a + b - 1) / b * b; }
}  // namespace cuda
