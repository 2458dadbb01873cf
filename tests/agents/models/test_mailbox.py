"""The mailbox: prompts and answers are files; numbers outlive the process; several wait at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sources import an_ask

from kernelwright.agents.models import BudgetReached, Limits, Model, ModelError, mailbox, open_model


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return open_model(f"mailbox:{tmp_path}", store=None, limits=Limits(concurrency=8))


def until(there: Path) -> str:
    """Wait for a file, as somebody who answers would."""
    deadline = time.monotonic() + 120
    while not there.exists():
        assert time.monotonic() < deadline, f"{there.name} did not come"
        time.sleep(0.02)
    return there.read_text()


def reply(folder: Path, number: str, text: str) -> None:
    part = folder / f".{number}.part"
    part.write_text(text)
    os.rename(part, folder / f"{number}.answer.md")


def test_an_ask_is_a_file_and_its_answer_is_one(model: Model, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(model.ask, an_ask("Write a softmax."))
        prompt = until(tmp_path / "0001.prompt.md")
        for words in (
            "role: coder",
            "form: kernel",
            "# System\n\nYou write kernels.",
            "# User\n\nWrite a softmax.",
            ".answer.md",
        ):
            assert words in prompt
        reply(tmp_path, "0001", "```python\nclass ModelNew: ...\n```\n")
        answer = waiting.result(120)
    assert answer.text == "```python\nclass ModelNew: ...\n```\n"
    assert (answer.cost_usd, answer.finish) == (0.0, "stop")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0001.answer.md", "0001.prompt.md"]


def test_several_wait_at_once_and_are_answered_in_any_order(model: Model, tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        waiting = {user: pool.submit(model.ask, an_ask(user)) for user in ("one", "two", "three")}
        for number in ("0003", "0001", "0002"):
            user = until(tmp_path / f"{number}.prompt.md").split("# User\n\n")[1].strip()
            reply(tmp_path, number, f"answer to {user}")
        assert {user: future.result(120).text for user, future in waiting.items()} == {
            user: f"answer to {user}" for user in waiting
        }


def test_after_a_restart_the_same_ask_has_the_same_number(tmp_path: Path) -> None:
    for _ in range(2):
        with ThreadPoolExecutor() as pool:
            model = open_model(f"mailbox:{tmp_path}", store=None, limits=Limits())
            waiting = [pool.submit(model.ask, an_ask(user)) for user in ("first", "second")]
            until(tmp_path / "0002.prompt.md")
            model.close()
            for future in waiting:
                with pytest.raises(ModelError, match="was closed before"):
                    future.result(120)
    assert len(list(tmp_path.iterdir())) == 2
    numbers = {until(path).split("# User\n\n")[1].strip(): path.name[:4] for path in tmp_path.iterdir()}
    reply(tmp_path, numbers["second"], "answered while nobody ran")
    assert (
        open_model(f"mailbox:{tmp_path}", store=None, limits=Limits()).ask(an_ask("second")).text == "answered while nobody ran"
    )


def test_a_file_of_somebody_else_is_left_alone_and_its_number_is_not_taken(model: Model, tmp_path: Path) -> None:
    (tmp_path / "0007.prompt.md").write_text("notes of mine\n")
    (tmp_path / "README.md").write_text("key: none\n")
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(model.ask, an_ask())
        until(tmp_path / "0008.prompt.md")
        reply(tmp_path, "0008", "yes")
        assert waiting.result(120).text == "yes"
    assert (tmp_path / "0007.prompt.md").read_text() == "notes of mine\n"


def test_an_answer_that_is_still_being_written_is_waited_for(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailbox, "SETTLED", 3600.0)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(model.ask, an_ask())
        until(tmp_path / "0001.prompt.md")
        (tmp_path / "0001.answer.md").write_text("half of")
        time.sleep(3 * mailbox.POLL)
        assert not waiting.done()
        (tmp_path / "0001.answer.md").write_text("half of it and the rest")
        monkeypatch.setattr(mailbox, "SETTLED", 0.1)
        assert waiting.result(120).text == "half of it and the rest"


def test_an_empty_answer_is_no_answer(model: Model, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(model.ask, an_ask())
        until(tmp_path / "0001.prompt.md")
        reply(tmp_path, "0001", " \n")
        with pytest.raises(ModelError, match=r"0001\.answer\.md is empty"):
            waiting.result(120)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="the mailbox cannot be made"):
        open_model(f"mailbox:{tmp_path}/file/box", store=None, limits=Limits())


WAITER = """
import signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
from kernelwright.agents.models import Ask, Limits, open_model
model = open_model("mailbox:" + sys.argv[1], store=None, limits=Limits())
asks = [Ask("coder", "", str(number), "kernel") for number in range(2)]
threading.Thread(target=lambda: model.ask(asks[0])).start()
try:
    model.ask(asks[1])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_the_wait_of_every_thread(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITER, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as waiter:
        until(tmp_path / "0002.prompt.md")
        time.sleep(0.3)
        waiter.send_signal(signal.SIGINT)
        out, _ = waiter.communicate(timeout=120)
    assert out == "interrupted\n"
    assert sorted(path.name for path in tmp_path.glob("*.md")) == ["0001.prompt.md", "0002.prompt.md"]


def test_two_mailboxes_on_one_folder_never_share_a_number(tmp_path: Path) -> None:
    models = [open_model(f"mailbox:{tmp_path}", store=None, limits=Limits(concurrency=20)) for _ in range(2)]
    start = threading.Barrier(12)

    def ask(number: int) -> str:
        start.wait()
        return models[number % 2].ask(an_ask(f"ask {number}")).text

    with ThreadPoolExecutor(12) as pool:
        waiting = [pool.submit(ask, number) for number in range(12)]
        for number in range(1, 13):
            user = until(tmp_path / f"{number:04d}.prompt.md").split("# User\n\n")[1].strip()
            reply(tmp_path, f"{number:04d}", f"for {user}")
        assert [future.result(120) for future in waiting] == [f"for ask {number}" for number in range(12)]


def test_tokens_are_estimated_where_nobody_counts_them(model: Model, tmp_path: Path) -> None:
    reply(tmp_path, "0001", "an answer of some words")
    answer = model.ask(an_ask("Write a softmax."))
    assert answer.tokens_out == len("an answer of some words") // 3
    assert answer.tokens_in >= len("Write a softmax.") // 3
    assert model.ledger.spent.tokens == answer.tokens_in + answer.tokens_out


def test_waiting_ends_with_the_runs_time(model: Model) -> None:
    with pytest.raises(BudgetReached, match="time was used up"):
        model.ask(an_ask("nobody answers", seconds=0.3))
