"""Algebra that saves work: each file is one identity, applied where it pays.

`pooled_convolution` (an average of a convolution is a convolution),
`split_reduction` (long reductions in parts, so that all cores have work).
"""
