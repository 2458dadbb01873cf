"""PyTorch in, kernels out: the built-in Designer and Coder.

1. `frontend/`   a module captured by torch.export; ATen operators become lazy values
2. `graph/`      lazy values, and rewrites that save work
3. `schedule/`   what is materialised, in which loops and tiles: schedule families write sketches
4. `lower/`      the middle end of all languages: tile graph, elements, grids, the Python file around a kernel
5. `backends/`   C++, CUDA-C, Triton, TileLang: how each is emitted, built, and run without its device (`offdevice/`)
6. `lift/`       other people's kernels back to sketches

`designer.py` is the door for modules and tasks, `language.py` what a language plugs in.
"""
