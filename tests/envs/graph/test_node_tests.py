"""ONNX's node tests, rewritten and exported: a part of `fuzz/graph_node_tests.py`."""

import pytest
from graph_node_tests import Options, main


def test_exported_node_tests_give_the_expected_values(capsys: pytest.CaptureFixture[str]):
    assert main(Options(every=37, seed=1)) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert " wrong" not in said and " traceback" not in said
