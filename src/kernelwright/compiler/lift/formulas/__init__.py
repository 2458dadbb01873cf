"""From what blocks of threads computed to what a whole forward computes.

In: a launch, followed by its language (real indices, unknown data): a tape of arithmetic, and the code of every element that was written.
Out: a sketch of the forward, designed anew. Where a kernel computes its elements (tiles, threads, registers) has left no trace by then.

1. `tape`      arithmetic of lanes, and nothing else; `functions` what it computes of constants; `memory` the tensors behind it, and
               what a followed launch is
2. `terms`     one element's formula off the tape; sums, maxima, arguments of maxima with all their terms
3. `general`, `affine`  formulas of sampled elements → one formula of all: addresses fitted as affine, sums as folds over boxes
4. `graph`     formulas → the designer's lazy values
5. `forward`   all launches of a forward with torch's operators in between; the sketch that the designer makes of them
6. `refusal`   what cannot be lifted, with its line
"""
