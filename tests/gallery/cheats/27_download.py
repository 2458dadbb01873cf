# task: relu
# status: build_failed|crashed|timed_out
# reason: error|fail|network|url|reach|resol
# entry: B27,E65
# track: pure
"""Fetches its kernel from a server."""

from torch import nn


import urllib.request

source = urllib.request.urlopen("http://127.0.0.1:8/kernel.py", timeout=5).read()
exec(source)


class ModelNew(nn.Module):
    def forward(self, x):
        return kernel(x)
