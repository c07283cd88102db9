"""Files of torch.export, valid and hostile; `fuzz/hostile/files.py` opens the same by the command line."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fuzz.hostile import archives

from irgym.base.errors import ProgramError
from irgym.measure.pt2.loading import inputs_of, load, try_out
from irgym.measure.pt2.refusal import Refused
from irgym.measure.pt2.text import checked_expression, checked_name, checked_text

ELSEWHERE = {"guard_runs_code", "size_tower", "zeros_2_34", "zip_bomb", "pickle_beside_mlir"}
"""Archives that load, that need a child, that have gigabytes, or that other code opens."""


class Choosing(torch.nn.Module):
    """A module with control flow, a size that depends on its inputs' sizes, and containers."""

    def forward(self, x: torch.Tensor, pair: dict[str, torch.Tensor]):
        joined = torch.cat([x, pair["other"]])
        part = joined[: joined.shape[0] // 3].reshape(-1, 2)
        chosen = torch.cond(x.sum() > 0, lambda value: value + 1, lambda value: value - 1, (x,))
        with torch.no_grad():
            total = (x * 2).sum()
        return {"part": part * 2, "rest": [chosen, total]}


@pytest.fixture(scope="module")
def choosing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pt2") / "choosing.pt2"
    inputs = (torch.randn(6, 4), {"other": torch.randn(9, 4)})
    sizes = ({0: torch.export.Dim.AUTO}, {"other": {0: torch.export.Dim.AUTO}})
    torch.export.save(torch.export.export(Choosing(), inputs, dynamic_shapes=sizes), path)
    return path


def test_a_good_file_computes_what_its_module_does(choosing: Path):
    program = load(choosing)
    arguments, keywords = inputs_of(program, choosing)
    assert not keywords
    found, wanted = program.module()(*arguments), Choosing()(*arguments)
    torch.testing.assert_close(found, wanted)
    try_out(choosing)


def test_sizes_stay_open(choosing: Path):
    inputs = (torch.randn(3, 4), {"other": torch.randn(12, 4)})
    torch.testing.assert_close(load(choosing).module()(*inputs), Choosing()(*inputs))


def test_weights_are_loaded(tmp_path: Path):
    archives.write(archives.good(), tmp_path / "good.pt2")
    program = load(tmp_path / "good.pt2")
    assert set(program.state_dict) == {"linear.weight", "linear.bias", "constant"}
    x = torch.ones(2, 4)
    weight, bias = program.state_dict["linear.weight"], program.state_dict["linear.bias"]
    wanted = torch.relu(x @ weight.T + bias) + torch.arange(3.0)
    torch.testing.assert_close(program.module()(x), {"y": wanted})


def test_further_entries_are_returned(tmp_path: Path):
    archives.write({**archives.good(), "extra/note.txt": b"hello"}, tmp_path / "good.pt2")
    found = {"note.txt": ""}
    load(tmp_path / "good.pt2", found)
    assert found == {"note.txt": "hello"}


@pytest.mark.parametrize("name", sorted(set(archives.CASES) - ELSEWHERE))
def test_a_hostile_file_is_refused_and_runs_nothing(name: str, tmp_path: Path):
    canary = tmp_path / "canary"
    archives.CASES[name](tmp_path, f"touch {canary}")
    with pytest.raises(ProgramError, match=r"hostile\.pt2"):
        load(tmp_path / "hostile.pt2")
    assert not canary.exists()


def test_the_payloads_of_these_files_run_elsewhere(tmp_path: Path):
    canary = tmp_path / "canary"
    archives.CASES["pickle_of_torch_save"](tmp_path, f"touch {canary}")
    torch.load(tmp_path / "hostile.pt2", weights_only=False)
    assert canary.exists()


def test_guards_are_dropped(tmp_path: Path):
    canary = tmp_path / "canary"
    archives.CASES["guard_runs_code"](tmp_path, f"touch {canary}")
    try_out(tmp_path / "hostile.pt2")
    assert not canary.exists()


def test_environment_variables_are_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", raising=False)
    canary = tmp_path / "canary"
    archives.CASES["pickle_in_sample_inputs"](tmp_path, f"touch {canary}")
    with pytest.raises(ProgramError, match="holds pickled objects"):
        load(tmp_path / "hostile.pt2")
    assert not canary.exists()
    monkeypatch.undo()


def test_a_module_that_fails_on_its_own_inputs_is_refused(tmp_path: Path):
    entries = archives.good()
    model = json.loads(entries[archives.MODEL])
    model["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.aten.bilinear.default"
    entries[archives.MODEL] = json.dumps(model).encode()
    archives.write(entries, tmp_path / "hostile.pt2")
    with pytest.raises(ProgramError, match=r"hostile\.pt2"):
        try_out(tmp_path / "hostile.pt2")


def test_compressed_archives_are_refused(tmp_path: Path):
    archives.write(archives.good(), tmp_path / "packed.pt2", zipfile.ZIP_DEFLATED)
    with pytest.raises(ProgramError, match="compressed entry"):
        load(tmp_path / "packed.pt2")


@pytest.mark.parametrize(
    "text",
    [
        "s77",
        "2*s0 + 1",
        "Mul(Integer(2), FloorDiv(Symbol('s77', positive=True, integer=True), Integer(3)))",
        "Max(1, u0)",
    ],
)
def test_expressions_of_sizes_are_accepted(text: str):
    assert checked_expression(text) == text


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (checked_expression, "exec(s0)"),
        (checked_expression, "s0.__class__"),
        (checked_expression, "Symbol(exec)"),
        (checked_expression, "Symbol('s0', integer=exec(1))"),
        (checked_expression, "[s0 for s0 in s1]"),
        (checked_expression, "lambda: s0"),
        (checked_expression, "Add(*s0)"),
        (checked_expression, "'s0'"),
        (checked_expression, "("),
        (checked_expression, "-" * 5_000 + "1"),
        (checked_expression, "1" * 20_000),
        (checked_expression, "open"),
        (checked_name, "a b"),
        (checked_name, "x=1"),
        (checked_text, "a'b"),
        (checked_text, 'a"b'),
        (checked_text, "a\nb"),
        (checked_text, "f(x)"),
    ],
)
def test_other_texts_are_refused(check: Callable[[str], str], text: str):
    with pytest.raises(Refused):
        check(text)
