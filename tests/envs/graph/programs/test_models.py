"""Every family is exported at its smallest size, without repeated blocks, and agrees with torch."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from small_models import small
from torch import nn

from irgym.base.errors import ProgramError
from irgym.envs.graph.programs.exporting import build, export, exported
from irgym.envs.graph.programs.families import FAMILIES
from irgym.envs.graph.programs.inputs import draw, inputs_of, ranges_of
from irgym.envs.graph.programs.metadata import read_ranges
from irgym.envs.graph.programs.models.catalogue import BUILDERS
from irgym.envs.graph.programs.models.emformer import _visible
from irgym.envs.graph.programs.models.images import _NAMES, _models
from irgym.envs.graph.programs.models.model import Model, enliven
from irgym.envs.graph.programs.ranges import derived_range

pytestmark = pytest.mark.usefixtures("quick_exports")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Let torch use one thread: beside other tests, several threads would wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def run(content: bytes, feeds: dict[str, np.ndarray]) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    [result] = session.run(None, feeds)
    return result


def shallow(model: Model) -> Model:
    """Return a model without the blocks of torchvision's networks that repeat earlier ones.

    A block repeats another if it has the same parts and its result has the shape of its operand.
    """
    if hasattr(module := model.module, "features") and hasattr(module.features, "denseblock1"):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            short = replace(model, module=_models().DenseNet(block_config=(2, 2, 2, 2)).eval())
            enliven(short)
        return short
    seen: set[object] = set()
    repeated: list[tuple[nn.Module, str]] = []

    def note(parent: nn.Module, name: str, part: nn.Module, given: tuple[Any, ...], result: Any) -> None:
        kind = type(part), *((type(inner), getattr(inner, "kernel_size", 0)) for inner in part.modules())
        if kind in seen and given[0].shape == result.shape:
            repeated.append((parent, name))
        seen.add(kind)

    hooks = [
        part.register_forward_hook(partial(note, parent, name))
        for parent in module.modules()
        for name, part in parent.named_children()
        if type(part).__module__.startswith("torchvision.models.") and list(part.children())
    ]
    with torch.no_grad():
        module(*model.inputs.values())
    for hook in hooks:
        hook.remove()
    for parent, name in repeated:
        setattr(parent, name, nn.Identity())
    return model


def test_a_model_larger_than_memory_is_refused(monkeypatch):
    monkeypatch.setitem(BUILDERS, "resnet18", lambda options: torch.empty(1 << 46))
    with pytest.raises(ProgramError, match=r"'graph://resnet18' needs more memory than there is: choose"):
        build("graph://resnet18")


def test_every_family_has_a_builder():
    assert set(BUILDERS) == set(FAMILIES)


@pytest.mark.parametrize("name", _NAMES)
def test_networks_of_torchvision_are_whole(name: str):
    published = _models().get_model_weights(_NAMES[name]).DEFAULT.meta["num_params"]
    assert sum(value.numel() for value in build(small(name)).module.parameters()) == published


SAME_BLOCKS = {"resnet50": "resnext50", "inception_v3": "squeezenet1_1", "efficientnet_b0": "mobilenet_v3"}
"""Networks of torchvision whose operators are those of another family, which is exported in their place."""


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in SAME_BLOCKS])
def test_a_family_computes_what_torch_computes(name: str):
    uri = small(name)
    model = shallow(build(uri))
    content = exported(model, uri)
    written = onnx.load_model_from_string(content)
    onnx.checker.check_model(written)
    inputs, ranges = inputs_of(written), ranges_of(written)
    assert [given.name for given in inputs] == list(model.inputs)
    assert [given.shape for given in inputs] == [tuple(value.shape) for value in model.inputs.values()]
    assert ranges == model.ranges == read_ranges(written)
    for name in ranges:
        assert derived_range(written, name) == ranges[name], "the graph tells as much as the metadata"
    results = []
    for seed in range(2):
        feeds = draw(inputs, ranges, seed)
        found = run(content, feeds)
        with torch.no_grad():
            wanted = model.module(*(torch.from_numpy(feeds[given.name]) for given in inputs)).numpy()
        assert found.shape == wanted.shape and np.isfinite(found).all()
        assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()
        results.append(found)
    assert np.abs(results[0] - results[1]).max() > 1e-3 * np.abs(results[0]).max(), "inputs matter"


def test_the_same_uri_is_the_same_file_whatever_was_drawn_before():
    uri = small("dalle")
    torch.manual_seed(1)
    first = export(uri)
    assert b"/envs/" not in first and b".py" not in first, "nothing tells where it was made"
    state = torch.get_rng_state()
    torch.manual_seed(2)
    assert export(uri) == first
    torch.manual_seed(1)
    assert torch.equal(torch.get_rng_state(), state), "and others draw what they would have drawn"


@pytest.mark.parametrize("name", ["squeezenet1_1", "bert", "lstm"])
def test_the_same_uri_has_the_same_weights(name: str):
    first, second = (build(small(name)).module.state_dict() for _ in range(2))
    assert list(first) == list(second) and all(torch.equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize("name", ["resnet18", "vit_b_16", "gpt2", "unet", "dalle"])
def test_no_weight_is_left_at_zeros_or_ones(name: str):
    module = build(small(name)).module
    for key, value in module.named_parameters():
        assert value.numel() == 1 or value.std() > 0, key
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            assert part.running_mean.std() > 0 and part.running_var.std() > 0


def test_batch_norms_keep_values_at_their_scale():
    model = build(small("mobilenet_v3"))
    spreads = []
    for part in model.module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.register_forward_hook(lambda _, given, result: spreads.append(float(result.std())))
    with torch.no_grad():
        model.module(*model.inputs.values())
    assert len(spreads) > 40 and 0.3 < min(spreads) <= max(spreads) < 3


def test_segments_of_an_emformer_see_what_the_paper_says():
    seen = _visible(segments=3, segment=2, left=1, right=1).int().tolist()
    # Columns: three memories, three look-aheads, six frames.
    assert seen[2] == [1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1], "the last look-ahead"
    assert seen[3] == seen[4] == [0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0], "frames of the first segment"
    assert seen[5] == seen[6] == [1, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0], "frames of the second"
    assert seen[10] == [0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0], "a summary sees no memory"


def test_an_emformer_sees_no_further_than_its_look_ahead():
    model = build("graph://emformer?hidden=32&heads=2&layers=2&segments=4&segment=2&left=2&right=1")
    [sound] = model.inputs.values()
    other = sound.clone()
    other[:, 4 * (2 * 2 + 1) :] += 1.0  # beyond what the second segment sees
    with torch.no_grad():
        first, second = model.module(sound), model.module(other)
    assert torch.allclose(first[:, :4], second[:, :4], atol=1e-6)
    assert not torch.allclose(first[:, 4:], second[:, 4:], atol=1e-3)


def test_dalle_sees_nothing_later():
    model = build(small("dalle"))
    text, image = model.inputs.values()
    other = image.clone()
    other[:, -1] = (image[:, -1] + 1) % 48
    with torch.no_grad():
        first, second = model.module(text, image), model.module(text, other)
    assert torch.allclose(first[:, :-1], second[:, :-1], atol=1e-6)
    assert not torch.allclose(first[:, -1], second[:, -1], atol=1e-3)


@pytest.mark.parametrize(("name", "cell"), [("lstm", nn.LSTM), ("gru", nn.GRU)])
def test_unrolled_layers_are_those_of_torch(name: str, cell: type[nn.LSTM | nn.GRU]):
    model = build(f"graph://{name}?hidden=16&layers=2&sequence=5&batch=3")
    whole = cell(16, 16, 2, batch_first=True)
    with torch.no_grad():
        for layer, cell in enumerate(model.module.cells):
            for key, value in cell.named_parameters():
                getattr(whole, f"{key}_l{layer}").copy_(value)
        [x] = model.inputs.values()
        assert torch.allclose(model.module(x), whole(x)[0], atol=1e-6)
