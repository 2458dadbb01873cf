"""The page that is shipped: built from web/ as it is, small, and served as files of ours and nothing else."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from kernelwright.web.app import SITE

ROOT = Path(__file__).parents[2]
MOST = 300_000


def test_the_shipped_page_was_built_from_these_sources() -> None:
    done = subprocess.run([sys.executable, ROOT / "web" / "stamp.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_first_load_is_small(client: TestClient) -> None:
    """Everything that the first view needs: what index.html names, and what these files import at once."""
    index = client.get("/")
    wanted = set(re.findall(r'(?:src|href)="(/assets/[^"]+)"', index.text))
    assert any(name.endswith(".js") for name in wanted)
    sizes = {name: len(gzip.compress(client.get(name).content, 6)) for name in wanted}
    assert sum(sizes.values()) < MOST / 2
    everything = sum(len(gzip.compress(Path(str(file)).read_bytes(), 6)) for file in SITE.joinpath("assets").iterdir())
    assert everything < MOST, "even all views together"


@pytest.mark.slow
def test_a_wheel_serves_the_page_with_no_node(tmp_path: Path) -> None:
    """What is in a wheel is enough: its files alone are on the path, beside what it depends on."""
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        tmp_path,
        ROOT,
    ]
    subprocess.run(build, check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "installed")
    here = {**os.environ, "PYTHONPATH": str(tmp_path / "installed"), "PATH": str(tmp_path)}
    command = [sys.executable, "-m", "kernelwright", "serve", "--port", "0", "--store", str(tmp_path / "store")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=here) as server:
        assert server.stdout
        try:
            address = server.stdout.readline().strip()
            with urllib.request.urlopen(address, timeout=60) as answer:
                script = re.search(r'src="(/assets/[^"]+\.js)"', answer.read().decode())
            assert script
            with urllib.request.urlopen(address.rstrip("/") + script[1], timeout=60) as answer:
                assert len(answer.read()) > 10_000
        finally:
            server.terminate()


def test_files_are_compressed_kept_and_typed(client: TestClient) -> None:
    script = re.search(r'src="(/assets/[^"]+\.js)"', client.get("/").text)
    assert script
    got = client.get(script[1], headers={"Accept-Encoding": "gzip"})
    assert got.headers["content-encoding"] == "gzip"
    assert "javascript" in got.headers["content-type"]
    assert "immutable" in got.headers["cache-control"]
    assert client.get("/").headers["cache-control"] == "no-cache"
    assert client.get("/assets/nothing.js").status_code == 404
    assert client.get("/run/any").text == client.get("/").text, "addresses of views are the page's"
