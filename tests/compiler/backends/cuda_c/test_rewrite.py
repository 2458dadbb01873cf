"""The rewriter touches what is CUDA and nothing that only looks like it."""

from __future__ import annotations

import pytest

from kernelwright.compiler.backends.cuda_c.emulator.rewrite import rewrite
from kernelwright.compiler.backends.cuda_c.emulator.tokens import joined, tokenize


@pytest.mark.parametrize(
    "text",
    [
        "// kernel<<<1, 2>>>(x) and threadIdx.x\n",
        "/* __shared__ float s[4]; */",
        'const char* s = "k<<<1, 2>>>(); threadIdx.x";',
        'auto r = R"(__shared__ k<<<1>>>())";',
        "int x = a >> 3, y = a<<2;",
        "std::vector<std::vector<std::vector<int>>> v;",
        "dim3 place = threadIdx;",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert rewrite(text) == text


def test_tokens_join_to_the_source() -> None:
    text = "#define A(x) \\\n  x<<<1, 1>>>()\nfloat f = 1.5e-3f; char c = '\\''; /* open"
    assert joined(tokenize(text)) == text


def test_lines_stay() -> None:
    source = "void f() {\n  kernel<float,\n    3><<<dim3(1,\n 2), 64>>>(a,\n b);\n}\n"
    assert rewrite(source).count("\n") == source.count("\n")


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("k<<<g, b>>>(x, y);", '::kw::Launch(__LINE__, "k", g, b)([&](auto... kw_v) { k(kw_v...); }, x, y);'),
        (
            "ns::k<T, 3><<<g, b, s, t>>>();",
            '::kw::Launch(__LINE__, "ns::k", g, b, s, t).templates(::kw::described<T>() + ::kw::described<3>())'
            "([&](auto... kw_v) { ns::k<T, 3>(kw_v...); });",
        ),
        ("if (n) k<<<(n + 1) / 2, 32>>>(f(x, 1));", "k(kw_v...); }, f(x, 1));"),
    ],
)
def test_launches(launch: str, expected: str) -> None:
    assert expected in rewrite(launch)


def test_shared_arrays_keep_type_and_extents() -> None:
    text = rewrite("{ __shared__ __align__(16) float a[32][33], b[N * 2]; __shared__ T total; }")
    assert "typedef float kw_type_a[ 32][ 33]" in text
    assert "typedef float kw_type_b[ N* 2]" in text
    assert "typedef T kw_type_total" in text
    assert "__shared__" not in text


def test_dynamic_shared_memory() -> None:
    text = rewrite("extern __shared__ __align__(16) unsigned char raw[];")
    assert "unsigned char" in text
    assert "kw_dynamic_shared()" in text


def test_positions_and_unroll() -> None:
    text = rewrite("#pragma unroll\nint i = blockIdx.x * blockDim . y;\n#pragma unroll 4\n")
    assert "kw_blockIdx_x() * kw_blockDim_y()" in text
    assert "#pragma GCC unroll 64\n" in text
    assert "#pragma GCC unroll 4\n" in text


def test_launches_in_macros() -> None:
    assert "kw::Launch" in rewrite("#define GO(T) kernel<T><<<1, 2>>>(x)\n")


def test_a_shared_union_ends_at_its_own_semicolon() -> None:
    made = rewrite("__shared__ union { float a[4]; int b; } both, more;")
    assert "typedef union { float a [ 4 ] ; int b ; } kw_type_both;" in made
    assert made.count("kw_static_shared(") == 2


@pytest.mark.parametrize("cast", ["(void*)", "(const void *)", "reinterpret_cast<void*>", ""])
def test_a_launch_by_address_keeps_the_kernel_s_types_and_name(cast: str) -> None:
    kernel = f"{cast}(rows<float>)" if cast.startswith("r") else f"{cast}rows<float>"
    made = rewrite(f"cudaLaunchKernel({kernel}, grid, block, args, 0, stream);")
    assert made.startswith('::kw::launch_by_address(__LINE__, "rows", ')
    assert "void" not in made
