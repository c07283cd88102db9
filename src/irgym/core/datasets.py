"""Data sets by whatever names their programs: names, files, folders, globs, URIs, grids, several joined."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from irgym.base.errors import IrgymError, ProgramError
from irgym.base.registry import Registry
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.dataset import HOLDOUT, Dataset, NoDatasetError, divided
from irgym.core.grids import MOST, grid, is_grid
from irgym.core.program_files import (
    brief,
    files_below,
    files_matching,
    identities,
    is_glob,
    read_list,
)
from irgym.core.uri import is_file, is_folder

if TYPE_CHECKING:
    from irgym.core.environment import Environment

Programs: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""Names programs: the name of a data set, a list's file, a folder, a glob, a program's file or URI, a grid;
or several of these, as a sequence or joined by `+`."""

NAME = re.compile(r"[A-Za-z0-9_][\w.-]*")
"""The form of the names of one's own data sets."""

SHOWN = 3
"""Number of names by which several sets together are called, and of reasons for what is left out."""

FORMS = "a file, a folder, a glob, a URI, or a grid such as FAMILY:SIZE=64:128:16"
"""The forms that name programs beside the names of data sets, in words."""


@dataclass(frozen=True)
class DatasetSpec:
    """A data set of one's own, for `irgym.register_dataset` and the entry points `irgym.datasets`.

    Attributes:
        environment: Name of the environment.
        programs: The programs, as `--dataset` takes them, or a function without arguments that returns them.
        test: Test programs, in the same forms; `programs` are then the training programs. Without them each
            program's hash decides.
        description: One line.
    """

    environment: str
    programs: Programs | Callable[[], Programs]
    test: Programs | Callable[[], Programs] = ()
    description: str = ""


DATASETS: Registry[DatasetSpec] = Registry(
    kind="data set",
    group="irgym.datasets",
    builtin={},
    fault="irgym.core.datasets:dataset_fault",
)


def dataset_fault(part: object) -> str:
    """Return in words how another package's data set is wrong; empty where it is right."""
    return "" if isinstance(part, DatasetSpec) else "is no irgym.DatasetSpec"


def registered() -> tuple[dict[str, DatasetSpec], list[str]]:
    """Return the data sets of other packages and of this process by name, and a sentence for each fault."""
    specs: dict[str, DatasetSpec] = {}
    faults: list[str] = []
    for name in DATASETS.names():
        try:
            spec = DATASETS.load(name)
            if name in ENVIRONMENTS.load(spec.environment).dataset_names():
                faults.append(f"the data set {name!r} is hidden by one of {spec.environment}: rename it")
                continue
        except IrgymError as error:
            faults.append(f"the data set {name!r} cannot be used: {error}")
            continue
        specs[name] = spec
    return specs, faults


def dataset_names(environment: "Environment") -> list[str]:
    """Return the names of an environment's data sets, with those of other packages and of this process."""
    own = [name for name, spec in registered()[0].items() if _is_of(environment, spec.environment)]
    return [*environment.dataset_names(), *own]


def left_out_text(dataset: Dataset) -> str:
    """Return a line on the files and combinations of sizes that are no programs: the first, and a count."""
    reasons = "; ".join(dataset.left_out[:SHOWN])
    return f"left out: {len(dataset.left_out)} of {dataset.name}, such as: {reasons}"


def dataset_named(
    environment: "Environment", given: Programs | None = None, holdout: float | None = None
) -> Dataset:
    """Return a data set of an environment, its default one if none is named.

    Programs belong to the split that their data set or list says. Where it says none, the hash of a program's
    URI decides, of a file the hash of its content, so that a program keeps its split in any other set and
    under any other path; see `divided`.

    Args:
        environment: The environment.
        given: What names the programs.
        holdout: Share of test programs, by which all programs are divided again; by default their sets'
            splits, and one in ten where they have none.

    Raises:
        ProgramError: Something that is named does not exist or is no program of the environment, or there are
            too many programs.
        BackendError: A package that reads programs is missing.
    """
    names = [environment.default_dataset] if given is None else _texts(environment, given)
    parts = [_named(environment, name) for name in names]
    whole = parts[0] if len(parts) == 1 else _joined(parts, _listed_names(names))
    if holdout is not None:
        whole = replace(whole, free=whole.all, train=(), test=())
    train, test = _splits(whole, HOLDOUT if holdout is None else holdout)
    if max(len(train), len(test)) > MOST and whole.free:
        raise ProgramError(f"{brief(whole.name)} has more than {MOST:,} programs: name fewer")
    return Dataset(whole.name, whole.description, train, test, whole.left_out)


