"""Code and patches out of answers: what is found, what is refused, and with which words it goes back to the model."""

from __future__ import annotations

import pytest

from kernelwright.agents.answers import LARGEST, Unreadable, apply, code_block, edits, revised

FILE = (
    "class ModelNew:\n    def forward(self, x):\n        y = x + 1\n        return y\n\ndef other():\n    y = 2\n    return y\n"
)


def patch(search: str, replace: str) -> str:
    return f"The sign is wrong.\n\n<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


def test_the_last_fitting_block_is_taken() -> None:
    answer = f"First idea:\n```python\nclass Old: ModelNew\n```\nBetter:\n```python\n{FILE}```\nand run\n```bash\nls\n```\n"
    assert code_block(answer, what="kernel file", must_contain="ModelNew") == FILE


def test_a_block_may_contain_backticks_when_its_fence_is_longer() -> None:
    assert (
        code_block("````python\nx = '```'\nModelNew\n````", what="kernel file", must_contain="ModelNew")
        == "x = '```'\nModelNew\n"
    )


def test_bare_source_is_accepted() -> None:
    assert code_block(FILE, what="kernel file", must_contain="ModelNew") == FILE


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("I am sorry, I cannot.", "contains no code block"),
        ("```python\nclass ModelNew:\n    def forw", "cut off"),
        ("```python\nprint(1)\n```", "contains 'ModelNew'"),
        ("x" * (LARGEST + 1), "which no kernel needs"),
    ],
)
def test_what_is_no_kernel(answer: str, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        code_block(answer, what="kernel file", must_contain="ModelNew")


def test_an_exact_patch() -> None:
    assert apply(FILE, edits(patch("        y = x + 1", "        y = x - 1"))) == FILE.replace("x + 1", "x - 1")


def test_lost_indentation_is_forgiven_and_restored() -> None:
    changed = apply(FILE, edits(patch("y = x + 1\nreturn y", "y = x - 1\nif y:\n    return y")))
    assert "        y = x - 1\n        if y:\n            return y\n" in changed


def test_several_patches_follow_one_another() -> None:
    both = patch("        y = x + 1", "        y = x * 3") + patch("        y = x * 3", "        y = x * 4")
    assert "x * 4" in apply(FILE, edits(both))


def test_a_revision_may_be_the_whole_file() -> None:
    assert revised(f"```python\n{FILE}```\n", "old")[0] == FILE
    changed, told = revised(patch("        y = x + 1", "        y = x - 1"), FILE)
    assert "x - 1" in changed
    assert "x - 1" in told
    with pytest.raises(Unreadable, match="no complete SEARCH/REPLACE block"):
        revised("I did it.", FILE)


def test_a_patch_inside_a_code_fence() -> None:
    assert len(edits(f"```\n{patch('a', 'b')}```\n")) == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("no blocks here", "no complete SEARCH/REPLACE block"),
        ("<<<<<<< SEARCH\na\n=======\nb\n", "no complete SEARCH/REPLACE block"),
        (patch("", "x"), "empty SEARCH"),
        (patch("return y", "return z"), "occurs 2 times"),
        (patch("  return   y", "return z"), "fits in 2 places"),
        (patch("return zz", "return z"), "does not occur"),
        (patch("        y = x + 1", "        y = x + 1"), "change nothing"),
    ],
)
def test_patches_that_cannot_be_applied_say_why(answer: str, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        apply(FILE, edits(answer))
