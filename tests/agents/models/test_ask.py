"""Ask and Answer: an ask's key is all that may change the answer; an answer's record is read back or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelwright.agents.models import Answer, Ask

ASK = Ask(role="coder", system="You write kernels.", user="softmax", form="kernel")


@pytest.mark.parametrize(
    "change",
    [
        {"role": "designer"},
        {"system": "You write kernels"},
        {"user": "softmax "},
        {"form": "patch"},
        {"attempt": 1},
        {"max_tokens": 100},
        {"temperature": 0.0},
    ],
)
def test_everything_in_an_ask_is_in_its_key(change: dict[str, object]) -> None:
    assert replace(ASK, **change).key("m") != ASK.key("m")  # type: ignore[arg-type]


def test_the_key_depends_on_the_model_and_on_nothing_else() -> None:
    assert ASK.key("m") == replace(ASK).key("m") != ASK.key("another")


def test_a_form_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="form 'poem' is unknown"):
        Ask("coder", "", "", "poem")  # type: ignore[arg-type]


def test_an_answer_is_read_back_from_its_record_as_recalled() -> None:
    answer = Answer("text", 10, 5, None, 1.5, "length")
    assert Answer.from_json(answer.to_json()) == replace(answer, recalled=True)
    assert "text" not in answer.facts()
    for damaged in (
        {},
        {**answer.to_json(), "text": 3},
        {**answer.to_json(), "finish": "?"},
        {**answer.to_json(), "seconds": "x"},
    ):
        with pytest.raises(ValueError, match="not the record of an answer"):
            Answer.from_json(damaged)
