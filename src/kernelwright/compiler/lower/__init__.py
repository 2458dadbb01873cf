"""The middle end of all languages: a sketch's kernels as graphs of tile values, and what every backend needs to write them."""
