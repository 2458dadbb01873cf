"""The Conductor's table, rule by rule, and that it always comes to an end. Read as: after this history, that move."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.agents.conductor import TABLE, Allowance, Decision, History, Kind, Move, Turn, decide

SEED = Turn(Move.seed, Kind.correct, author="builtin", gain=1.0, roofline=0.4)
BARE = Turn(Move.seed, Kind.no_seed, author="builtin", note="an operator is unknown")
ALLOWED = Allowance(designs=3, repairs=2, patches=2, improvements=1)


def sketch(kind: Kind, error: str = "e", move: Move = Move.design, design: int = 1) -> Turn:
    return Turn(move, kind, design, "designer", error, note="because")


def kernel(kind: Kind, error: str = "e", move: Move = Move.code, design: int = 1, **more: object) -> Turn:
    turn = Turn(move, kind, design, "coder", error, sketch_right=True)
    return replace(turn, **more)  # type: ignore[arg-type]


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
    ([sketch(Kind.unreadable), sketch(Kind.unreadable)], Move.design, "two answers in a row"),
    ([sketch(Kind.unreadable), sketch(Kind.unreadable), kernel(Kind.unreadable)], Move.code, "asked again"),
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
    (
        [kernel(Kind.wrong), kernel(Kind.unreadable, "x", Move.patch), kernel(Kind.unreadable, "y", Move.patch)],
        Move.rewrite,
        "two patches",
    ),
    (
        [kernel(Kind.wrong, "a"), kernel(Kind.wrong, "a", Move.patch), kernel(Kind.wrong, "a", Move.rewrite)],
        Move.design,
        "after a rewrite",
    ),
    ([kernel(Kind.cheating)], Move.rewrite, "told so, once"),
    ([kernel(Kind.cheating), kernel(Kind.cheating, move=Move.rewrite)], Move.design, "dropped"),
    ([kernel(Kind.correct, gain=1.3)], Move.improve, "1.30x the best"),
    ([kernel(Kind.correct, gain=1.3), kernel(Kind.correct, move=Move.improve, gain=1.1)], Move.design, "1.10x"),
    ([kernel(Kind.correct, gain=1.3), kernel(Kind.correct, move=Move.improve, gain=0.9)], Move.design, "no gain"),
    ([kernel(Kind.correct, gain=1.3), kernel(Kind.wrong, move=Move.improve)], Move.design, "the attempt to make it faster"),
    ([kernel(Kind.correct, gain=0.8)], Move.advise, "unclear"),
    ([kernel(Kind.correct, gain=0.8), Turn(Move.advise, Kind.advised, 1, note="improve")], Move.improve, "advises"),
    ([kernel(Kind.correct, gain=0.8), Turn(Move.advise, Kind.advised, 1, note="redesign")], Move.design, "advises"),
    ([kernel(Kind.correct, gain=0.8), Turn(Move.advise, Kind.advised, 1, note="stop")], Move.stop, "advises to stop"),
    ([kernel(Kind.correct, gain=None)], Move.design, "not measured"),
    ([kernel(Kind.correct, gain=2.0, roofline=0.93)], Move.stop, "93% of what the hardware allows"),
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


def test_advice_is_asked_for_once() -> None:
    slow = kernel(Kind.correct, gain=0.8)
    again = (slow, Turn(Move.advise, Kind.advised, 1, note="redesign"), replace(slow, design=2))
    assert after(SEED, *again).move is Move.design


def test_every_rule_decides_something() -> None:
    used = {after(SEED, *history).rule for history, _, _ in ROWS} | {after(SEED).rule}
    assert used == {rule.__name__ for rule in TABLE}


def test_the_same_history_always_gives_the_same_decision() -> None:
    for history, _, _ in ROWS:
        assert after(SEED, *history) == after(SEED, *history)


OUTCOMES = {
    Move.seed: [Kind.correct, Kind.no_seed, Kind.wrong],
    Move.design: [
        Kind.unreadable,
        Kind.malformed,
        Kind.misdesigned,
        Kind.proved,
        Kind.wrong,
        Kind.build_failed,
        Kind.correct,
        Kind.cheating,
    ],
    Move.advise: [Kind.advised],
}
OUTCOMES[Move.repair_design] = OUTCOMES[Move.design]
AUTHORS = {Kind.unreadable: "designer", Kind.malformed: "designer", Kind.misdesigned: "designer", Kind.proved: "designer"}


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_run_comes_to_an_end(data: st.DataObject) -> None:
    """Whatever the models answer, a run is finite, and it never works longer than its allowance lets it."""
    allowance = Allowance(designs=2, repairs=2, patches=2, improvements=2)
    turns: tuple[Turn, ...] = ()
    design = 0
    for _ in itertools.count():
        assert len(turns) < 60, [f"{turn.move}:{turn.kind}" for turn in turns]
        decision = decide(turns, allowance)
        if decision.move is Move.stop:
            break
        design += decision.move is Move.design and not (turns and turns[-1].move is Move.design and History(turns).asks_again)
        kernels = [Kind.unreadable, Kind.build_failed, Kind.wrong, Kind.crashed, Kind.cheating, Kind.correct]
        kind = data.draw(st.sampled_from(OUTCOMES.get(decision.move, kernels)))
        by_rules = decision.move in (Move.design, Move.repair_design)
        turns += (
            Turn(
                decision.move,
                kind,
                design,
                AUTHORS.get(kind, "rules") if by_rules else "coder",  # type: ignore[arg-type]
                data.draw(st.sampled_from("abc")),
                data.draw(st.sampled_from([True, None])),
                data.draw(st.sampled_from([None, 0.7, 1.4])) if kind is Kind.correct else None,
                note=data.draw(st.sampled_from(["improve", "redesign"])) if kind is Kind.advised else "",
            ),
        )
