# SPDX-License-Identifier: BSD-2-Clause
"""xputrace continuous on a server, saved again and again: the short form of what `make soak` does for half an hour."""

from soak import soak

PAIRED = "measures memory and losses at full load"


def test_server():
    """4 workers of ONNX Runtime, 2,000 inferences a second: files complete, nothing lost, memory flat once it is full."""
    soak(seconds=16, every=2, window=2 << 20)
