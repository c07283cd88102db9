"""Torch modules as people call them: keywords, nesting, several examples, and what stands for a module."""

import copy
import pickle
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import irgym
from irgym.api.modules import as_called
from irgym.base.errors import IrgymError, ProgramError

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn

from irgym.measure.callables.torch_calls import Called  # noqa: E402

BRIEF = irgym.Searching(evaluations=2)
X = torch.linspace(-1, 1, 24).reshape(3, 8)


@dataclass
class Output:
    logits: Any
    count: int
    state: Any


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 8)
        self.cell = nn.Linear(8, 16)

    def forward(self, ids: Any, state: Any = None, *, scale: float = 1.0, mask: Any = None) -> Output:
        x = self.embedding(ids) * scale
        if mask is not None:
            x = x * mask["left"].unsqueeze(-1)
        if state is None:
            state = (torch.zeros(1, 16), torch.ones(1, 16))
        y = self.cell(x).sum(1) + state[0]
        return Output(y, 3, (y * state[1], y))


class Sum(nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        return x + y


class Branch(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * 2 if x.sum() > 0 else x


class Sized(nn.Module):
    def forward(self, x: Any) -> Any:
        return {"twice": x * 2, "rows": x.shape[0]}


class Digits(nn.Module):
    def forward(self, n: Any, m: Any) -> Any:
        return n * 3 + m


def layers() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()


@pytest.fixture(scope="module")
def tuned() -> Any:
    """Layers, tuned for batches of several sizes."""
    return irgym.tune(layers(), example_inputs=[(X,), (X[:2],)], searching=BRIEF)


def alike(found: Any, wanted: Any) -> bool:
    return torch.allclose(found, wanted, atol=1e-5)


def test_keywords_nested_inputs_and_constants_go_through():
    module, ids = Recurrent().eval(), torch.arange(14).reshape(2, 7)
    state = (torch.ones(2, 16), torch.zeros(2, 16))
    given = {"state": state, "scale": 2.0, "mask": {"left": torch.ones(2, 7)}}
    fast = irgym.tune(module, ids, **given, searching=BRIEF)
    with torch.no_grad():
        found, wanted = fast(ids, state, scale=2.0, mask=given["mask"]), module(ids, **given)
        assert isinstance(found, Output) and found.count == 3 and isinstance(found.state, tuple)
        assert alike(found.logits, wanted.logits) and alike(found.state[1], wanted.state[1])
        with pytest.warns(UserWarning, match=r"was tuned for the input 2\.0, not for 3\.0.*module itself"):
            assert torch.equal(
                fast(ids, state, scale=3.0, mask=given["mask"]).logits,
                fast.module.instead[0](ids, state, scale=3.0, mask=given["mask"]).logits,
            )
    restored = pickle.loads(pickle.dumps(fast))
    assert isinstance(restored, nn.Module) and type(restored(ids, **given)) is Output


def test_sizes_that_differ_between_examples_stay_open(tuned: Any):
    assert tuned.validated and "?" in tuned.program
    for rows in (1, 3, 5):
        x = torch.randn(rows, 8)
        with torch.no_grad():
            assert alike(tuned(x), layers()(x))


def test_a_tuned_module_pickles_copies_and_runs_in_threads(tuned: Any, tmp_path: Path):
    module = tuned.module
    assert isinstance(module, nn.Module) and not list(module.parameters())
    torch.save(module, tmp_path / "fast.pt")
    loaded = torch.load(tmp_path / "fast.pt", weights_only=False)
    for other in (loaded, copy.deepcopy(module), pickle.loads(pickle.dumps(tuned))):
        assert torch.equal(other(X), module(X))
    wrong: list[int] = []
    original = layers()

    def work() -> None:
        for rows in range(1, 40):
            x = torch.randn(rows, 8)
            with torch.no_grad():
                wrong.extend([rows] * (not alike(module(x), original(x))))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class Rows(torch.utils.data.Dataset):
    def __init__(self, module: Any) -> None:
        self.module = module

    def __len__(self) -> int:
        return 4

    def __getitem__(self, row: int) -> Any:
        return self.module(torch.full((1, 8), float(row)))[0]


def test_workers_of_a_loader_call_it(tuned: Any):
    tuned(X)  # the session of this process, whose threads do not outlive a fork
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)  # of jax, if another test imported it
        loader = torch.utils.data.DataLoader(Rows(tuned.module), 2, num_workers=1, timeout=60)
        found = torch.cat(list(loader))
    with torch.no_grad():
        assert alike(found, layers()(torch.arange(4.0)[:, None].expand(4, 8)))


def test_other_inputs_go_to_the_module_with_one_warning(tuned: Any):
    fast = copy.deepcopy(tuned.module)
    x = X.clone().requires_grad_()
    with pytest.warns(UserWarning, match=r"requires gradients: call it under torch\.no_grad\(\)"):
        assert fast(x).requires_grad
    assert fast(x).requires_grad  # without a warning
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        fast(torch.ones(3, 9))


def test_a_tuned_onnx_file_is_called_with_arrays_or_tensors(tuned: Any, tmp_path: Path):
    tuned.export(tmp_path / "fast.onnx")
    again = irgym.tune(f"{tmp_path / 'fast.onnx'}", searching=BRIEF)
    assert alike(again(X), tuned(X)) and alike(torch.from_numpy(again(input=X.numpy())), tuned(X))
    with pytest.raises(IrgymError, match="the model takes input, not 2 inputs in order: give each once"):
        again(X, X)
    with pytest.raises(IrgymError, match="ONNX Runtime cannot run the model on these inputs"):
        again(X.double())


def test_an_exported_program_is_taken_with_its_example():
    program = torch.export.export(layers(), (X,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    called, inputs = as_called(program, (), {})
    assert isinstance(called, Called) and called.open_axes == [frozenset({0})]
    assert torch.equal(inputs[0], X) and torch.equal(called(X), layers()(X))


def test_one_tuple_or_dict_of_tensors_is_taken_for_the_inputs():
    for given in ((X, X), [X, X], {"x": X, "y": X}):
        program, inputs = as_called(Sum(), (given,), {})
        assert len(inputs) == 2 and torch.equal(program(*inputs), X + X)  # type: ignore
    program, inputs = as_called(Recurrent(), (X.long().abs(), (X, X)), {})
    assert isinstance(program, Called) and len(inputs) == 3


def test_numbers_of_sizes_beside_tensors():
    fast = irgym.tune(Sized().eval(), X, searching=BRIEF)
    assert fast(X)["rows"] == 3 and alike(fast(X)["twice"], X * 2)


def test_example_values_tell_ranges_of_whole_numbers():
    from irgym.envs.graph.programs.exporting import note_example, to_onnx
    from irgym.envs.graph.programs.metadata import read_ranges

    n = torch.tensor([7, 900])
    model = to_onnx(Digits().eval(), (n, n - 1), "Digits")
    note_example(model, (n, n - 1))
    assert sorted(read_ranges(model).values()) == [(6, 900), (7, 901)]


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "no inputs": (lambda: irgym.tune(layers()), "comes without inputs"),
    "inputs twice": (lambda: irgym.tune(layers(), X, example_inputs=(X,)), "given twice"),
    "an array": (lambda: irgym.tune(layers(), X.numpy()), r"input 'input' .*numpy\.ndarray: .*from_numpy"),
    "numbers": (lambda: irgym.tune(layers(), [1.0]), "no input of Sequential is a tensor"),
    "an object": (lambda: irgym.tune(Sum(), X, object()), "the input 'y' of Sum is an object: give tensors"),
    "a word": (lambda: irgym.tune(layers(), X, secnds=1), "unexpected keyword argument 'secnds'"),
    "a class": (lambda: irgym.tune(nn.Linear, X), "Linear is a class: make a module of it"),
    "weights": (lambda: irgym.tune(layers().state_dict()), "load it into its module"),
    "a tensor": (lambda: irgym.tune(X, layers()), "give the module first"),
    "a function": (lambda: irgym.tune(lambda x: x, X), "give a torch.nn.Module whose forward calls it"),
    "bfloat16": (lambda: irgym.tune(layers().bfloat16(), X.bfloat16()), r"call \.float\(\) on the module"),
    "a branch": (lambda: irgym.tune(Branch().eval(), X), r"choose by torch\.where"),
    "types": (lambda: irgym.tune(layers(), example_inputs=[(X,), (X.double(),)]), "has another type or rank"),
    "widths": (lambda: irgym.tune(layers(), example_inputs=[(X,), (X[:, :5],)]), "raises RuntimeError"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_mistakes_are_refused_in_one_sentence(name: str, capfd: pytest.CaptureFixture[str]):
    call, words = REFUSED[name]
    with pytest.raises(ProgramError, match=words) as caught:
        call()
    said = str(caught.value)
    assert "\n" not in said and "jax" not in said.lower() and ".eval()" not in said
    printed = capfd.readouterr()
    assert not printed.out + printed.err


def test_only_modules_take_keywords():
    with pytest.raises(TypeError, match="no argument 'secnds'"):
        irgym.tune("loops://mm/8x8x8", secnds=1)
