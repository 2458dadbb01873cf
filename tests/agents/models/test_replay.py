"""Replay is strict: the recorded answer to exactly the same ask, or a sentence that says what differs."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from sources import an_ask

from kernelwright.agents.models import Answer, Ask, Limits, Model, ModelError, open_model


def recording(folder: Path, *asks: Ask) -> Path:
    path = folder / "recording.jsonl"
    lines = [
        json.dumps({"model": "m", "ask": asdict(ask), "answer": Answer(f"answer {n}", 1, 1, None, 0.0).to_json()})
        for n, ask in enumerate(asks)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def replayed(path: Path) -> Model:
    return open_model(f"replay:{path}", store=None, limits=Limits())


LONG = an_ask("\n".join(f"line {number}" for number in range(30)))


def test_order_does_not_matter_but_every_letter_does(tmp_path: Path) -> None:
    model = replayed(recording(tmp_path, an_ask("a"), an_ask("b"), replace(an_ask("b"), attempt=1)))
    assert [model.ask(ask).text for ask in (replace(an_ask("b"), attempt=1), an_ask("a"), an_ask("b"), an_ask("a"))] == [
        "answer 2",
        "answer 0",
        "answer 1",
        "answer 0",
    ]
    with pytest.raises(ModelError, match=r"no answer to this ask of the coder: user differs .* at line 1: 'a ' where 'a' was"):
        model.ask(an_ask("a "))


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (replace(LONG, user=LONG.user.replace("line 17", "line seventeen")), "line 18: 'line seventeen' where 'line 17' was"),
        (replace(LONG, user=LONG.user + "\nmore"), "line 31: 'more' where '' was"),
        (replace(LONG, attempt=2), "attempt is 2 and was 0"),
        (replace(LONG, system="You sing."), "system differs"),
        (replace(LONG, role="poet"), "of the poet: the recording has asks of coder only"),
        (replace(LONG, user="x" * 500), "x" * 40),
    ],
)
def test_a_miss_names_the_role_and_the_first_difference(tmp_path: Path, ask: Ask, words: str) -> None:
    with pytest.raises(ModelError) as caught:
        replayed(recording(tmp_path, an_ask("something else"), LONG)).ask(ask)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_recording_that_is_none_names_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no such recording"):
        replayed(tmp_path / "nothing.jsonl")
    path = recording(tmp_path, an_ask())
    path.write_text(path.read_text() + '{"ask": {}}\n')
    with pytest.raises(ModelError, match=r"recording\.jsonl:2: this is not the record"):
        replayed(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ModelError, match="cannot be read"):
        replayed(path)
