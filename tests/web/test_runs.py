"""The list of runs and a run: what the store has, as soon as it has it, and nothing of where things lie on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from kernelwright.store import Store
from kernelwright.web.listing import Listing
from tests.web import sample

RUN = "20260101-120000-aaaaaa"


def until(true: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "never true"
        time.sleep(0.02)


def test_the_list_has_the_newest_first_and_filters(store: Store, client: TestClient) -> None:
    sample.rejected_run(store)
    until(lambda: client.get("/api/runs").json()["total"] == 2)
    told = client.get("/api/runs").json()
    assert [row["run"] for row in told["rows"]] == ["20260101-130000-bbbbbb", RUN]
    tuned = told["rows"][1]
    assert (tuned["task"], tuned["command"], tuned["speedup"], tuned["best"]) == ("softmax", "tune", 2.2, [1.5, 2.2])
    assert told["choices"]["status"] == {"done": 1, "failed": 1}
    assert client.get("/api/runs?status=failed").json()["total"] == 1
    assert client.get("/api/runs?search=gpt-test soft").json()["total"] == 1
    assert client.get("/api/runs?search=nobody").json()["total"] == 0
    assert client.get("/api/runs?limit=1&offset=1").json()["rows"][0]["run"] == RUN


def test_a_run_has_its_tree_its_curve_and_its_population(client: TestClient) -> None:
    told = client.get(f"/api/runs/{RUN}").json()
    assert [step["kind"] for step in told["steps"]] == ["start", "designed", "judged", *["heat"] * 6, "judged"]
    assert told["steps"][2]["parent"] == 2, "the draft was judged from the design"
    assert [point["by"] for point in told["curve"]][:2] == ["verdict", "race"]
    assert told["curve"][-1]["speedup"] == pytest.approx(1.5 * 1.07**6, rel=1e-6) or told["curve"][-1]["speedup"] == 2.2
    assert len(told["population"]) == 18
    assert {one["island"] for one in told["population"]} == {0, 1, 2}
    assert {one["kind"] for one in told["population"]} == {"kind 0", "kind 1"}
    assert "features" not in json.dumps(told), "what only the cost model reads travels for nothing"
    assert told["command"] == "kernelwright tune softmax.py --dsl cpp --budget 60s"
    assert told["texts"]["task"] == sample.TASK
    assert [step["number"] for step in client.get(f"/api/runs/{RUN}?after=8").json()["steps"]] == [9, 10]


def test_texts_of_a_run_are_told_and_no_others(store: Store, client: TestClient) -> None:
    other = store.put(b"of another run")
    step = client.get(f"/api/runs/{RUN}").json()["steps"][2]
    assert client.get(f"/api/runs/{RUN}/texts/{step['inputs']['kernel']}").json()["text"] == sample.KERNEL.format(8)
    assert json.loads(client.get(f"/api/runs/{RUN}/texts/{step['result']}").json()["text"])["status"] == "correct"
    assert client.get(f"/api/runs/{RUN}/texts/{other}").status_code == 404
    assert client.get(f"/api/runs/{RUN}/texts/..%2F..%2Fetc%2Fpasswd").status_code in (404, 422)
    got = client.get(f"/api/runs/{RUN}/kernel.py")
    assert got.text == sample.KERNEL.format(99)
    assert got.headers["content-disposition"] == 'attachment; filename="softmax_kernel.py"'
    assert client.get("/api/runs/nobody").status_code == 404
    assert client.get(f"/api/runs/{RUN[:5]}").status_code == 404, "a beginning is no name here"


def test_no_folder_of_this_machine_and_no_key_is_told(
    store: Store, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecretvalue")
    run = sample.rejected_run(store)
    with_key = store.resume(run)
    text = store.put(b"curl -H 'Authorization: Bearer sk-verysecretvalue'")
    with_key.step("answer", "said sk-verysecretvalue", {"prompt": text}, None, {"note": "sk-verysecretvalue"})
    with_key.finish("failed")
    until(lambda: client.get("/api/runs").json()["total"] == 2)
    pages = ["/api/runs", f"/api/runs/{RUN}", f"/api/runs/{run}", f"/api/runs/{run}/texts/{text}", "/api/about", "/api/reports"]
    everything = "".join(client.get(page).text for page in pages)
    assert sample.PLACE not in everything
    assert "/home/ada" not in everything
    assert str(Path.home()) + "/" not in everything
    assert "sk-verysecretvalue" not in everything
    assert "…/kernel.py:9" in everything, "the file's name and line stay"


def test_what_another_process_writes_is_told_at_once(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as mine, Store.open(tmp_path / "store") as theirs:
        listing = Listing(mine)
        listing.start()
        version, _ = listing.changed(0)
        run = theirs.begin(sample.job())
        until(lambda: listing.row(run.id) is not None)
        now, rows = listing.changed(version)
        assert now > version
        assert rows[0]["status"] == "running"
        run.step("judged", "right", {}, None, {"status": "correct", "speedup": 3.0})
        until(lambda: listing.row(run.id)["speedup"] == 3.0)  # type: ignore[index]
        run.finish("done")
        until(lambda: listing.row(run.id)["status"] == "done")  # type: ignore[index]
        assert listing.changed(listing.version)[1] == []
        listing.stop()


def test_a_process_that_died_leaves_an_interrupted_run(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = f"from kernelwright.store import Store; Store.open({str(tmp_path / 'store')!r}).begin({{'task': 'gone'}}); input()"
    with Store.open(tmp_path / "store") as store:
        listing = Listing(store)
        listing.start()
        child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
        until(lambda: listing.having("running"))
        child.kill()
        child.wait()
        until(lambda: listing.having("interrupted"))
        listing.stop()


def test_ten_thousand_runs_are_paged_and_searched(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        sample.many_runs(store, 10_000)
        listing = Listing(store)
        listing.start()
        page = listing.page(offset=9_990, limit=50)
        assert (page["total"], len(page["rows"])) == (10_000, 10)
        assert listing.page(offset=0, limit=1)["rows"][0]["best"] == [1.25, 1.5, 1.75]
        assert listing.page(offset=0, limit=5, search="task_b", status="done")["total"] == sum(
            number % 3 == 1 and number % 4 != 1 for number in range(10_000)
        )
        began = store.begin(sample.job(task="now"))
        until(lambda: listing.page(offset=0, limit=1)["rows"][0]["run"] == began.id)
        listing.stop()


def test_a_run_that_is_forgotten_leaves_the_list(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        sample.many_runs(store, 3)
        listing = Listing(store)
        listing.start()
        store.prune(1 / 86400 / 1000)
        until(lambda: listing.page(offset=0, limit=1)["all"] == 0)
        listing.stop()
