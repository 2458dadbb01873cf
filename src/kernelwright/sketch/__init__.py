"""The Unified Sketch: the algorithm and its schedule as a real language, in no particular target language.

1. `nodes`      the grammar and its meaning; `walk` visits it
2. `parse`      source text → Sketch (`expressions` and `literals` read what stands inside statements)
3. `print`      Sketch → source text
4. `index`      the algebra of integer expressions: normal forms, ranges, divisors, proofs
5. `types`      shape and dtype of every tile (`dtypes`: which operation takes and gives which)
6. `check`      the rules that can be proved beforehand: `declare` declarations, `prove` bounds inside loops, `races`
7. `interpret`  a Sketch run on torch tensors: `operations`, `memory`, `observe` for strict mode, `witness` for one element;
                `compare` with a module

Importing this package, or anything but `interpret` and `compare`, imports no torch. The language is described in docs/sketch.md.
"""
