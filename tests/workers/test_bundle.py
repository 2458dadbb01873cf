"""Bundles keep values, dtypes, strides and structure; they are sealed; a forged header is refused never read out of bounds."""

from __future__ import annotations

import copy
import errno
import math
import os
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.workers import bundle
from kernelwright.workers.channel import ChannelGarbage


def there_and_back(tree: Any, *, writable: bool = False) -> Any:
    packed = bundle.pack(tree)
    try:
        return bundle.unpack(packed.header, packed.fd, writable=writable)
    finally:
        packed.close()


@pytest.mark.parametrize("name", bundle.DTYPES)
@pytest.mark.parametrize("writable", [False, True])
def test_every_dtype_survives_bit_for_bit(name: str, writable: bool) -> None:
    dtype = getattr(torch, name)
    tensor = torch.arange(48, dtype=torch.uint8).remainder(2 if dtype is torch.bool else 50)
    tensor = tensor.repeat_interleave(dtype.itemsize).view(dtype).reshape(6, 8)
    back = there_and_back(tensor, writable=writable)
    assert back.dtype == dtype
    assert back.shape == tensor.shape
    assert torch.equal(back.view(torch.uint8), tensor.view(torch.uint8))


@pytest.mark.parametrize("writable", [False, True])
@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.t(),
        lambda t: t[:, 1::3],
        lambda t: t[2:5, 3],
        lambda t: t[0, 0],
        lambda t: t[:0],
        lambda t: t[:1].expand(5, 12),
        lambda t: t.reshape(-1).unfold(0, 4, 2),
        lambda t: t.reshape(2, 3, 2, 6).to(memory_format=torch.channels_last),
    ],
)
def test_strides_survive(view: Any, writable: bool) -> None:
    tensor = view(torch.arange(72.0).reshape(6, 12))
    back = there_and_back(tensor, writable=writable)
    assert back.stride() == tensor.stride()
    assert torch.equal(back, tensor)


def test_structure_and_scalars_survive() -> None:
    tree = {"a": [torch.ones(2), None, True, 3, "s"], "b": (1.5, float("inf"), [], ()), 7: {}}
    back = there_and_back(tree)
    assert torch.equal(back["a"].pop(0), torch.ones(2))
    assert back == {"a": [None, True, 3, "s"], "b": (1.5, float("inf"), [], ()), 7: {}}
    assert math.isnan(there_and_back(float("nan")))


def test_memory_beside_a_view_does_not_travel() -> None:
    secret = torch.full((8, 8), 7.0)
    packed = bundle.pack(secret[:, ::2])
    content = os.pread(packed.fd, 1 << 20, 0)
    packed.close()
    assert torch.frombuffer(bytearray(content), dtype=torch.float32).sum() == 32 * 7.0


def test_a_bundle_cannot_be_changed_by_anybody_and_writes_stay_private() -> None:
    packed = bundle.pack(torch.zeros(4))
    with pytest.raises(PermissionError):
        os.pwrite(packed.fd, b"x", 0)
    first = bundle.unpack(packed.header, packed.fd)
    first.fill_(1.0)
    assert torch.equal(bundle.unpack(packed.header, packed.fd), torch.zeros(4))
    packed.close()


def test_an_unsealed_or_foreign_file_is_refused(tmp_path: Any) -> None:
    header = {"size": 16, "tree": {"t": ["float32", [4], [1], 0]}}
    loose = os.memfd_create("loose", os.MFD_ALLOW_SEALING)
    os.ftruncate(loose, 16)
    path = tmp_path / "file"
    path.write_bytes(bytes(16))
    plain = os.open(path, os.O_RDWR)
    for fd in (loose, plain):
        with pytest.raises(ChannelGarbage):
            bundle.unpack(header, fd)
        os.close(fd)


@pytest.mark.parametrize("value", [object(), {1.5: 2}, torch.ones(3).to_sparse(), {"deep": [[[[[[[[[[[[[[1]]]]]]]]]]]]]]}])
def test_what_cannot_travel_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError):
        bundle.pack(value)


@pytest.mark.parametrize(
    "tensor",
    [
        ["float32", [4], [1], 8],
        ["float32", [5], [1], 0],
        ["float32", [4], [-1], 0],
        ["float32", [-4], [1], 0],
        ["float32", [4], [1], -4],
        ["float32", [4], [1, 1], 0],
        ["float32", [1 << 47, 1 << 47], [0, 0], 0],
        ["float32", [2, 2], [1 << 47, 1], 0],
        ["float32", [4.0], [1], 0],
        ["float32", [True], [1], 0],
        ["quint8", [4], [1], 0],
        ["__class__", [4], [1], 0],
        ["float32", [4], [1], 2],
        ["float32"],
        None,
    ],
)
def test_forged_tensors_are_refused(tensor: Any) -> None:
    packed = bundle.pack(torch.zeros(4))
    with pytest.raises(ChannelGarbage):
        bundle.unpack({"size": 16, "tree": {"t": tensor}}, packed.fd)
    packed.close()


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["t", "l", "u", "d", "f", "v", "float32"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["t", "l", "u", "d", "f", "v", "x"]), inner, max_size=2)
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(junk, st.sampled_from(["tree", "size", "replace"]))
def test_any_header_unpacks_or_is_garbage(value: Any, place: str) -> None:
    packed = bundle.pack([torch.zeros(4), {"k": 1}])
    header: Any = copy.deepcopy(packed.header)
    if place == "replace":
        header["tree"]["l"][0] = value
    else:
        header[place] = value
    try:
        bundle.unpack(header, packed.fd)
    except ChannelGarbage:
        pass
    finally:
        packed.close()


def test_a_digest_stands_for_structure_and_bytes() -> None:
    first, other = torch.arange(6.0), torch.arange(6.0)
    other[5] = -1
    trees = [[first], [first.clone()], (first,), [first.view(2, 3)], [other]]
    packed = [bundle.pack(tree) for tree in trees]
    digests = [bundle.digest(item.header, item.fd) for item in packed]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 4
    for item in packed:
        item.close()


def test_a_page_that_the_kernel_holds_for_a_moment_costs_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = [OSError(errno.EBUSY, "Device or resource busy")] * 2
    real = bundle._add_seals

    def seal(fd: int, command: int, seals: int) -> object:
        if refusals:
            raise refusals.pop()
        return real(fd, command, seals)

    monkeypatch.setattr(bundle, "_add_seals", seal)
    packed = bundle.pack([torch.ones(3)])
    with pytest.raises(PermissionError):
        os.write(packed.fd, b"x")
    packed.close()

    monkeypatch.setattr(bundle, "SEALING_PAUSES", (0.0,))
    refusals.append(OSError(errno.EBUSY, "Device or resource busy"))
    with pytest.raises(OSError, match="busy"):
        bundle.pack([torch.ones(3)])
