"""`torch.compile(module, backend="irgym")`."""

import sys
import tomllib
import warnings
from contextlib import nullcontext
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from irgym.api import torch_compile
from irgym.api.torch_compile import CompileOptions, backend
from irgym.base.errors import IrgymError
from irgym.judging.history import History

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn

OPTIONS = {"seconds": 0.2, "threads": 1}
X = torch.linspace(-2, 2, 32).reshape(4, 8)


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


@pytest.fixture
def never_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time of a busy machine decide whether the tuned graph is taken."""
    monkeypatch.setattr(torch_compile, "is_slower", lambda *given: False)


def layers() -> Any:
    return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4)).eval()


class Counted:
    """The back end, which counts its calls and keeps what it returned."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def __call__(self, graph: Any, inputs: Any, **given: Any) -> Any:
        self.made.append(backend(graph, inputs, **given))
        return self.made[-1]


@pytest.mark.usefixtures("never_slower")
def test_a_module_is_tuned_once_for_batches_of_all_sizes():
    module, counted = layers(), Counted()
    fast = torch.compile(module, backend=counted, dynamic=True, options=OPTIONS)
    with torch.inference_mode():
        for rows in (4, 3, 2):
            torch.testing.assert_close(fast(X[:rows]), module(X[:rows]))
    [made] = counted.made
    assert type(made).__name__ == "Compiled"
    with torch.no_grad():
        module[0].weight.mul_(2)
    with torch.inference_mode(), pytest.warns(UserWarning, match="weights have changed: compile the module"):
        torch.testing.assert_close(fast(X), module(X))
    assert len(counted.made) == 1


class Branches(nn.Module):
    def forward(self, x: Any, scale: float) -> dict[str, Any]:
        return {"product": x @ x.T * scale, "pair": (x.sum(), None)}


@pytest.mark.usefixtures("never_slower")
def test_results_keep_their_structure_and_changed_numbers_run_eagerly():
    fast = torch.compile(Branches(), backend=backend, dynamic=True, options=OPTIONS)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fast(X, 2.5)
        assert found["pair"][1] is None
        torch.testing.assert_close(found["product"], X @ X.T * 2.5)
    with torch.no_grad(), pytest.warns(UserWarning, match="a number that it takes has changed"):
        torch.testing.assert_close(fast(X, 3.5)["product"], X @ X.T * 3.5)


class Reshaped(nn.Module):
    def forward(self, x: Any) -> tuple[Any, ...]:
        rows, columns = x.shape
        return x.T.exp(), rows, columns, 2 * rows + 1, x.flatten().shape[0] // 3, None


@pytest.mark.usefixtures("never_slower")
def test_sizes_that_a_graph_returns_are_those_of_each_call():
    counted, inputs = Counted(), [part.clone() for part in (X, X[:3], X[:, :5].contiguous())]
    fast = torch.compile(Reshaped(), backend=counted, dynamic=True, options=OPTIONS)
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in inputs:
            found, wanted = fast(x), Reshaped()(x)
            torch.testing.assert_close(found[0], wanted[0])
            assert found[1:] == wanted[1:] and all(type(size) is int for size in found[1:5])
    assert [type(made).__name__ for made in counted.made] == ["Compiled"]


class Counting(nn.Module):
    def forward(self, x: Any) -> tuple[Any, Any]:
        return x * 2, int(x.sum().item())


def test_numbers_that_depend_on_values_leave_the_graph_to_torch():
    with torch._dynamo.config.patch(capture_scalar_outputs=True), torch.inference_mode():
        fast = torch.compile(Counting(), backend=backend, dynamic=True, options=OPTIONS)
        with pytest.warns(UserWarning, match="returns a number that is no size of its inputs"):
            assert fast(X + 1)[1] == 32


class Attended(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Any, src_key_padding_mask: Any) -> Any:
        return self.attention(x, x, x, key_padding_mask=src_key_padding_mask)


