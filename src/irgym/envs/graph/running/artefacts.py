"""Cached models: the structure as ONNX, the weights in a file that is mapped into memory."""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

import json
import mmap
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray

from irgym.base.errors import StorageError, explained
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.outside import bytes_of
from irgym.envs.graph.ir.reading import read_graph
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.programs.metadata import read_inputs
from irgym.measure.samples import Sample
from irgym.measure.store import Store

STORE = Store("graph/models", ".onnx")
"""Models after reading: constants folded, shapes inferred, and weights in a file beside each."""

WEIGHTS = ".safetensors"

SAMPLES = ".samples"
"""Suffix of the file with samples of a model's inputs, if its user gave some."""

FILE = ".file"
"""Suffix of the note that names the file a model was read from, in `programs.sources.STORE`."""


def file_of(path: str) -> Path:
    """Return the file, with open dimensions bound, that the cached model at a path was read from.

    Raises:
        StorageError: The note that names the file cannot be read.
    """
    note = Path(path).with_suffix(FILE)
    with explained(f"cannot read {note}", "run the command again to recreate it"):
        return Path(note.read_text())


class Loaded(NamedTuple):
    """A model in memory.

    Attributes:
        proto: Its structure.
        graph: Its graph.
        weights: Its weights, with a cache of computed ones.
        samples: Inputs that its user gave, by name.
    """

    proto: onnx.ModelProto
    graph: Graph
    weights: Weights
    samples: Sequence[Mapping[str, NDArray[Any]]] = ()


@lru_cache(maxsize=2)
def model_at(path: str) -> Loaded:
    """Return the cached model at a path.

    Raises:
        StorageError: A file cannot be read.
    """
    try:
        proto = onnx.load(path, load_external_data=False)
        stored = mapped(Path(path).with_suffix(WEIGHTS))
        samples = samples_beside(path) if read_inputs(proto) else ()
    except OSError as error:
        raise StorageError(
            f"{path} cannot be read ({error.strerror}): run the command again to recreate it"
        ) from error
    graph = read_graph(proto)
    arrays = {
        name: array.view(graph.weights[name].type.dtype).reshape(graph.weights[name].type.shape)
        for name, array in stored.items()
    }
    return Loaded(proto, graph, Weights(arrays), samples)


def saved_samples(samples: Sequence[Sample]) -> list[bytes | memoryview]:
    """Return the parts of a file with samples."""
    return saved(
        {
            f"{place}/{name}": array
            for place, sample in enumerate(samples)
            for name, array in sample.arrays.items()
        }
    )


def samples_beside(path: str) -> list[dict[str, NDArray[Any]]]:
    """Return the samples in the file beside a cached model.

    Raises:
        OSError: It cannot be read.
    """
    found: dict[int, dict[str, NDArray[Any]]] = {}
    for key, array in mapped(Path(path).with_suffix(SAMPLES)).items():
        place, _, name = key.partition("/")
        found.setdefault(int(place), {})[name] = array
    return [found[place] for place in sorted(found)]


def saved(arrays: Mapping[str, NDArray[Any]]) -> list[bytes | memoryview]:
    """Return the parts of a safetensors file: the header, and views of the arrays.

    Arrays of types that safetensors or numpy lacks, such as bfloat16, are stored as bytes.
    """
    known = {kind: name for name, kind in _DTYPES.items()}
    header: dict[str, Any] = {}
    parts: list[bytes | memoryview] = []
    end = 0
    # Arrays with the widest elements come first, so each array is aligned to its elements.
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])):
        kind = known.get(array.dtype.name)
        shape = array.shape if kind else (array.nbytes,)
        header[name] = {"dtype": kind or "U8", "shape": shape, "data_offsets": (end, end + array.nbytes)}
        parts.append(bytes_of(array))
        end += array.nbytes
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    return [len(head).to_bytes(8, "little"), head, *parts]


def mapped(path: Path) -> Mapping[str, NDArray[Any]]:
    """Return the arrays of a safetensors file, mapped into memory and shared by processes."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    arrays: dict[str, NDArray[Any]] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        kind = np.dtype(_DTYPES[entry["dtype"]])
        flat = np.frombuffer(memory, kind, (end - begin) // kind.itemsize, 8 + length + begin)
        arrays[name] = flat.reshape(entry["shape"])
    return arrays


_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "I64": "int64", "I32": "int32", "I16": "int16",
    "I8": "int8", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64", "BOOL": "bool",
}  # fmt: skip
"""numpy's names of the element types that safetensors and numpy share."""
