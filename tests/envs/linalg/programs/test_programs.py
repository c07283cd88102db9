from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irgym.base.errors import ProgramError
from irgym.core.uri import Family
from irgym.envs.linalg.programs.families import FAMILIES
from irgym.envs.linalg.programs.operators import Operator
from irgym.envs.linalg.programs.uris import File, Network, parse_uri


@st.composite
def uris(draw: st.DrawFn) -> tuple[Family, tuple[int, ...], dict[str, int], str]:
    """A family, sizes and some options, with their URI; a window may exceed its image."""
    family = draw(st.sampled_from(list(FAMILIES.values())))
    least, greatest = family.ranks or (len(family.sizes),) * 2
    sizes = draw(st.lists(st.integers(1, 12), min_size=least, max_size=greatest))
    chosen = draw(st.lists(st.sampled_from(family.options), unique=True)) if family.options else []
    options = {
        option.name: option.multiple
        * draw(st.integers(-(-option.low // option.multiple), option.high // option.multiple))
        for option in chosen
    }
    path = f"/{'x'.join(map(str, sizes))}" if sizes else ""
    query = "&".join(f"{name}={value}" for name, value in options.items())
    return family, tuple(sizes), options, f"linalg://{family.name}{path}?{query}"


@given(uris())
def test_canonical_uris_are_fixed_points_that_keep_the_values(
    drawn: tuple[Family, tuple[int, ...], dict[str, int], str],
):
    family, sizes, options, uri = drawn
    try:
        source = parse_uri(uri)
    except ProgramError as error:
        assert "does not fit" in str(error) or "multiple of heads" in str(error)
        return
    assert source.family == family.name and parse_uri(source.uri) == source
    assert isinstance(source.origin, Operator | Network)
    given_options = dict(source.origin.options)
    assert {name: given_options[name] for name in options} == options
    assert list(given_options) == [option.name for option in family.options]
    assert isinstance(source.origin, Network) or source.origin.sizes == sizes


@given(
    st.text(max_size=30), st.sampled_from(["", "linalg:", "linalg://", "linalg://matmul/", "linalg://add/3x"])
)
def test_any_text_is_a_program_or_refused_in_one_sentence(text: str, start: str):
    try:
        parse_uri(start + text)
    except ProgramError as error:
        assert "\n" not in str(error)


def test_the_canonical_form_is_sorted_and_without_defaults():
    assert parse_uri("linalg://matmul/016x8x4?").uri == "linalg://matmul/16x8x4"
    assert parse_uri("linalg://conv2d/1x1x9x9x1x3x3?stride=1").uri == "linalg://conv2d/1x1x9x9x1x3x3"
    assert parse_uri("linalg://sequence/3?length=3").uri == "linalg://sequence/3"
    uri = "linalg://transformer?width=128&batch=1&length=64&heads=4"
    assert parse_uri(uri).uri == "linalg://transformer?length=64&width=128"


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("matmul", "linalg://OPERATOR/SIZES"),
        ("loops://mm/4x4x4", "linalg://OPERATOR/SIZES"),
        ("linalg://", "choose among matmul, batch_matmul"),
        ("linalg://gemm/4x4x4", "choose among matmul, batch_matmul"),
        ("linalg://matmul/4x4/4", "with 3 whole numbers"),
        ("linalg://matmul", "linalg://matmul/MxNxK"),
        ("linalg://matmul/4x4", "with 3 whole numbers"),
        ("linalg://matmul/4x4x", "with 3 whole numbers"),
        ("linalg://matmul/4x4x-4", "with 3 whole numbers"),
        ("linalg://matmul/4x4x\u0664", "with 3 whole numbers"),
        ("linalg://matmul/4x4x4444444444", "size above 999999999"),
        ("linalg://matmul/4x0x4", "at least 1"),
        ("linalg://matmul/99999x1x99999", "9999800001 elements"),
        ("linalg://matmul/4x4x4?stride=2", "no option 'stride'; its options: none"),
        ("linalg://add/1x1x1x1x1x1x1", "with 1 to 6 whole numbers"),
        ("linalg://conv2d/1x1x2x2x1x3x3", "3x3 does not fit into 2x2"),
        ("linalg://conv2d/1x1x9x9x1x3x3?stride=0", "whole number in 1 to 64"),
        ("linalg://conv2d/1x1x9x9x1x3x3?stride", "name=value"),
        ("linalg://conv2d/1x1x9x9x1x3x3?stride=2&stride=2", "twice"),
        ("linalg://sequence/1?length=7", "whole number in 2 to 6"),
        ("linalg://lattice/x", "linalg://lattice/SEED"),
        ("linalg://resnet18/224", "with no whole numbers"),
        ("linalg://resnet18?size=100", "a multiple of 32"),
        ("linalg://resnet18?pixels=224", "its options: batch, classes, size"),
        ("linalg://transformer?width=66", "multiple of heads (4)"),
        ("linalg:", "names no file"),
        ("linalg:model.onnx", "*.mlir"),
        ("linalg:missing.mlir", "no such file"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(uri: str, words: str):
    with pytest.raises(ProgramError) as caught:
        parse_uri(uri)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_files_keep_their_path_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "program.mlir").write_text("")
    (tmp_path / "folder.mlir").mkdir()
    monkeypatch.chdir(tmp_path)
    for text in ("program.mlir", "./program.mlir", f"{tmp_path}/program.mlir"):
        source = parse_uri(f"linalg:{text}")
        assert (source.uri, source.family, source.origin) == (f"linalg:{text}", "", File(Path(text)))
    with pytest.raises(ProgramError, match="is a folder"):
        parse_uri("linalg:folder.mlir")
