// == nan_max
// NaN if either is NaN, as torch.maximum
FUNCTION T nan_max(T a, T b) { const T m = b > a ? b : a; return b != b ? b : (a != a ? a : m); }
// == nan_min
FUNCTION T nan_min(T a, T b) { const T m = b < a ? b : a; return b != b ? b : (a != a ? a : m); }
// == sign_of
FUNCTION T sign_of(T x) { return (T)(x > 0) - (T)(x < 0); }
// == mod_of
// The remainder has the sign of the divisor, as in Python
FUNCTION T mod_of(T a, T b) { const T r = fmod(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
// == floordiv_of
FUNCTION T floordiv_of(T a, T b) { return b == 0 ? a / b : floor((a - mod_of(a, b)) / b + (T)0.5); }
// == fmod_of
FUNCTION T fmod_of(T a, T b) { return fmod(a, b); }
// == pow_of
FUNCTION T pow_of(T x, T y) { return pow(x, y); }
// == sigmoid_of
FUNCTION T sigmoid_of(T x) { return (T)1 / ((T)1 + exp_of(-x)); }
// == log1p_exp_of
// log(1 + e^x) without overflow
FUNCTION T log1p_exp_of(T x) { return x > (T)0 ? x + log1p_of(exp_of(-x)) : log1p_of(exp_of(x)); }
// == tanh_plus_one_of
// 1 + tanh(x), the factor of gelu's approximation: nothing cancels in the tail
FUNCTION T tanh_plus_one_of(T x) { return (T)2 / ((T)1 + exp_of((T)-2 * x)); }
// == erf_plus_one_of
// 1 + erf(x) without cancellation
FUNCTION T erf_plus_one_of(T x) { return erfc_of(-x); }
// == logaddexp_of
// log(e^a + e^b)
FUNCTION T logaddexp_of(T a, T b) {
  const T high = nan_max(a, b), low = nan_min(a, b);
  const T sum = high + log1p_of(exp_of(low - high));
  return (high == (T)INFINITY || high == -(T)INFINITY) ? high : sum;
}
