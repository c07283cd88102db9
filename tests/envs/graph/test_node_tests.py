"""ONNX's node tests, rewritten and exported: a part of `fuzz/graph_node_tests.py`."""

import sys
from types import ModuleType

import pytest
from graph_node_tests import Options, main

SLOW = ("averagepool", "lppool", "maxpool")
"""Files of ONNX that take five seconds to compute what they expect."""


def test_exported_node_tests_give_the_expected_values(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    for name in SLOW:
        monkeypatch.setitem(sys.modules, f"onnx.backend.test.case.node.{name}", ModuleType(name))
    assert main(Options(every=37, seed=1)) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert " wrong" not in said and " traceback" not in said
