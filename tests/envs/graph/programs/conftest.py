"""Exports of torch modules in the process of the tests."""

from collections.abc import Iterator
from functools import cache

import pytest


@pytest.fixture(scope="session")
def quick_exports() -> Iterator[None]:
    """Parse the 500 functions of torch's exporter once; it parses them at each export, for half a second."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(cache(ONNXRegistry.from_torchlib)))
        yield
