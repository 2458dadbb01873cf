"""Kernelwright: PyTorch in; a verified, faster kernel out."""

__version__ = "0.1.0"
