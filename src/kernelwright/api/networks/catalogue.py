"""All networks by name: ours, and those of `transformers` where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernelwright.core.errors import ConfigError

OURS = (
    "resnet",
    "mobilenet",
    "convnext",
    "unet",
    "patch-transformer",
    "decoder",
    "experts",
    "selective-state",
    "recurrent",
    "recommender",
)
HUB = ("bert", "gpt2", "llama", "qwen3", "llama-decode", "t5", "vit", "clip", "whisper", "mixtral", "mamba")


@dataclass(frozen=True)
class Case:
    """A network as it is timed: in evaluation mode, with random weights, and inputs of one batch."""

    model: Any
    inputs: tuple[Any, ...]


def names() -> list[str]:
    """What can be made here."""
    return [*OURS, *(HUB if importlib.util.find_spec("transformers") else ())]


def make(name: str, batch: int) -> Case:
    """The network and its inputs, the same in every process."""
    import torch

    if name not in (*OURS, *HUB):
        raise ConfigError(f"there is no network {name!r}; the networks are {', '.join((*OURS, *HUB))}")
    if name in HUB and not importlib.util.find_spec("transformers"):
        raise ConfigError(f"the network {name!r} needs transformers: pip install 'kernelwright[networks]'")
    torch.manual_seed(0)
    if name in HUB:
        from kernelwright.api.networks.hub import MAKERS

        model, inputs = MAKERS[name](batch)
    else:
        model, inputs = _ours()[name](batch)
    return Case(model.eval(), inputs)


def _ours() -> dict[str, Callable[[int], tuple[Any, tuple[Any, ...]]]]:
    import torch

    from kernelwright.api.networks import sequences as s
    from kernelwright.api.networks import vision as v

    return {
        "resnet": lambda b: (v.ResNet(), v.images(b, 96)),
        "mobilenet": lambda b: (v.MobileNet(), v.images(b, 128)),
        "convnext": lambda b: (v.ConvNeXt(), v.images(b, 96)),
        "unet": lambda b: (v.UNet(), v.images(b, 64)),
        "patch-transformer": lambda b: (v.PatchTransformer(), v.images(b, 128)),
        "decoder": lambda b: (s.Decoder(b), (s.tokens(b, 1, 4096), torch.tensor([100]))),
        "experts": lambda b: (s.Experts(), (torch.randn(b, 32, 256),)),
        "selective-state": lambda b: (s.SelectiveState(), (torch.randn(b, 32, 128),)),
        "recurrent": lambda b: (s.Recurrent(), (s.tokens(b, 32, 2000),)),
        "recommender": lambda b: (s.Recommender(), (torch.randn(16 * b, 13), torch.randint(0, 20000, (16 * b, 16, 4)))),
    }
