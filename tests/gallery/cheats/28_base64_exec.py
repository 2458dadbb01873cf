# task: matmul
# status: cheating
# reason: librar|operator|aten|torch|compute|blas|mkl|pure
# entry: B28
# track: pure
"""The library call is inside a base64 string that is executed."""

from torch import nn


import base64

exec(base64.b64decode("ZGVmIGhpZGRlbihhLCBiKToKICAgIGltcG9ydCB0b3JjaAogICAgcmV0dXJuIHRvcmNoLm1tKGEsIGIpCg=="))


class ModelNew(nn.Module):
    def forward(self, a, b):
        return hidden(a, b)
