"""Algebra that saves work: each file is one identity, applied where it pays.

`pooled_convolution` (an average of a convolution is a convolution), `summed_product` (a sum of a product is a product with a sum),
`split_reduction` (long reductions in parts, so that all cores have work), `sections` (parts of a batch one after the other).
"""
