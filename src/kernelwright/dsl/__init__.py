"""Languages: a Sketch in, one self-contained kernel file out.

`language` is the plug-in contract and the lookup by name; `cfamily` is what C-like languages share; `cpp` is C++ for CPUs.
"""

from kernelwright.dsl.language import Language, language, languages

__all__ = ["Language", "language", "languages"]
