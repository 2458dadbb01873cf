"""Reading kernels by running what their compilers made of them: PTX in, the code of every element that is written out.

Whatever language a kernel was written in, its compiler leaves PTX. It is executed here with real integers and unknown data: tiles, shared
memory, shuffles, vectors, templates, macros and tensor-core fragments only move values about and leave no trace on the tape
(lift/formulas/tape.py). What remains is arithmetic on elements of the inputs, which lift/formulas takes from there.

1. `words`         what a register holds: known bits, codes of the tape, or narrower parts of both
2. `memory`        tensors, shared memory and memory of a thread
3. `arithmetic`    operations on words; `warp` shuffles and matrix fragments; `numbers`, `transfers` and `exchanges` fill the `table`
                   of instructions with them
4. `flow`          basic blocks, post-dominators
5. `machine`       blocks of threads in step: many at a time, branches on known and on unknown conditions
6. `follow`        a launch's blocks, as many as the time allows; `triton` a recorded launch → PTX with its mathematics still by name
"""
