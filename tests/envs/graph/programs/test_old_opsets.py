"""Operators of opsets 7 to 12, beside the files themselves: a part of `fuzz/graph_old_opsets.py`."""

import onnx
import pytest
from graph_old_opsets import OPSETS, Options, main
from graph_reading.operators import samples

from irgym.envs.graph.programs.upgrading import REWRITES

RANDOM = {"Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
TEXTS = {"StringNormalizer", "TfIdfVectorizer"}
SEQUENCES = {"ConcatFromSequence", "SplitToSequence"} | {
    f"Sequence{what}" for what in ("At", "Construct", "Empty", "Erase", "Insert", "Length")
}
OUTER = {"Constant", "If"}
"""Constants are weights of all samples, and `If` is around each."""


def test_all_operators_have_samples():
    """Those that draw random numbers are refused, and texts and sequences are no inputs."""
    known = {
        schema.name
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain == "" and schema.since_version <= OPSETS[-1]
    }
    assert known - {sample.operator for sample in samples(0)} == RANDOM | TEXTS | SEQUENCES | OUTER


@pytest.mark.parametrize(("operators", "every"), [(tuple(REWRITES), 14), ((), 90)])
def test_old_operators_compute_what_the_files_do(
    operators: tuple[str, ...], every: int, capsys: pytest.CaptureFixture[str]
):
    assert main(Options(operators, every=every)) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert int(said.partition(" right")[0].split()[-1]) >= 20, said
