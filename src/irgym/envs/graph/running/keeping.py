"""Reading of program files, in a child process: each is read and run once, and the result is cached."""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from numpy.typing import NDArray

from irgym.base.errors import ProgramError, explained
from irgym.base.files import write_files
from irgym.core.profiles import Profile
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.reading import content_of, prepared_model, read_graph
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.programs.inputs import draw, given_inputs, inputs_of, ranges_of
from irgym.envs.graph.programs.metadata import read_fixed, read_inputs, read_profiles
from irgym.envs.graph.programs.samples import named_inputs
from irgym.envs.graph.running.artefacts import (
    FILE,
    SAMPLES,
    STORE,
    WEIGHTS,
    model_at,
    saved,
    saved_samples,
)
from irgym.measure.code_digest import ROOT, files_of, hash_of
from irgym.measure.samples import Given
from irgym.measure.store import digest, stem_of

RECIPE = ("envs/graph/ir", "envs/graph/programs", "envs/graph/running/shapes.py")
"""Sources that the cached models depend on."""

SEED = 20261122
"""Seed of the inputs for the run of a model when it is read."""


class Kept(NamedTuple):
    """A model that was read.

    Attributes:
        path: The cached file with its structure.
        graph: Its graph.
        fixed: Initializers that callers may override, but irgym treats as constants.
        inputs: Digest of samples of its inputs; empty for none.
        profiles: Sizes that it is measured at, if there are several; else empty.
    """

    path: str
    graph: Graph
    fixed: tuple[str, ...]
    inputs: str
    profiles: tuple[Profile, ...]


def kept(path: str, name: str, inputs: Given | None = None) -> Kept:
    """Return the model of a file; unless cached, read it and run it once.

    Args:
        path: An ONNX file as `Sources` makes it.
        name: The model's name in messages.
        inputs: Samples of its inputs, which fit it.

    Raises:
        ProgramError: The model contains something unsupported, or does not run.
        StorageError: The cache folder cannot be written, or a file with weights cannot be read.
    """
    source = Path(path)
    recipe = hash_of(files_of(RECIPE), ROOT)
    versions = (onnx.__version__, version("onnxruntime"))
    stem = f"{stem_of(source.stem)}-{digest(content_of(source), recipe, *versions)}"
    found = STORE.find(stem)
    if found is None:
        with explained(f"cannot read the weights of {name}", "run the command again"):
            given = onnx.load(path, load_external_data=False)
            model, arrays = prepared_model(given, name)
            samples = named_inputs(inputs.read(), given_inputs(model)) if inputs else []
            sample = samples[0].arrays if samples else None
            _run_once(model, arrays, onnx.load(path, load_external_data=False), name, sample)
        beside = {WEIGHTS: saved(arrays), **({SAMPLES: saved_samples(samples)} if samples else {})}
        found = STORE.put(stem, model.SerializeToString(deterministic=True), beside)
    note = found.with_suffix(FILE)
    if not note.is_file() or note.read_text() != path:  # another file of the same content may have been read
        write_files({note: path.encode()})
    loaded = model_at(str(found))
    fixed = tuple(read_fixed(loaded.proto))
    return Kept(str(found), loaded.graph, fixed, read_inputs(loaded.proto), read_profiles(loaded.proto))


def _run_once(
    model: onnx.ModelProto,
    arrays: Mapping[str, NDArray[Any]],
    given: onnx.ModelProto,
    name: str,
    sample: Mapping[str, NDArray[Any]] | None,
) -> None:
    """Run a model on its user's inputs or on random ones, and correct its shapes by those of the run.

    Args:
        model: The model that `prepared_model` returned. Its shapes are changed.
        arrays: Its larger weights.
        given: The model in its file.
        name: The model's name in messages.
        sample: Inputs that its user gave.

    Raises:
        ProgramError: ONNX Runtime refuses the model, or the run takes too long.
    """
    # ONNX Runtime takes a while to import, and cached models do not need it.
    from irgym.envs.graph.running.reasons import reason
    from irgym.envs.graph.running.sessions import CompileError
    from irgym.envs.graph.running.shapes import correct, observed_shapes

    graph = read_graph(model)
    try:
        shapes = observed_shapes(
            graph, Weights(arrays), lambda: sample or draw(inputs_of(model), ranges_of(model), SEED)
        )
    except CompileError as error:
        raise ProgramError(f"{name} does not run: {reason(error, graph, name)}") from error
    correct(model, given, shapes)
