import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.base.errors import ProgramError
from irgym.envs.loops.programs.contraction import parse_uri

SMALL = st.integers(1, 7)


@given(m=SMALL, n=SMALL, k=SMALL)
def test_matmul_is_numpys(m: int, n: int, k: int):
    contraction = parse_uri(f"loops://mm/{m}x{n}x{k}")
    a, b = contraction.random_inputs(0)
    np.testing.assert_allclose(contraction.reference(a, b), a.astype(float) @ b.astype(float))
    assert contraction.flops == 2 * m * n * k


@given(batch=SMALL, m=SMALL, n=SMALL, k=SMALL)
def test_batched_matmul_is_numpys(batch: int, m: int, n: int, k: int):
    contraction = parse_uri(f"loops://bmm/{batch}x{m}x{n}x{k}")
    a, b = contraction.random_inputs(0)
    np.testing.assert_allclose(contraction.reference(a, b), a.astype(float) @ b.astype(float))


@settings(deadline=None, max_examples=40)
@given(h=SMALL, w=SMALL, c=SMALL, f=SMALL, k=st.integers(1, 3), stride=st.integers(1, 3))
def test_convolution_is_torchs(h: int, w: int, c: int, f: int, k: int, stride: int):
    torch = pytest.importorskip("torch")
    uri = f"loops://conv/2x{h}x{w}x{c}x{f}x{k}x{k}" + (f"?stride={stride}" if stride > 1 else "")
    contraction = parse_uri(uri)
    a, b = contraction.random_inputs(1)
    image = torch.from_numpy(a).double().permute(0, 3, 1, 2)
    weight = torch.from_numpy(b).double().permute(3, 2, 0, 1)
    expected = torch.nn.functional.conv2d(image, weight, stride=stride).permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(contraction.reference(a, b), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("uri", "subscripts"),
    [
        ("loops://einsum/km,kn->nm?k=5&m=4&n=3", "km,kn->nm"),
        ("loops://einsum/mk,k->m?k=5&m=4", "mk,k->m"),
        ("loops://einsum/m,n->mn?m=5&n=4", "m,n->mn"),
        ("loops://einsum/bm,bm->bm?m=5&b=4", "bm,bm->bm"),
        ("loops://einsum/ab,cd->dcba?a=2&b=3&c=4&d=5", "ab,cd->dcba"),
    ],
)
def test_einsum_is_numpys(uri: str, subscripts: str):
    contraction = parse_uri(uri)
    a, b = (array.astype(float) for array in contraction.random_inputs(2))
    expected = np.einsum(subscripts, a, b)
    np.testing.assert_allclose(contraction.reference(*contraction.random_inputs(2)), expected)
    assert contraction.statement.startswith("C[")


def test_affine_axes_reach_as_far_as_the_indices():
    contraction = parse_uri("loops://einsum/[2*x+r]c,rcf->xf?x=8&r=3&c=4&f=5")
    assert contraction.shapes == ((17, 4), (3, 4, 5), (8, 5))
    assert contraction.strides[0] == {"x": 8, "r": 4, "c": 1, "f": 0}


@pytest.mark.parametrize(("letters", "opens"), [(33, True), (64, True), (65, False)])
def test_a_tensor_has_as_many_indices_as_numpy_allows(letters: int, opens: bool):
    uri = f"loops://einsum/{'a' * letters},ab->ab?a=1&b=3"
    if not opens:
        with pytest.raises(ProgramError, match="no tensor may have more than 64 indices"):
            parse_uri(uri)
        return
    contraction = parse_uri(uri)
    a, b = contraction.random_inputs(0)
    np.testing.assert_allclose(contraction.reference(a, b), a.reshape(1, 1) * b, rtol=1e-6)