def _listed_names(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return " + ".join(names[:SHOWN]) + more


@dataclass(frozen=True)
class _Part:
    """Programs that a text names.

    Attributes:
        name: The text.
        description: One line.
        train: Training programs.
        test: Test programs.
        free: Programs of no split yet.
        left_out: For each file or combination of sizes that is no program, why.
    """

    name: str
    description: str
    train: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.train, *self.test, *self.free)))


def _texts(environment: "Environment", given: Programs) -> list[str]:
    """Return the texts that are given, those joined by `+` as several.

    Raises:
        ProgramError: Something else is given.
    """
    several = [given] if isinstance(given, str | os.PathLike) else given
    if not isinstance(several, list | tuple) or not several:
        raise ProgramError(f"programs are named by a text, a path or a list of them, not {given!r}: give one")
    texts: list[str] = []
    for text in cast(Sequence[object], several):
        if not isinstance(text, str | os.PathLike) or not os.fspath(cast(str, text)):
            raise ProgramError(f"programs are named by texts or paths, not by {text!r}: give one")
        texts += _pieces(environment, os.fspath(cast(str, text)))
    return texts


def _pieces(environment: "Environment", text: str) -> list[str]:
    """Divide a text at each `+` that stands neither in brackets nor in the path of a file or folder."""
    if "+" not in text:
        return [text]
    path = re.split("[?#]", text, maxsplit=1)[0]
    rest = path.partition(":")[2] if _is_uri(environment, path) else path
    if Path(rest).exists():
        return [text]
    pieces = re.findall(r"(?:\[[^\]]*\]|[^+])+", text)
    if "+".join(pieces) != text:
        raise ProgramError(f"{brief(text)} has a + that joins nothing: write FIRST+SECOND, or leave it out")
    return pieces


def _named(environment: "Environment", text: str) -> _Part:
    """Return the programs that a text without `+` names."""
    if text in environment.dataset_names():
        return _fixed(environment.dataset(text))
    if NAME.fullmatch(text) and text in DATASETS:
        return _registered(environment, text)
    listing = _listing(environment, text)
    if listing is not None:
        return _listed(environment, text, listing)
    found = _expanded(environment, text)
    if found is not None:
        return found
    try:
        return _fixed(environment.dataset(text))
    except NoDatasetError as error:
        known = ", ".join(dataset_names(environment))
        missing = f"there is no data set {brief(text)} of {environment.name}"
        raise _unknown(text, f"{missing}: choose among {known}, or name {FORMS}") from error


def _unknown(text: str, otherwise: str) -> ProgramError:
    """Return the error for a text that names no programs, which may be a path that is not there."""
    path = os.sep in text or Path(text).suffix
    return ProgramError(f"there is no file or folder {text}: check the path" if path else otherwise)


def _fixed(dataset: Dataset) -> _Part:
    return _Part(dataset.name, dataset.description, dataset.train, dataset.test, (), dataset.left_out)


def _registered(environment: "Environment", name: str) -> _Part:
    """Return the programs of a data set of one's own."""
    spec = DATASETS.load(name)
    if not _is_of(environment, spec.environment):
        raise ProgramError(f"the data set {name} is of {spec.environment}: choose one of {environment.name}")

    def whole(programs: Programs | Callable[[], Programs]) -> _Part:
        given = programs() if callable(programs) else programs
        return _joined([_named_in_spec(environment, name, text) for text in _texts(environment, given)], name)

    first = whole(spec.programs)
    described = replace(first, description=spec.description or first.description)
    if not spec.test:
        return described
    second = whole(spec.test)
    return replace(
        described, train=first.all, test=second.all, free=(), left_out=first.left_out + second.left_out
    )


def _named_in_spec(environment: "Environment", name: str, text: str) -> _Part:
    if NAME.fullmatch(text) and text in DATASETS and text not in environment.dataset_names():
        raise ProgramError(f"the data set {name} names another such set, {text}: name its programs there")
    return _named(environment, text)


def _listing(environment: "Environment", text: str) -> Path | None:
    """Return the file of a list of programs, if a text names a file that is no program."""
    path = Path(text)
    if _is_uri(environment, text) or not is_file(path):
        return None
    return path if _reader(environment).program_of(path, ()) is None else None


def _listed(environment: "Environment", text: str, path: Path) -> _Part:
    """Return the programs of a list."""
    splits: dict[str, list[str]] = {"train": [], "test": [], "": []}
    left_out: list[str] = []
    for line in read_list(path, cache(ENVIRONMENTS.__contains__)):
        try:
            found = _expanded(environment, line.text)
            if found is None:
                wrong = f"{brief(line.text)} is no program of {environment.name}: write {FORMS}"
                raise _unknown(line.text, wrong)
        except ProgramError as error:
            raise ProgramError(f"{line.place}: {error}") from error
        splits[line.split] += found.free
        left_out += found.left_out
    train, test, free = (tuple(dict.fromkeys(splits[name])) for name in ("train", "test", ""))
    return _Part(text, f"the programs that {path} lists", train, test, free, tuple(left_out))


