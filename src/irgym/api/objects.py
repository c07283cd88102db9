"""Programs that are objects, by name: a function that makes one, and files of torch.export."""

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from irgym.base.errors import BackendError, IrgymError, ProgramError
from irgym.base.reading import check_size
from irgym.core.baseline import INSTALL_TORCH
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.cost import Call
from irgym.core.uri import is_file

EXPORTED = ".pt2"
"""Suffix of the files of torch.export."""


def named_object(name: str) -> tuple[object, Sequence[Any]] | None:
    """Return an object and its inputs; None where a name is a URI or another file.

    Args:
        name: `package.module:function` or `folder/file.py:function`, which is called and returns the object
            and its inputs, or the object and one input; or `model.pt2`, of torch.export.

    Raises:
        ProgramError: There is no such module or function, it fails, or returns something else.
        BackendError: torch is needed and not installed.
    """
    if Path(name).suffix.lower() == EXPORTED and is_file(Path(name)):
        return _exported(Path(name))
    match = re.fullmatch(r"(.+\.py|[A-Za-z_][\w.]*):([A-Za-z_]\w*)", name)
    if match is None or match[1] in ENVIRONMENTS:
        return None
    folder = str(Path(match[1]).parent) if match[1].endswith(".py") else ""
    sys.path.insert(0, folder)
    try:
        function = getattr(module_named(match[1]), match[2], None)
        if not callable(function):
            raise ProgramError(
                f"{match[1]} has no function {match[2]}: name one that returns a program and its inputs"
            )
        return _pair(name, cast(Callable[[], object], function)())
    except IrgymError:
        raise
    except Exception as error:
        said = next(iter(str(error).splitlines()), "")
        raise ProgramError(f"{name} raised {type(error).__name__}: {said}") from error
    finally:
        sys.path.remove(folder)


def _pair(name: str, made: object) -> tuple[object, Sequence[Any]]:
    """Return what a user's function made, as an object and its inputs."""
    if not isinstance(made, tuple) or len(cast(Sequence[Any], made)) != 2:
        raise ProgramError(f"{name} must return a pair: the program, and a tuple of its inputs")
    program, inputs = cast(tuple[object, Any], made)
    return program, cast(Sequence[Any], inputs) if isinstance(inputs, tuple | list) else (inputs,)


def module_named(name: str) -> object:
    """Import a module by its name, or a file as a separate module."""
    if not name.endswith(".py"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise ProgramError(
                    f"{name} needs {error.name}, which is not installed: install it"
                ) from error
            raise ProgramError(
                f"{name!r} is no program: there is no module of that name; name a file, or a URI that begins "
                f"with one of {', '.join(f'{own}:' for own in ENVIRONMENTS.names())}"
            ) from error
    if not is_file(Path(name)):
        raise ProgramError(f"there is no file {name}: check the path")
    spec = importlib.util.spec_from_file_location(f"irgym_program_{Path(name).stem}", name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def _exported(path: Path) -> tuple[object, Sequence[Any]]:
    """Return the module and the example inputs of a file of torch.export, of which only operators run."""
    from irgym.measure.opening import Opener

    size = check_size(path)
    with Opener("torch") as opener:
        opener.start(("torch",), size)  # which takes as long here as there
        try:
            importlib.import_module("torch")
        except ImportError as error:
            raise BackendError(f"{path} needs torch, which is not installed: run {INSTALL_TORCH}") from error
        opener.call(Call("irgym.measure.pt2.loading:try_out", (path,)), str(path), size)
    from irgym.measure.callables.torch_calls import of_exported
    from irgym.measure.pt2.loading import load

    called = of_exported(load(path), ())
    return called, called.examples[0]
