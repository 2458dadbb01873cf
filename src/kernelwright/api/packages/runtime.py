"""A kernel as a PyTorch operator. Needs torch and nothing else: the libraries beside this file are built.

Written by Kernelwright. `kernel.json` says what the libraries take; the one for this machine's instruction set is loaded when the operator
is first called. The operator is registered with torch.library: it works under torch.compile and torch.export.
"""

import ctypes
import json
import platform
import threading
from pathlib import Path
from typing import Any

import torch

_HERE = Path(__file__).parent
_ABOUT = json.loads((_HERE / "kernel.json").read_text())
_NAME, _SPACE = _ABOUT["name"], f"kernelwright_{_ABOUT['name']}_{_ABOUT['hash']}"
_LOADED: dict[str, Any] = {}
_KEPT: dict[str, Any] = {}
_HELD: list[Any] = []  # what is registered stays as long as this
_LOCK = threading.Lock()
_NEEDS = {"avx512": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}, "avx2": {"avx2", "fma", "f16c", "bmi2"}}


def instruction_set() -> str:
    """What this machine's processor has, best first: avx512, avx2 or neon."""
    if platform.machine() in ("aarch64", "arm64"):
        return "neon"
    with open("/proc/cpuinfo") as file:
        flags = next((set(line.split(":")[1].split()) for line in file if line.startswith("flags")), set())
    return next((name for name, needs in _NEEDS.items() if needs <= flags), "")


def _library(variant: dict[str, Any]) -> tuple[Any, Any]:
    """The functions of a variant: run, and prepare where something depends on parameters alone."""
    found = _LOADED.get(variant["symbol"])
    if found is None:
        with _LOCK:
            name = f"{variant['symbol']}.{instruction_set()}.so"
            if not (_HERE / name).exists():
                have = ", ".join(sorted(p.suffixes[-2][1:] for p in _HERE.glob(f"{variant['symbol']}.*.so")))
                raise RuntimeError(f"{_NAME} was built for {have}, not for this machine's processor")
            runtime = next((Path(torch.__file__).parent / "lib").glob("libgomp*.so*"), "libgomp.so.1")
            ctypes.CDLL(str(runtime), mode=ctypes.RTLD_GLOBAL)  # torch's own: one pool of threads
            library = ctypes.CDLL(str(_HERE / name))
            run = getattr(library, variant["symbol"])
            run.argtypes, run.restype = [ctypes.c_void_p] * 4, None
            prepare = getattr(library, variant["symbol"] + "_prepare") if variant["kept"] else None
            if prepare is not None:
                prepare.argtypes, prepare.restype = [ctypes.c_void_p] * 2, None
            found = _LOADED[variant["symbol"]] = run, prepare
    return found


def _chosen(tensors: Any) -> dict[str, Any]:
    variant: dict[str, Any]
    for variant in _ABOUT["variants"]:
        if all(list(t.shape) == list(a["shape"]) for t, a in zip(tensors, variant["inputs"], strict=True)):
            break
    else:
        made = [[a["shape"] for a in v["inputs"]] for v in _ABOUT["variants"]]
        raise ValueError(f"{_NAME} was made for inputs of the shapes {made}, not {[list(t.shape) for t in tensors]}")
    for tensor, argument in zip(tensors, variant["inputs"], strict=True):
        if tensor.dtype != getattr(torch, argument["dtype"]):
            raise ValueError(f"{_NAME}: {argument['name']} must be {argument['dtype']}, not {tensor.dtype}")
    return variant


def _pointers(tensors: Any) -> Any:
    return (ctypes.c_void_p * max(1, len(tensors)))(*[t.data_ptr() for t in tensors])


def _memory(size: int) -> tuple[Any, int]:
    block = torch.empty(size + 64, dtype=torch.uint8)
    return block, -(-block.data_ptr() // 64) * 64


def _prepared(variant: dict[str, Any], prepare: Any, tensors: Any) -> Any:
    """What is made of the parameters, kept until one of them changes."""
    used = [t for t, a in zip(tensors, variant["inputs"], strict=True) if a["role"] == "param"]
    known = not any(t.is_inference() for t in used)
    key = tuple((t.data_ptr(), t._version) for t in used) if known else None
    kept = _KEPT.get(variant["symbol"])
    if not known or kept is None or kept[0] != key:
        block, place = _memory(variant["kept"])
        prepare(_pointers(tensors), place)
        kept = _KEPT[variant["symbol"]] = key, block, place, used
    return kept


def _run(*given: Any) -> Any:
    variant = _chosen(given)
    run, prepare = _library(variant)
    tensors = [t.detach().contiguous() for t in given]
    kept = _prepared(variant, prepare, tensors) if prepare is not None else None
    outputs = {a["name"]: torch.empty(a["shape"], dtype=getattr(torch, a["dtype"])) for a in variant["outputs"]}
    _block, place = _memory(variant["workspace"]) if variant["workspace"] else (None, None)
    run(_pointers(tensors), _pointers(list(outputs.values())), kept[2] if kept else None, place)
    names = [a["name"] for a in variant["inputs"]]
    made = [outputs[n] if n in outputs else tensors[names.index(n)].clone() for n in variant["results"]]
    return made[0] if len(made) == 1 else tuple(made)


def _fake(*tensors: Any) -> Any:
    variant = _chosen(tensors)
    known = {a["name"]: a for a in (*variant["inputs"], *variant["outputs"])}
    made = [tensors[0].new_empty(known[n]["shape"], dtype=getattr(torch, known[n]["dtype"])) for n in variant["results"]]
    return made[0] if len(made) == 1 else tuple(made)


def _register() -> Any:
    first = _ABOUT["variants"][0]
    given = ", ".join(f"Tensor {a['name']}" for a in first["inputs"])
    results = "Tensor" if len(first["results"]) == 1 else f"({', '.join(['Tensor'] * len(first['results']))})"
    try:
        return getattr(getattr(torch.ops, _SPACE), _NAME)  # loaded before, under another module's name
    except AttributeError:
        pass
    # not custom_op: its first call imports torch._dynamo, which takes a second
    _HELD.append(library := torch.library.Library(_SPACE, "FRAGMENT"))
    library.define(f"{_NAME}({given}) -> {results}", tags=(torch.Tag.pt2_compliant_tag,))
    library.impl(_NAME, _run, "CPU")
    torch.library.register_fake(f"{_SPACE}::{_NAME}", _fake, lib=library)
    return getattr(getattr(torch.ops, _SPACE), _NAME)


operator = _register()
"""The operator: tensors in the order of kernel.json's inputs; the results in order."""
globals()[_NAME] = operator
__all__ = [_NAME, "instruction_set", "operator"]
