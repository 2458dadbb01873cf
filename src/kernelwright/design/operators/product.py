"""Matrix products, convolutions and attention: handed to the families of design/contraction."""

from __future__ import annotations
