"""`.cu` files as they stand: what is called and with what is found or asked for; what they compute is recovered."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernelwright.compiler.lift import door
from kernelwright.core.errors import KernelFileError
from kernelwright.core.kernel import Kernel
from kernelwright.sketch.interpret import interpreter

FILES = Path(__file__).parent / "files"


def kernel(name: str, entry: str | None = None, inputs: str | None = None) -> Kernel:
    return Kernel.from_path(FILES / f"{name}.cu", entry=entry, inputs=inputs)


def lifted(made: Kernel) -> door.Lifted:
    return door.lift(made.source, made.dsl, path=made.path, original=made.original)


def test_one_sentence_asks_for_what_the_file_does_not_say() -> None:
    with pytest.raises(
        KernelFileError, match=r"several functions launch kernels \(run_row_sums, run_row_sums_vectors\): say which"
    ):
        kernel("reductions")
    with pytest.raises(
        KernelFileError, match=r'as in --inputs "f32\[rows,cols\], out f32\[rows,cols\], rows, cols; rows=64, cols=64"'
    ):
        kernel("reductions", "run_row_sums")
    with pytest.raises(KernelFileError, match="is a kernel: say its launch too, as in --entry 'product<<<"):
        kernel("reductions", "product<16>", "f32[M,K], f32[K,N], f32[M,N], M, N, K; M=8, N=8, K=8")
    with pytest.raises(KernelFileError, match="it defines no nothing; it has row_sums"):
        kernel("reductions", "nothing", "f32[4]")
    with pytest.raises(KernelFileError, match="has 4 parameters, --inputs names 2"):
        kernel("reductions", "run_row_sums", "f32[R,C], R; R=8, C=8")
    with pytest.raises(KernelFileError, match="names C and gives no size"):
        kernel("reductions", "run_row_sums", "f32[R,C], f32[R], R, C; R=8")


def test_what_a_kernel_writes_is_the_result_and_sizes_are_read_off_shapes() -> None:
    made = kernel("reductions", "run_row_sums", "f32[R,C], f32[R], R, C; R=6, C=40")
    assert "def forward(self, x):" in made.source
    assert "R = x.shape[0]" in made.source
    assert made.original == (FILES / "reductions.cu").read_text()


def test_constant_memory_that_the_host_fills_and_several_launches() -> None:
    found = door.explain(
        (made := kernel("smooth", inputs="f32[R,C], f32[5], out f32[R,C], R, C; R=5, C=72")).source,
        "cuda_c",
        path=made.path,
        original=made.original,
    )
    assert found["formulas"] == [
        "s0[i, j] = sum[k < 5] filter[k] * (e[i, j + k - 2] if 0 <= j + k - 2 < 72 else 0)    for i < 5, j < 72",
        "s1[i] = sum[j < 72] s0[i, j] * s0[i, j]    for i < 5",
        "out[i, j] = rsqrt(1e-06 + s1[i]) * s0[i, j]    for i < 5, j < 72",
    ]
    assert "def smooth(e, filter):" in found["pytorch"]
    assert "smooth on a grid of 1 x 5 x 1" in found["launches"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "inputs"),
    [
        ("run_row_sums", "f32[R,C], f32[R], R, C; R=6, C=200"),
        ("run_row_sums_vectors", "f32[R,C], out f32[R], R, C, 64; R=6, C=200"),
    ],
)
def test_row_sums(entry: str, inputs: str) -> None:
    x = torch.randn(6, 200)
    made = interpreter.call(lifted(kernel("reductions", entry, inputs)).sketch, [x], {})
    torch.testing.assert_close(made, x.sum(1), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_a_kernel_with_its_launch_in_the_entry() -> None:
    entry = "product<16><<<dim3((N+15)/16, (M+15)/16), dim3(16, 16)>>>"
    made = kernel("reductions", entry, "f32[M,K], f32[K,N], out f32[M,N], M, N, K; M=24, N=40, K=33")
    a, b = torch.randn(24, 33), torch.randn(33, 40)
    torch.testing.assert_close(interpreter.call(lifted(made).sketch, [a, b], {}), a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_functions_of_the_library_of_mathematics() -> None:
    made = kernel("library", "many<<<(N+127)/128, 128>>>", "f32[N], i32[N]<5, out f32[N], N; N=300")
    x, n = torch.randn(300), torch.randint(0, 5, (300,)).int()
    a = x.exp() + torch.trunc(x + 0.5 * x.sign()) + x.clamp(min=0.25) - x.sign() * x.abs() ** (1 / 3) + x.exp2()
    a = a + (x * x + 4).sqrt() + torch.special.ndtr(x)
    b = x / 3 + 1 / (x * x + 1) + x.abs().sqrt() + x.clamp(0, 1) + (x - 0.5).clamp(min=0)
    want = a * b + torch.maximum(x.floor().int(), n) + 128
    torch.testing.assert_close(interpreter.call(lifted(made).sketch, [x, n], {}), want, rtol=1e-4, atol=1e-4)
