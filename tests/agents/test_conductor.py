"""The Conductor's table, rule by rule, and that it always comes to an end. Read as: after this history, that move."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.agents.conductor import Allowance, Decision, Kind, Move, Turn, decide, load, standard
from kernelwright.agents.conductor.check import Walk, dead_ends
from kernelwright.agents.conductor.table import OURS
from kernelwright.core.errors import ConfigError

SEED = Turn(Move.seed, Kind.correct, author="builtin", gain=1.0, roofline=0.4)
BARE = Turn(Move.seed, Kind.no_seed, author="builtin", note="an operator is unknown")
ALLOWED = Allowance(designs=3, repairs=2, patches=2, improvements=1, renewals=2)


def sketch(kind: Kind, error: str = "e", move: Move = Move.design, design: int = 1) -> Turn:
    return Turn(move, kind, design, "designer", error, note="because")


def kernel(kind: Kind, error: str = "e", move: Move = Move.code, design: int = 1, **more: object) -> Turn:
    turn = Turn(move, kind, design, "coder", error, sketch_right=True)
    return replace(turn, **more)  # type: ignore[arg-type]


def faster(gain: float) -> Turn:
    return kernel(Kind.correct, move=Move.improve, gain=gain)


def advice(word: str) -> Turn:
    return Turn(Move.advise, Kind.advised, 1, note=word)


def after(*turns: Turn, allowance: Allowance = ALLOWED) -> Decision:
    return decide(turns, allowance)


ROWS = [
    # (history after the seed, next move, words of its reason)
    ([], Move.design, "is the seed"),
    ([sketch(Kind.malformed)], Move.repair_design, "without a build"),
    ([sketch(Kind.misdesigned)], Move.repair_design, "something else than the reference"),
    ([sketch(Kind.malformed, "a"), sketch(Kind.malformed, "a", Move.repair_design)], Move.design, "same reason"),
    ([sketch(Kind.malformed, "a"), sketch(Kind.malformed, "b", Move.repair_design)], Move.repair_design, "does not check"),
    (
        [
            sketch(Kind.malformed, "a"),
            sketch(Kind.malformed, "b", Move.repair_design),
            sketch(Kind.misdesigned, "c", Move.repair_design),
        ],
        Move.design,
        "after 2 repairs",
    ),
    ([sketch(Kind.proved)], Move.code, "the Coder writes the kernel"),
    ([sketch(Kind.unreadable)], Move.design, "asked again"),
    ([sketch(Kind.unreadable)] * 2, Move.design, "in other words"),
    ([sketch(Kind.unreadable)] * 3, Move.stop, "3 answers in a row"),
    ([sketch(Kind.unreadable), sketch(Kind.malformed)], Move.repair_design, "does not check"),
    ([sketch(Kind.declined)], Move.improve_best, "no better design"),
    (
        [kernel(Kind.correct, gain=1.3), kernel(Kind.correct, move=Move.improve, gain=0.9), sketch(Kind.declined, design=2)],
        Move.stop,
        "no better design",
    ),
    ([kernel(Kind.wrong, author="rules", sketch_right=True)], Move.code, "while its sketch is right"),
    ([kernel(Kind.wrong, author="rules", sketch_right=None)], Move.repair_design, "unproved sketch"),
    ([kernel(Kind.build_failed, author="rules")], Move.code, "by hand"),
    ([kernel(Kind.build_failed)], Move.patch, "does not build"),
    ([kernel(Kind.wrong)], Move.patch, "wrong results while its sketch is right"),
    ([kernel(Kind.crashed)], Move.patch, "crashes"),
    ([kernel(Kind.build_failed, "a"), kernel(Kind.build_failed, "a", Move.patch)], Move.rewrite, "same error twice"),
    ([kernel(Kind.build_failed, "a"), kernel(Kind.wrong, "b", Move.patch)], Move.patch, "patches it"),
    (
        [kernel(Kind.build_failed, "a"), kernel(Kind.wrong, "b", Move.patch), kernel(Kind.crashed, "c", Move.patch)],
        Move.rewrite,
        "after 2 patches",
    ),
    ([kernel(Kind.wrong), kernel(Kind.unreadable, "x", Move.patch)], Move.patch, "asked again with the reason"),
    ([kernel(Kind.wrong), *[kernel(Kind.unreadable, "x", Move.patch)] * 2], Move.rewrite, "two patches"),
    (
        [kernel(Kind.wrong, "a"), kernel(Kind.wrong, "a", Move.patch), kernel(Kind.wrong, "a", Move.rewrite)],
        Move.design,
        "after a rewrite",
    ),
    ([kernel(Kind.cheating)], Move.rewrite, "told so, once"),
    ([kernel(Kind.cheating), kernel(Kind.cheating, move=Move.rewrite)], Move.design, "dropped"),
    ([kernel(Kind.correct, gain=1.3)], Move.improve, "1.30x the best"),
    ([kernel(Kind.correct, gain=1.3), faster(1.1)], Move.improve, "1.10x"),
    ([kernel(Kind.correct, gain=1.3), faster(1.1), faster(1.005)], Move.design, "1.00x"),
    ([kernel(Kind.correct, gain=1.3), *[faster(1.1)] * 3], Move.design, "1.10x"),
    ([kernel(Kind.correct, gain=1.3), faster(0.9)], Move.design, "no gain"),
    ([kernel(Kind.correct, gain=1.3), kernel(Kind.wrong, move=Move.improve)], Move.patch, "the Coder repairs it"),
    (
        [kernel(Kind.correct, gain=1.3), kernel(Kind.wrong, move=Move.improve), kernel(Kind.wrong, move=Move.patch)],
        Move.design,
        "same error after a patch",
    ),
    (
        [kernel(Kind.correct, gain=1.3), *[kernel(Kind.wrong, str(n), Move.patch if n else Move.improve) for n in range(3)]],
        Move.design,
        "after 2 patches",
    ),
    (
        [
            kernel(Kind.correct, gain=1.3),
            kernel(Kind.wrong, move=Move.improve),
            kernel(Kind.correct, move=Move.patch, gain=1.2),
        ],
        Move.improve,
        "1.20x",
    ),
    ([kernel(Kind.correct, gain=1.3), kernel(Kind.cheating, move=Move.improve)], Move.design, "cheating"),
    ([kernel(Kind.correct, gain=1.3), kernel(Kind.unreadable, move=Move.improve)], Move.improve, "asked again"),
    ([kernel(Kind.correct, gain=1.3), *[kernel(Kind.unreadable, move=Move.improve)] * 3], Move.design, "the Designer is asked"),
    (
        [
            kernel(Kind.correct, gain=1.3),
            kernel(Kind.wrong, move=Move.improve),
            *[kernel(Kind.unreadable, move=Move.patch)] * 2,
        ],
        Move.design,
        "two patches could not be applied",
    ),
    ([kernel(Kind.correct, gain=0.8)], Move.advise, "unclear"),
    ([kernel(Kind.correct, gain=0.8), advice("improve")], Move.improve, "work on this kernel"),
    ([kernel(Kind.correct, gain=0.8), advice("best")], Move.improve_best, "work on the best kernel"),
    ([kernel(Kind.correct, gain=0.8), advice("redesign")], Move.design, "advises"),
    ([kernel(Kind.correct, gain=0.8), advice("stop")], Move.stop, "advises to stop"),
    (
        [kernel(Kind.correct, gain=0.8), advice("redesign"), kernel(Kind.correct, move=Move.patch, gain=0.8)],
        Move.design,
        "0.80x",
    ),
    ([kernel(Kind.correct, gain=None)], Move.stop, "no speed is measured"),
    ([kernel(Kind.correct, gain=2.0, roofline=0.93)], Move.stop, "93% of what the hardware allows"),
    ([kernel(Kind.correct, gain=2.0, roofline=4.48)], Move.improve, "the Coder tries to go further"),
    ([Turn(Move.design, Kind.exhausted, 1, note="$1.00 are spent")], Move.stop, r"\$1.00 are spent"),
    ([Turn(Move.code, Kind.model_failed, 1, note="no key")], Move.stop, "no key"),
]


@pytest.mark.parametrize(("history", "move", "words"), ROWS, ids=[f"{i}: {row[2]}" for i, row in enumerate(ROWS)])
def test_the_table(history: list[Turn], move: Move, words: str) -> None:
    decision = after(SEED, *history)
    assert decision.move is move, decision
    assert words.replace("\\", "") in decision.reason


def test_a_run_begins_with_the_seed() -> None:
    assert after().move is Move.seed


def test_without_speeds_nothing_could_beat_a_correct_seed() -> None:
    assert after(replace(SEED, gain=None)).move is Move.stop


def test_a_faulty_seed_is_no_seed() -> None:
    assert after(replace(SEED, kind=Kind.wrong, gain=None)).move is Move.design


def test_a_task_without_a_seed_is_designed_and_at_last_coded_from_its_source() -> None:
    assert after(BARE).move is Move.design
    tried = [sketch(Kind.misdesigned, "a", move, d) for d in (1, 2, 3) for move in (Move.design, Move.repair_design)]
    decision = after(BARE, *tried)
    assert decision.move is Move.code
    assert "from the task itself" in decision.reason
    failed = [kernel(Kind.wrong, "z", move, 3) for move in (Move.code, Move.patch, Move.rewrite)]
    assert after(BARE, *tried, *failed).move is Move.stop


def test_the_first_correct_kernel_of_a_run_is_worked_on() -> None:
    decision = after(BARE, kernel(Kind.correct, gain=1.0))
    assert decision.move is Move.improve
    assert "first correct one" in decision.reason


def test_every_row_is_used() -> None:
    unread = [BARE, *[sketch(Kind.unreadable)] * 3]
    used = {after(SEED, *history).rule for history, _, _ in ROWS} | {after(BARE).rule, after(*unread).rule}
    used |= {after(SEED, kernel(Kind.correct, gain=0.8), kernel(Kind.correct, move=Move.patch, gain=0.8)).rule}
    unused = {row.name for row in standard().groups["row"]} - used
    assert unused <= {"fast_enough", "patched_in_vain", "unreadable_repair", "slower", "first", "hopeless_kernel"}, unused


def test_the_same_history_always_gives_the_same_decision() -> None:
    for history, _, _ in ROWS:
        assert after(SEED, *history) == after(SEED, *history)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 4), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 4), st.randoms())
def test_any_run_comes_to_an_end(
    designs: int, repairs: int, patches: int, improvements: int, renewals: int, lot: Random
) -> None:
    """Whatever the models answer, a run is finite, and no move is asked for that cannot be carried out."""
    walk = Walk(standard(), Allowance(designs, repairs, patches, improvements, renewals), lot.choice, set())
    assert walk.fault() == ""


def test_our_table_has_no_dead_ends() -> None:
    assert dead_ends(standard()) == []


def rows(*texts: str) -> str:
    return "".join(f'[[row]]\nname = "r{number}"\n{text}\nbecause = "."\n' for number, text in enumerate(texts))


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        (rows('when = { move = "seed" }\nthen = "design"'), "no row of row answers design:"),
        (
            rows('when = { move = "seed" }\nthen = "design"', 'when = {}\nthen = "patch"'),
            "says patch, but the Coder has no kernel here",
        ),
        (rows('when = {}\nthen = "design"'), "a run may never end"),
        (rows('when = {}\nthen = "stop"', 'when = { move = "seed" }\nthen = "design"'), "nothing leads to row 'r1'"),
        (rows('when = {}\nthen = "g"') + '[[g]]\nname = "g"\nwhen = {}\nthen = "g"\nbecause = "."\n', "in a circle"),
    ],
)
def test_dead_ends_of_other_tables_are_told(tmp_path: Path, table: str, fault: str) -> None:
    (tmp_path / "table.toml").write_text(table)
    found = dead_ends(load(tmp_path / "table.toml"))
    assert any(fault in one for one in found), found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no [ toml", "is not TOML"),
        ("a = 1", "a table has rows"),
        (rows('when = { mood = "good" }\nthen = "stop"'), "'mood' is no fact"),
        (rows('when = {}\nthen = "dance"'), "'dance' is no move"),
        ('[[row]]\nname = "a"\n', "has name, when, then and because"),
        (rows('when = {}\nthen = "stop"').replace('"."', '"{weather}"'), "{weather} is nothing"),
    ],
)
def test_what_is_no_table_says_where(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "table.toml").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(words)) as told:
        load(tmp_path / "table.toml")
    assert "table.toml" in str(told.value)


def test_a_users_table_replaces_ours(tmp_path: Path) -> None:
    """Here: advice before every second design."""
    changed = OURS.read_text().replace(
        'then = "stop"\nbecause = "the model advises to stop"', 'then = "another_way"\nbecause = "never"'
    )
    (tmp_path / "table.toml").write_text(changed)
    table = load(tmp_path / "table.toml")
    assert dead_ends(table) == []
    assert decide((SEED, kernel(Kind.correct, gain=0.8), advice("stop")), ALLOWED, table).move is Move.design