@pytest.mark.usefixtures("never_slower")
@pytest.mark.parametrize(
    "make", [lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), Attended], ids=["layer", "heads"]
)
def test_fused_attention_of_torch_is_tuned_too(make: Any):
    module, counted, x = make().eval(), Counted(), X.reshape(2, 2, 8)
    hidden = torch.tensor([[False, True], [False, False]])
    fast = torch.compile(module, backend=counted, dynamic=True, options=OPTIONS)
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("error")
        found, wanted = (function(x, src_key_padding_mask=hidden) for function in (fast, module))
        torch.testing.assert_close(found, wanted)
    assert [type(made).__name__ for made in counted.made] == ["Compiled"]


@pytest.mark.usefixtures("never_slower")
def test_the_best_known_schedule_is_taken_without_a_search():
    module = layers()
    for _ in range(2):
        torch._dynamo.reset()
        fast = torch.compile(module, backend=backend, options=OPTIONS)
        with torch.inference_mode():
            torch.testing.assert_close(fast(X), module(X))
    assert len(History().path.read_text().splitlines()) == 1


FALLING_BACK = {
    "gradients": (layers, lambda: torch.enable_grad(), "records gradients: call it under"),
    "dropout": (lambda: nn.Sequential(nn.Dropout(0.5)).train(), torch.no_grad, "draws random numbers"),
    "statistics": (lambda: nn.BatchNorm1d(8).train(), torch.no_grad, "changes its buffers"),
}


class Short(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 4).bfloat16()

    def forward(self, x: Any) -> Any:
        return self.inner(x.bfloat16()).float()


BFLOAT16 = {
    "autocast": (layers, lambda: torch.autocast("cpu"), "under torch.autocast: call it without"),
    "weights": (Short, nullcontext, r"call .float\(\) on it, since ONNX Runtime lacks bfloat16"),
    "results": (lambda: layers().bfloat16(), nullcontext, r"numpy has no bfloat16 numbers: call .float\(\)"),
}


@pytest.mark.parametrize("name", BFLOAT16)
def test_bfloat16_is_left_to_torch(name: str):
    make, mode, words = BFLOAT16[name]
    module = make().eval()
    x = X.bfloat16() if name == "results" else X
    fast = torch.compile(module, backend=backend, options=OPTIONS)
    with torch.inference_mode(), mode(), pytest.warns(UserWarning, match=words):
        found, wanted = fast(x), module(x)
    assert found.dtype == wanted.dtype
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", FALLING_BACK)
def test_a_graph_that_cannot_be_tuned_runs_eagerly_with_one_warning(name: str):
    make, mode, words = FALLING_BACK[name]
    module = make()
    before = {name: value.clone() for name, value in module.named_buffers()}
    fast = torch.compile(module, backend=backend, options=OPTIONS)
    with mode(), pytest.warns(UserWarning, match=words) as caught:
        torch.manual_seed(0)
        found = fast(X)
        torch.manual_seed(0)
        reference = make()
        reference.load_state_dict({**module.state_dict(), **before})
        torch.testing.assert_close(found, reference(X))
    assert len(caught) == 1 and found.requires_grad == (name == "gradients")
    torch.testing.assert_close(dict(module.named_buffers()), dict(reference.named_buffers()))


def test_options_that_make_no_sense_are_refused():
    for given, words in (
        ({"second": 1}, "no option 'second': choose among seconds, threads"),
        ({"seconds": -1}, "seconds"),
        ({"threads": 0}, "threads"),
        ({"reuse": 1}, "reuse is True or False"),
        ({"seconds": "ten"}, "seconds"),
        ({"seed": -1}, "a seed of -1"),
    ):
        with pytest.raises(IrgymError, match=words):
            CompileOptions.of(given)
    with pytest.raises(Exception, match="has no option 'second'"):
        torch.compile(layers(), backend=backend, options={"second": 1})(X)
    with pytest.raises(Exception, match="has no mode"), torch.no_grad():
        torch.compile(layers(), backend=backend, mode="max-autotune")(X)


def test_the_entry_point_names_the_back_end():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    [(name, value)] = project["entry-points"]["torch_dynamo_backends"].items()
    assert name == "irgym" and EntryPoint(name, value, "torch_dynamo_backends").load() is backend
    assert "irgym.api.torch_compile" in sys.modules
