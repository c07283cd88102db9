"""Convolutions by name, with torch as the oracle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.base.errors import ProgramError
from irgym.envs.loops.baselines import prepared_baseline
from irgym.envs.loops.programs.contraction import parse_uri

FEW = st.integers(1, 2)


@settings(deadline=None, max_examples=60)
@given(
    outputs=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    taps=st.lists(st.integers(1, 3), min_size=3, max_size=3),
    stride=FEW,
    dilation=FEW,
    groups=FEW,
    padding=st.integers(0, 2),
    flip=st.booleans(),
    dtype=st.sampled_from(("f32", "f64")),
)
def test_convolutions_are_torchs(
    outputs: list[int],
    taps: list[int],
    stride: int,
    dilation: int,
    groups: int,
    padding: int,
    flip: bool,
    dtype: str,
):
    """The reference, and the baselines of numpy and torch, are torch's convolution in float64."""
    torch = pytest.importorskip("torch")
    rank = len(outputs)
    taps = taps[:rank]
    sizes = (2, *outputs, 3 * groups, 4 * groups, *taps)
    uri = f"loops://{('conv1d', 'conv', 'conv3d')[rank - 1]}/{'x'.join(map(str, sizes))}"
    query = f"stride={stride}&dilation={dilation}&groups={groups}&padding={padding}&flip={str(flip).lower()}"
    extents = [
        stride * (out - 1) + dilation * (tap - 1) + 1 - 2 * padding
        for out, tap in zip(outputs, taps, strict=True)
    ]
    if min(extents) < 1 or any(
        padding > stride * (out - 1) + dilation * (tap - 1) for out, tap in zip(outputs, taps, strict=True)
    ):
        with pytest.raises(ProgramError):
            parse_uri(f"{uri}?{query}")
        return
    contraction = parse_uri(f"{uri}?{query}&dtype={dtype}")
    a, b = contraction.random_inputs(1)
    image = torch.from_numpy(a).double().reshape(2, *extents, 3 * groups).movedim(-1, 1)
    weight = torch.from_numpy(b).double().reshape(*taps, 3, 4 * groups).movedim((-1, -2), (0, 1))
    if flip:
        weight = weight.flip(tuple(range(2, rank + 2)))
    function = (torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d)[rank - 1]
    expected = function(image, weight, None, stride, padding, dilation, groups).movedim(1, -1).numpy()
    shape = contraction.shapes[2]
    np.testing.assert_allclose(contraction.reference(a, b), expected.reshape(shape), atol=1e-12)
    for name in ("numpy", "torch"):
        baseline = prepared_baseline(name, contraction, a, b, 1)
        baseline.run(2)
        np.testing.assert_allclose(baseline.result().reshape(shape), expected.reshape(shape), atol=1e-4)


def test_padding_reads_zeros_around_the_input_and_flips_reverse_the_filter():
    contraction = parse_uri("loops://conv1d/1x4x1x1x3?padding=1&flip=true")
    assert contraction.statement == "C[n, w, f] += A[n, w-s+1:4, c] * B[s, c, f]"
    assert contraction.shapes[0] == (1, 4, 1)
    signal, taps = np.arange(1.0, 5.0), np.array([1.0, 10.0, 100.0])
    found = contraction.reference(signal.reshape(1, 4, 1), taps.reshape(3, 1, 1))
    np.testing.assert_array_equal(found.ravel(), np.convolve(signal, taps, mode="same"))


def test_depthwise_convolutions_run_over_groups():
    contraction = parse_uri("loops://conv/1x4x4x8x8x3x3?groups=8&padding=1")
    assert contraction.statement.startswith("C[n, h, w, g, f] +=")
    assert [table["g"] for table in contraction.strides] == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i8"])
@pytest.mark.parametrize(
    "program",
    [
        "mm/5x6x7?",
        "einsum/ij->ji?i=3&j=4&",
        "einsum/[h+r-1:5],r->h?h=5&r=3&",
        "einsum/[-i+4]j,j->i?i=5&j=3&",
        "conv/1x4x4x2x3x3x3?padding=1&",
    ],
)
def test_baselines_of_every_type_are_right_or_say_why_not(program: str, dtype: str):
    from irgym.base.errors import BackendError
    from irgym.envs.loops.checking.inputs import tolerant
    from irgym.measure.checking.agreement import compare

    contraction = parse_uri(f"loops://{program}dtype={dtype}")
    a, b = contraction.random_inputs(2)
    for name in ("numpy", "torch", "tvm"):
        try:
            baseline = prepared_baseline(name, contraction, a, b, 1)
        except BackendError as error:
            assert (name != "numpy" and "leave it out" in str(error)) or "TVM is not installed" in str(error)
            continue
        baseline.run(1)
        found = compare(tolerant(contraction, a, b), baseline.result().reshape(contraction.shapes[2]))
        assert found.ok, f"{name}: {found.detail}"


def test_sizes_of_the_families_are_in_the_order_of_their_axes():
    """The letters of a family, so that a change of their order is seen."""
    forms = {
        family: parse_uri(f"loops://{family}/{sizes}").dims
        for family, sizes in {
            "conv1d": "2x3x4x5x6",
            "conv": "2x3x4x5x6x7x8",
            "conv3d": "2x3x4x5x6x7x2x3x4",
        }.items()
    }
    assert forms["conv1d"] == (("n", 2), ("w", 3), ("s", 6), ("c", 4), ("f", 5))
    assert forms["conv"] == (("n", 2), ("h", 3), ("w", 4), ("r", 7), ("s", 8), ("c", 5), ("f", 6))
    assert forms["conv3d"][:4] == (("n", 2), ("d", 3), ("h", 4), ("w", 5))
