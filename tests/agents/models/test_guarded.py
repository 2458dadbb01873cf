"""What lies around every model: nothing is paid twice, limits hold (also for many at once), and answers are recorded."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sources import Told, an_ask

from kernelwright.agents.models import (
    Answer,
    Ask,
    BudgetReached,
    Call,
    Exchange,
    Ledger,
    Limits,
    ModelError,
    Spent,
    Tool,
    open_model,
)
from kernelwright.agents.models.guarded import GuardedModel
from kernelwright.core.errors import ConfigError


def guarded(source: Told, **limits: object) -> GuardedModel:
    return GuardedModel(source, store=None, ledger=Ledger(Limits(**limits)))  # type: ignore[arg-type]


def test_an_answer_is_paid_for_once_over_all_processes(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="memory needs the store (pip install 'kernelwright[store]')")
    from kernelwright.store import Store

    with Store.open(tmp_path) as store:
        source = Told()
        model = GuardedModel(source, store=store, ledger=Ledger(Limits()))
        first = model.ask(an_ask())
        assert (first.text, first.recalled) == ("to softmax", False)
        heard: list[str] = []
        again = model.ask(an_ask(), heard.append)
        assert (again.text, again.recalled, heard) == ("to softmax", True, ["to softmax"])
        assert model.ask(an_ask(attempt=1)).recalled is False
        assert len(source.caps) == 2
        assert model.ledger.spent == Spent(2, 200, 100, 0.3, 0)
    with Store.open(tmp_path) as store:
        source = Told()
        assert GuardedModel(source, store=store, ledger=Ledger(Limits())).ask(an_ask()).recalled
        assert source.caps == []


def test_the_same_ask_from_many_threads_is_paid_for_once(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="memory needs the store (pip install 'kernelwright[store]')")
    from kernelwright.store import Store

    with Store.open(tmp_path) as store, ThreadPoolExecutor(8) as pool:
        source = Told()
        model = GuardedModel(source, store=store, ledger=Ledger(Limits()))
        answers = list(pool.map(lambda _: model.ask(an_ask()), range(8)))
        assert len(source.caps) == 1
        assert sum(not answer.recalled for answer in answers) == 1


def test_a_limit_of_tokens_caps_the_last_answer_and_then_stops() -> None:
    source = Told(lambda ask, cap: Answer("x", 20, 700, None, 0.0))
    model = guarded(source, max_tokens=2000)
    model.ask(an_ask("a", max_tokens=1000))
    model.ask(an_ask("b", max_tokens=1000))
    assert source.caps[0] == 1000
    assert source.caps[1] == 1000
    model.ask(an_ask("c", max_tokens=1000))
    assert 256 <= source.caps[2] <= 2000 - 2 * 720
    with pytest.raises(BudgetReached, match=r"limit for models is reached: 2,160 of 2,000 tokens are spent"):
        model.ask(an_ask("d", max_tokens=1000))
    assert len(source.caps) == 3


def test_a_limit_of_dollars_caps_and_stops_too() -> None:
    source = Told(lambda ask, cap: Answer("x", 20, cap, (20 + cap) / 1000, 0.0))
    model = guarded(source, max_cost_usd=1.0)
    model.ask(an_ask("a", max_tokens=500))
    model.ask(an_ask("b", max_tokens=8192))
    assert source.caps[0] == 500
    assert source.caps[1] < 500
    with pytest.raises(BudgetReached, match=r"of \$1 are spent"):
        model.ask(an_ask("c"))
    assert model.ledger.spent.cost_usd <= 1.0


def test_many_at_once_do_not_exceed_the_limit_together() -> None:
    source = Told(lambda ask, cap: Answer("x", 20, min(cap, 300), None, 0.0))
    model = guarded(source, max_tokens=3000, concurrency=8)
    outcomes: list[str] = []

    def one(number: int) -> None:
        try:
            model.ask(an_ask(str(number), max_tokens=1000))
            outcomes.append("answered")
        except BudgetReached:
            outcomes.append("reached")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, range(16)))
    assert model.ledger.spent.tokens <= 3000
    assert outcomes.count("answered") == len(source.caps) >= 7
    assert outcomes.count("reached") == 16 - len(source.caps)


def test_an_answer_that_the_runs_own_limit_cut_off_is_not_passed_on_nor_kept(tmp_path: Path) -> None:
    source = Told(lambda ask, cap: Answer("half of", 10, cap, None, 0.0, "length"))
    model = guarded(source, max_tokens=600)
    with pytest.raises(BudgetReached, match="was cut off at"):
        model.ask(an_ask(max_tokens=8192))
    assert guarded(source).ask(an_ask(max_tokens=100)).finish == "length"


def test_a_resumed_run_counts_what_it_spent_before() -> None:
    ledger = Ledger(Limits(max_tokens=5000), before=Spent(calls=9, tokens_in=4000, tokens_out=900))
    model = GuardedModel(Told(), store=None, ledger=ledger)
    with pytest.raises(BudgetReached, match="4,900 of 5,000"):
        model.ask(an_ask())


def test_without_a_price_a_limit_in_dollars_cannot_be_kept_and_is_refused() -> None:
    with pytest.raises(ConfigError, match="the price of told is unknown"):
        guarded(Told(priced=False), max_cost_usd=1.0)
    assert guarded(Told(priced=False), max_cost_usd=1.0, max_tokens=10_000).ask(an_ask()).text


def test_no_more_calls_are_open_at_once_than_allowed() -> None:
    open_now, most, lock = 0, 0, threading.Lock()
    enough = threading.Event()

    def slow(ask: Ask, cap: int) -> Answer:
        nonlocal open_now, most
        with lock:
            open_now += 1
            most = max(most, open_now)
            if open_now == 2:
                enough.set()
        enough.wait(30)
        with lock:
            open_now -= 1
        return Answer("x", 1, 1, None, 0.0)

    model = guarded(Told(slow), concurrency=2)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda number: model.ask(an_ask(str(number))), range(6)))
    assert most == 2


def test_a_failure_frees_its_place_and_its_reservation() -> None:
    def failing(ask: Ask, cap: int) -> Answer:
        raise ModelError("no")

    model = guarded(Told(failing), concurrency=1, max_tokens=9000)
    for _ in range(3):
        with pytest.raises(ModelError, match="no"):
            model.ask(an_ask())
    assert model.ledger.spent == Spent()


def test_a_recording_is_what_replay_reads(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    model = GuardedModel(Told(), store=None, ledger=Ledger(Limits()), record=path)
    model.ask(an_ask("a"))
    model.ask(an_ask("b"))
    assert [json.loads(line)["ask"]["user"] for line in path.read_text().splitlines()] == ["a", "b"]
    replay = open_model(f"replay:{path}", store=None, limits=Limits())
    answer = replay.ask(an_ask("b"))
    assert (answer.text, answer.tokens_out, answer.recalled) == ("to b", 50, True)
    assert replay.ledger.spent == Spent()


def test_a_recording_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    model = GuardedModel(Told(), store=None, ledger=Ledger(Limits()), record=tmp_path / "no" / "where.jsonl")
    with pytest.raises(ModelError, match="the recording cannot be written"):
        model.ask(an_ask())


@pytest.mark.parametrize("spec", ["", "openai", "openai:", "gpt-4", "ftp://host/v1:x", "mailbox:", "replay:"])
def test_a_spec_that_is_none_is_refused_with_what_can_be_written(spec: str) -> None:
    with pytest.raises(ConfigError, match="is not understood; write builtin, openai:NAME"):
        open_model(spec, store=None, limits=Limits())


def test_another_run_asks_anew_and_the_same_run_does_not(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="memory needs the store (pip install 'kernelwright[store]')")
    from kernelwright.store import Store

    with Store.open(tmp_path) as store:
        source = Told()
        first, second = (GuardedModel(source, store=store, ledger=Ledger(Limits()), run=name) for name in ("a", "b"))
        assert not first.ask(an_ask()).recalled
        assert first.ask(an_ask()).recalled
        assert not second.ask(an_ask()).recalled, "what one run was told is no answer to another"


def test_what_is_left_of_a_run_is_no_part_of_its_questions() -> None:
    assert an_ask(seconds=3.0).key("m") == an_ask().key("m")
    with_tools = an_ask(tools=(Tool("t", "does", (("a", "b"),)),))
    assert with_tools.key("m") != an_ask().key("m")
    exchanged = with_tools.after(Exchange("hm", (Call("1", "t", (("a", "x"),)),), ("done",)))
    assert Ask.from_json(json.loads(json.dumps(exchanged.to_json()))) == exchanged
