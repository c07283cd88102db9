"""Policy files, read without torch, whose import takes a second."""

import io
import math
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import StorageError
from irgym.base.reading import is_regular
from irgym.base.values import conform
from irgym.core.actions import CAPACITY, ActionSpace
from irgym.core.kinds import ActionKind
from irgym.core.limits import Limits
from irgym.policies.layout import LAYOUTS, ActionLayout

FORMAT = 1
"""Format of the files that this version reads."""

SHARED = 4
"""Limit on the tensors that share a storage, on average."""

LARGEST_CAPACITY = 1 << 20
"""Most candidates that a policy may choose among."""

Content = dict[str, Any]


def checked(path: Path, kind: str, read: Callable[[Path], Any]) -> Content:
    """Return the content of a file of tensors and plain values.

    Args:
        path: The file.
        kind: The expected `kind` of its content, also for messages.
        read: Function that reads the file.

    Raises:
        StorageError: There is no such file, it is damaged, or it is something else.
    """
    try:
        if not is_regular(path):
            raise StorageError(f"cannot read {path}, which is no regular file: name one that irgym wrote")
        with zipfile.ZipFile(path) as archive:
            if {"data", "policy.pth"} <= set(archive.namelist()):
                raise StorageError(
                    f"{path} is a model of Stable-Baselines3, no {kind} of irgym: name it sb3:{path}"
                )
            _check_entries(archive, path.stat().st_size)
            damaged = archive.testzip()
        if damaged is not None:
            raise StorageError(f"{path} is damaged: restore it from a copy or train again")
        content: Any = read(path)
    except FileNotFoundError:
        raise StorageError(f"there is no {kind} at {path}: check the path or train one first") from None
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    except _MALFORMED as error:
        raise StorageError(
            f"{path} is no {kind}, or it is truncated: restore it from a copy or train again"
        ) from error
    if not isinstance(content, dict) or cast(Content, content).get("kind") != kind:
        raise StorageError(f"{path} is not an irgym {kind}: choose a file that irgym wrote")
    return cast(Content, content)


_MALFORMED = (
    *(zipfile.BadZipFile, pickle.UnpicklingError, EOFError, ValueError, RuntimeError),
    *(AttributeError, IndexError, KeyError, TypeError, OverflowError, MemoryError),
)
"""Errors of readers on malformed files."""


def _check_entries(archive: zipfile.ZipFile, size: int) -> None:
    """Check that an archive is uncompressed, as torch writes it, and no larger than its file.

    Raises:
        ValueError: It is not.
    """
    entries = archive.infolist()
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ValueError("a compressed entry")
    if sum(entry.file_size for entry in entries) > size:
        raise ValueError("entries that are larger than the file")


class Finite(Protocol):
    """A policy, which knows whether its weights are numbers."""

    @property
    def finite(self) -> bool:
        """Whether all weights are finite numbers."""
        ...


P = TypeVar("P", bound=Finite | None)


def restored(path: Path, content: Content, build: Callable[[Content], P]) -> P:
    """Return the policy that a file holds.

    Args:
        path: The file, for messages.
        content: Its content.
        build: Makes a policy of the content; None for a policy of another kind.

    Raises:
        StorageError: The file is of another format, incomplete, or has weights that are not finite.
    """
    if content.get("format") != FORMAT:
        raise StorageError(
            f"{path} has policy format {content.get('format')}, this version reads {FORMAT}: "
            "use the version of irgym that wrote it"
        )
    try:
        policy = build(content)
    except _MALFORMED as error:
        raise StorageError(
            f"{path} is an incomplete policy: restore it from a copy or train again"
        ) from error
    if policy is not None and not policy.finite:
        raise StorageError(f"{path} holds weights that are not finite: train again with a lower lr")
    return policy


