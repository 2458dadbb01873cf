"""A cache of its own for these tests, and one thread: two on a busy machine spend their time waiting for each other."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.getbasetemp() / "api-cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch._dynamo.reset()
    yield
    torch.set_num_threads(threads)
