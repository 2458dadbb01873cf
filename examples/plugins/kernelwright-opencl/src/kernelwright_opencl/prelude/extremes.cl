// == put_max
// By compare and swap, since floats and NaN have no instruction
FUNCTION void put_max(volatile __global T* at, T x) {
  volatile __global B* const word = (volatile __global B*)at;
  for (B old = *word;;) {
    const T now = as_T(old);
    if (!(x > now || x != x)) return;
    const B seen = swap_word(word, old, as_B(x));
    if (seen == old) return;
    old = seen;
  }
}
// == put_min
FUNCTION void put_min(volatile __global T* at, T x) {
  volatile __global B* const word = (volatile __global B*)at;
  for (B old = *word;;) {
    const T now = as_T(old);
    if (!(x < now || x != x)) return;
    const B seen = swap_word(word, old, as_B(x));
    if (seen == old) return;
    old = seen;
  }
}