@dataclass(frozen=True)
class Head:
    """Contents of a policy file other than its network.

    Attributes:
        environment: Name of the environment that it was trained on.
        targets: Names of the targets that it was trained on.
        layout: The actions, and the meaning of their scores.
        observation: Name of the observation that it reads; empty: the task's default.
        limits: The limits of the episodes that it was trained in.
    """

    environment: str
    targets: tuple[str, ...]
    layout: ActionLayout
    observation: str
    limits: Limits

    @staticmethod
    def of(content: Content) -> "Head":
        """Read the head from a file's content.

        Raises:
            KeyError: It is incomplete, as a TypeError or ValueError says too.
        """
        # Some policies that ship were written without candidates, what ends, capacity and observation.
        kinds = [
            ActionKind(
                name,
                tuple(tuple(slot) for slot in slots),
                candidates=any(more[:1]),
                ends=(*more[1:], None)[0],
            )
            for name, slots, *more in content["space"]
        ]
        capacity = content.get("capacity", CAPACITY)
        if capacity not in range(1, LARGEST_CAPACITY + 1):
            raise ValueError(f"a capacity of {capacity}")
        space = ActionSpace(tuple(kinds), capacity)
        return Head(
            environment=content["environment"],
            targets=tuple(map(str, content.get("targets", ()))),
            layout=LAYOUTS[content["layout"]](space),
            observation=content.get("observation", ""),
            limits=conform(Limits, content.get("limits", {})),
        )

    def content(self) -> dict[str, Any]:
        """Return what `of` reads, to be written beside the network."""
        space = self.layout.space
        return {
            "kind": "policy",
            "format": FORMAT,
            "environment": self.environment,
            "targets": list(self.targets),
            "space": [
                [kind.name, [list(slot) for slot in kind.slots], kind.candidates, kind.ends]
                for kind in space.kinds
            ],
            "capacity": space.capacity,
            "layout": self.layout.kind,
            "observation": self.observation,
            "limits": asdict(self.limits),
        }


def read_arrays(path: Path) -> Any:
    """Return what `torch.save` wrote, tensors as arrays. No code in the file is run.

    Raises:
        ValueError: The file holds other things than tensors and plain values, or is no such file.
    """
    with path.open("rb") as file:
        return read_arrays_from(file, path.stat().st_size)


def read_arrays_from(file: IO[bytes], size: int) -> Any:
    """Return what `torch.save` wrote into an open file of so many bytes; see `read_arrays`.

    Raises:
        ValueError: The file holds other things than tensors and plain values, or is no such file.
    """
    with zipfile.ZipFile(file) as archive:
        [pickled] = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        folder = pickled.removesuffix("data.pkl")
        order = f"{folder}byteorder"
        if order in archive.namelist() and archive.read(order) != b"little":
            raise ValueError("tensors of another byte order")
        return _Unpickler(
            io.BytesIO(archive.read(pickled)),
            lambda key: archive.read(f"{folder}data/{key}"),
            SHARED * size,
        ).load()


_TYPES = {
    "FloatStorage": np.dtype(np.float32),
    "DoubleStorage": np.dtype(np.float64),
    "LongStorage": np.dtype(np.int64),
    "IntStorage": np.dtype(np.int32),
    "BoolStorage": np.dtype(np.bool_),
}


class _Unpickler(pickle._Unpickler):  # pyright: ignore[reportPrivateUsage]
    """Unpickles tensors, ordered dictionaries and plain values, and refuses everything else.

    It derives from the unpickler in Python: the one in C allocates as many values as a file claims to have.
    """

    def __init__(self, file: io.BytesIO, bytes_of: Callable[[str], bytes], most: int) -> None:
        super().__init__(file)
        self._bytes_of = bytes_of
        self._left = most

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _array
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module == "torch" and name in _TYPES:
            return _TYPES[name]
        raise ValueError(f"{module}.{name} is neither a tensor nor a plain value")

    def persistent_load(self, pid: Any) -> NDArray[Any]:
        what, dtype, key, _, count = pid
        if what != "storage":
            raise ValueError(f"{what!r} is no storage")
        content = self._bytes_of(key)
        self._left -= len(content)
        if self._left < 0:
            raise ValueError("storages that are used again and again")
        return np.frombuffer(content, dtype, count)


def _array(
    storage: NDArray[Any], offset: int, shape: Sequence[int], strides: Sequence[int], *others: Any
) -> NDArray[Any]:
    """Return a tensor as a separate array.

    Raises:
        ValueError: It repeats what its storage holds once, as expanded tensors do.
    """
    del others
    if math.prod(shape) > storage.size:
        raise ValueError(f"{math.prod(shape)} elements in a storage of {storage.size}")
    steps = [stride * storage.itemsize for stride in strides]
    view = np.ndarray(tuple(shape), storage.dtype, storage, offset * storage.itemsize, steps)
    return view.copy()
