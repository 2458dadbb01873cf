// == min_of
FUNCTION T min_of_T(T a, T b) { return b < a ? b : a; }
// == max_of
FUNCTION T max_of_T(T a, T b) { return a < b ? b : a; }
// == floordiv_of
FUNCTION T floordiv_of_T(T a, T b) {
  const T d = b == 0 ? (T)1 : b;  // a division by zero has no result, but must not stop the program
  return a / d - (a % d != 0 && (a % d < 0) != (d < 0));
}
// == mod_of
FUNCTION T mod_of_T(T a, T b) {
  const T d = b == 0 ? (T)1 : b, r = a % d;
  return r != 0 && (r < 0) != (d < 0) ? r + d : r;
}
// == fmod_of
FUNCTION T fmod_of_T(T a, T b) { return a % (b == 0 ? (T)1 : b); }
// == pow_of
FUNCTION T pow_of_T(T x, T n) {
  if (n < 0) return x == 1 ? (T)1 : (x == (T)-1 ? (T)(n % 2 ? -1 : 1) : (T)0);
  T r = 1;
  for (; n > 0; n /= 2, x *= x) r *= n % 2 ? x : (T)1;
  return r;
}
