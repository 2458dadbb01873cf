"""Algebra on what operators are made of, while they become values: `sections` (parts of a batch one after the other), `summed_product`
(a sum of a product is a product with a sum)."""
