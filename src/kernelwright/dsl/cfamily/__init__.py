"""What C++ and its relatives share: integer polynomials, C types, and the table from sketch operations to C expressions.

`polynomial` is index arithmetic with ranges, `types` names dtypes in C, `expressions` is the table of operations, `values` turns
the statements of a kernel into a graph of tile values. No file here knows how a loop is written: that is the language's own.
"""
