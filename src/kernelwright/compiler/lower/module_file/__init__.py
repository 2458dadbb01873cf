"""The Python file around kernels: `ModelNew` with the reference's parameters, which allocates, calls and returns.

In: programs, one for each set of input shapes that a task has: a sketch with its kernels in a language. Out: the text of one module
that needs torch and the language's own tools, and nothing of Kernelwright.

1. `compiled`   for languages of the C family: sources that are built and called by ctypes; `forward` writes the methods,
                `workspace` lays out temporaries in one block of memory
2. `launches`   for languages whose kernels Python launches
3. `state`      for both: what is declared under the names of the reference's state_dict
4. `values`     for both: extents, returned structures and library calls as Python
"""
