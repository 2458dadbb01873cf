"""Skills: what their files must have, which ones are chosen for a task, and that every worked example is accepted by the judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.agents.knowledge.families import FAMILIES, families
from kernelwright.agents.knowledge.skills import Example, choose, load, nearest_examples, read
from kernelwright.compiler.language import languages
from kernelwright.core.errors import ConfigError
from kernelwright.core.task import Task
from kernelwright.judge import Judge

TARGETS = Path(load.__code__.co_filename).parents[2] / "target"
ALL = {name: load([one.skills]) for name, one in languages().items()}
EXAMPLES = [(name, example) for name, skills in sorted(ALL.items()) for skill in skills for example in skill.examples]
QUICK = {("cpp", "pointwise"), ("cpp", "matmul"), ("triton", "softmax"), ("cuda_c", "reduction"), ("tilelang", "scan")}
"""Worked examples that every run looks at; the slow ones look at all of them."""


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge


def accepted(judge: Judge, dsl: str, example: Example) -> None:
    if dsl in ("triton", "tilelang"):
        pytest.importorskip(dsl, reason=f"the extra {dsl} is not installed")
    verdict = judge.verify(Task.from_source(example.task), example.kernel, dsl=dsl, timing=False, budget_s=0.5)
    assert verdict.ok, f"{verdict.status}: {verdict.reason}"


@pytest.mark.parametrize(
    ("dsl", "example"), [(d, e) for d, e in EXAMPLES if (d, e.skill) in QUICK], ids=lambda e: getattr(e, "skill", e)
)
def test_worked_examples_are_accepted_by_the_judge(dsl: str, example: Example, judge: Judge) -> None:
    accepted(judge, dsl, example)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dsl", "example"), [(d, e) for d, e in EXAMPLES if (d, e.skill) not in QUICK], ids=lambda e: getattr(e, "skill", e)
)
def test_all_worked_examples_are_accepted_by_the_judge(dsl: str, example: Example, judge: Judge) -> None:
    accepted(judge, dsl, example)


@pytest.mark.parametrize("dsl", sorted(ALL))
def test_every_family_of_operators_has_a_skill_with_an_example(dsl: str) -> None:
    covered = {family for skill in ALL[dsl] for family in skill.families if skill.examples}
    unwritten = {"fft", "linalg"}  # told apart for the sake of lessons; nobody has written a skill for them yet
    assert {family for family, _ in FAMILIES} - unwritten | {"pointwise"} <= covered


@pytest.mark.parametrize("dsl", sorted(ALL))
def test_a_coder_is_always_shown_how_a_kernel_file_looks(dsl: str) -> None:
    for first, _ in FAMILIES:
        chosen = choose(ALL[dsl], language=dsl, families=(first, "norm", "pointwise"), stage="code", words="import torch")
        assert {"kernel_file", "pitfalls"} <= {one.skill.name for one in chosen}


def test_the_files_of_targets_are_skills() -> None:
    assert {"cpu", "cuda"} <= {family for skill in load([TARGETS]) for family in skill.families}


@pytest.mark.parametrize(
    ("operators", "wanted"),
    [
        (["addmm", "gelu", "t"], ("matmul", "pointwise")),
        (["convolution", "native_batch_norm", "relu_"], ("convolution", "norm", "pointwise")),
        (["_softmax"], ("softmax",)),
        (["aten.add.Tensor"], ("pointwise",)),
        (["clone", "detach"], ("pointwise",)),
        (["embedding", "mean"], ("index", "reduction")),
        (["max_pool2d_with_indices"], ("pooling",)),
        (["_scaled_dot_product_flash_attention_for_cpu"], ("attention",)),
    ],
)
def test_the_families_of_operators(operators: list[str], wanted: tuple[str, ...]) -> None:
    assert families(operators) == wanted


def test_the_skill_of_the_first_family_comes_first_and_says_why() -> None:
    chosen = choose(ALL["cpp"], language="cpp", families=("norm", "pointwise"), stage="code", words="layer norm mean variance")
    assert chosen[0].skill.name == "norm"
    assert chosen[0].reason == "family norm"
    names = [one.skill.name for one in chosen]
    assert {"kernel_file", "pitfalls", "pointwise"} <= set(names)
    assert "convolution" not in names


def test_the_choice_keeps_to_its_limit() -> None:
    chosen = choose(ALL["cpp"], language="cpp", families=("norm",), stage="code", limit=3000)
    assert 0 < sum(len(one.skill.text) for one in chosen) <= 3000


def test_the_nearest_worked_example_is_of_the_task_s_family() -> None:
    chosen = choose(ALL["cpp"], language="cpp", families=("scan",), stage="code", words="cumsum", limit=1 << 30)
    assert [example.skill for example in nearest_examples(chosen, "torch.cumsum(x, dim=1)", 1)] == ["scan"]


def test_examples_are_not_part_of_the_text() -> None:
    skill = next(skill for skill in ALL["cpp"] if skill.name == "softmax")
    assert skill.examples
    assert "class ModelNew" not in skill.text
    assert "Worked example" not in skill.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# no front matter", "begins with front matter"),
        ("---\nlanguage: cpp\n---\n", "lacks families, stages, title"),
        ("---\nlanguage: cpp\ncolour: red\n---\n", "is no line of front matter"),
        ("---\nlanguage: cpp\nfamilies: any\nstages: dream\ntitle: x\n---\n", "unknown stage 'dream'"),
        ("---\nlanguage: cpp\nfamilies: any\nstages: code\ntitle: x\n---\n```python kernel\nx\n```\n", "are pairs"),
    ],
)
def test_a_file_that_is_no_skill_says_what_is_wrong(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "skill.md").write_text(text)
    with pytest.raises(ConfigError, match=words):
        read(tmp_path / "skill.md")