def _expanded(environment: "Environment", text: str) -> _Part | None:
    """Return the programs of a URI, a file, a folder, a glob or a grid; None if a text is none of them."""
    if _is_uri(environment, text):
        return _of_uri(environment, text, "a URI", text)
    file = text if is_file(Path(text)) else re.split("[?#]", text, maxsplit=1)[0]
    if is_file(Path(file)):
        uri = _reader(environment).program_of(Path(file), ())
        if uri is None:
            raise ProgramError(f"{file} is no program of {environment.name}: name another file")
        return _of_uri(environment, text, "a file", uri + text[len(file) :])
    if is_folder(Path(text)):
        return _of_files(environment, text, f"the programs in {text}", files_below(Path(text)))
    if environment.grammar is not None and is_grid(environment.grammar, text):
        uris, refused = grid(environment.grammar, text, environment.canonical)
        return _Part(text, "a grid", free=tuple(uris), left_out=tuple(refused))
    if is_glob(text):
        return _of_files(environment, text, f"the programs that {text} matches", files_matching(text))
    return None


def _is_uri(environment: "Environment", text: str) -> bool:
    scheme, colon, _ = text.partition(":")
    if not colon or (environment.grammar is not None and is_grid(environment.grammar, text)):
        return False  # known without a look at other packages, which takes time
    return _is_of(environment, scheme) or scheme in ENVIRONMENTS


def _of_files(environment: "Environment", text: str, description: str, files: Iterable[Path]) -> _Part:
    """Return the programs of files, but for those that cannot be read as programs."""
    reader = _reader(environment)
    suffixes = reader.grammar.files.suffixes if reader.grammar and reader.grammar.files else None
    uris: list[str] = []
    left_out: list[str] = []
    for file in files:
        if suffixes is not None and file.suffix.lower() not in suffixes:
            continue
        try:
            uri = reader.program_of(file, ())
            programs, others = ([], ()) if uri is None else _programs(environment, uri)
        except ProgramError as error:
            left_out.append(str(error))
            continue
        uris += programs
        left_out += others
    if not uris:
        why = f", such as: {left_out[0]}" if left_out else "; check the path"
        raise ProgramError(f"{text} holds no programs of {environment.name}{why}")
    return _Part(text, description, free=tuple(dict.fromkeys(uris)), left_out=tuple(left_out))


def _programs(environment: "Environment", uri: str) -> tuple[list[str], Sequence[str]]:
    """Return the programs that a URI stands for, by their canonical URIs, and why others are none."""
    scheme = uri.partition(":")[0]
    if not _is_of(environment, scheme):
        raise ProgramError(f"{brief(uri)} is a program of {scheme}: name one of {environment.name}")
    programs, left_out = environment.programs_of(uri)
    return [environment.canonical(program) for program in programs], left_out


def _of_uri(environment: "Environment", text: str, description: str, uri: str) -> _Part:
    programs, left_out = _programs(environment, uri)
    return _Part(text, description, free=tuple(programs), left_out=tuple(left_out))


def _is_of(environment: "Environment", name: str) -> bool:
    """Say whether programs that belong to an environment belong to another too, which may be a variant."""
    return name in (environment.name, _scheme(environment))


def _scheme(environment: "Environment") -> str:
    return environment.name if environment.grammar is None else environment.grammar.scheme


def _reader(environment: "Environment") -> "Environment":
    """Return the environment that reads files: variants of one leave that to it."""
    scheme = _scheme(environment)
    return environment if scheme == environment.name else ENVIRONMENTS.load(scheme)


def _joined(parts: Sequence[_Part], name: str) -> _Part:
    """Return several sets as one; the first that names a program decides its split."""
    if len(parts) == 1:
        return replace(parts[0], name=name)
    known: set[str] = set()
    splits: dict[str, list[str]] = {"train": [], "test": [], "free": []}
    for part in parts:
        for split, uris in (("train", part.train), ("test", part.test), ("free", part.free)):
            splits[split] += [uri for uri in dict.fromkeys(uris) if uri not in known]
        known |= set(part.all)
    train, test, free = (tuple(splits[split]) for split in ("train", "test", "free"))
    left_out = tuple(reason for part in parts for reason in part.left_out)
    return _Part(name, f"{len(parts)} sets of programs", train, test, free, left_out)


def _splits(whole: _Part, share: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the splits of a set."""
    if not whole.free:
        return whole.train, whole.test
    train, test = divided(identities(whole.free), share)
    if train == test and (whole.train or whole.test):  # a single program beside others
        train, test = (train, ()) if whole.test else ((), test)
    return (*whole.train, *train), (*whole.test, *test)
