"""The page that is shipped: built from web/ as it is, small, and served as files of ours and nothing else."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

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
