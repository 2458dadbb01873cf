"""A kernel in C: a header with a C ABI, the C++ source behind it, and an example that calls it. No Python, no torch."""

from __future__ import annotations

from pathlib import Path

from kernelwright.api.packages.contents import Contents
from kernelwright.compiler.backends.cpp.c_library import Argument, Library


def write(contents: Contents, out: Path) -> Path:
    """The folder with NAME.h, NAME.cpp (one for each set of shapes), example.cpp and build.sh."""
    folder = out / contents.name
    folder.mkdir(parents=True, exist_ok=True)
    guard = f"KERNELWRIGHT_{contents.name.upper()}_H"
    parts = [_declared(library) for library in contents.libraries]
    head = f"/* {contents.about.splitlines()[0]}\n   Written by Kernelwright. Tensors are contiguous and row-major. */\n"
    (folder / f"{contents.name}.h").write_text(
        f'{head}#ifndef {guard}\n#define {guard}\n#ifdef __cplusplus\nextern "C" {{\n#endif\n\n'
        + "\n".join(parts)
        + "\n#ifdef __cplusplus\n}\n#endif\n#endif\n"
    )
    for library in contents.libraries:
        (folder / f"{library.name}.cpp").write_text(library.text)
    (folder / "example.cpp").write_text(_example(contents))
    flags = [f for f in contents.libraries[0].flags if f not in ("-shared", "-fPIC")]
    sources = " ".join(f"{library.name}.cpp" for library in contents.libraries)
    (folder / "build.sh").write_text(f"#!/bin/sh\nset -e\n${{CXX:-g++}} {' '.join(flags)} example.cpp {sources} -o example\n")
    (folder / "build.sh").chmod(0o755)
    return folder


def _declared(library: Library) -> str:
    lines = [f"/* inputs: {_listed(library.inputs)}", f"   outputs: {_listed(library.outputs)}"]
    lines.append("   kept: what prepare() made of the parameters; workspace: for temporaries (both aligned to 64 bytes). */")
    upper = library.name.upper()
    lines += [f"#define {upper}_KEPT_BYTES {library.kept}", f"#define {upper}_WORKSPACE_BYTES {library.workspace}"]
    lines.append(f"void {library.name}(void* const* inputs, void* const* outputs, void* kept, void* workspace);")
    if library.kept:
        lines.append(f"void {library.name}_prepare(void* const* inputs, void* kept);")
    return "\n".join(lines) + "\n"


def _listed(arguments: tuple[Argument, ...]) -> str:
    return ", ".join(f"[{k}] {a.name} {a.dtype.c_name}{list(a.shape)}" for k, a in enumerate(arguments)) or "none"


def _example(contents: Contents) -> str:
    """Reads the inputs' bytes from a file, runs once, writes the outputs' bytes to another: enough to check it against anything."""
    library = contents.libraries[0]
    given = ", ".join(str(max(a.bytes, 1)) for a in library.inputs) or "1"
    made = ", ".join(str(max(a.bytes, 1)) for a in library.outputs) or "1"
    upper = library.name.upper()
    prepare = f"  {library.name}_prepare(inputs.data(), kept);\n" if library.kept else ""
    return f"""// ./example INPUTS OUTPUTS: the inputs' bytes one after the other in one file, the outputs' in another
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "{contents.name}.h"

static void* memory(size_t bytes) {{ return std::aligned_alloc(64, (bytes + 64) / 64 * 64); }}

int main(int count, char** names) {{
  if (count != 3) return std::fprintf(stderr, "usage: %s INPUTS OUTPUTS\\n", names[0]), 2;
  const size_t given[] = {{{given}}}, made[] = {{{made}}};
  std::vector<void*> inputs, outputs;
  FILE* from = std::fopen(names[1], "rb");
  if (!from) return std::perror(names[1]), 1;
  for (int k = 0; k < {len(library.inputs)}; k++) {{
    inputs.push_back(memory(given[k]));
    if (std::fread(inputs[k], 1, given[k], from) != given[k]) return std::fprintf(stderr, "too short\\n"), 1;
  }}
  std::fclose(from);
  for (int k = 0; k < {len(library.outputs)}; k++) outputs.push_back(memory(made[k]));
  void* kept = memory({upper}_KEPT_BYTES);
  void* workspace = memory({upper}_WORKSPACE_BYTES);
{prepare}  {library.name}(inputs.data(), outputs.data(), kept, workspace);
  FILE* to = std::fopen(names[2], "wb");
  for (int k = 0; k < {len(library.outputs)}; k++) std::fwrite(outputs[k], 1, made[k], to);
  return std::fclose(to);
}}
"""
