"""`--config FILE`: options of a command from a file, over which the command line takes precedence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, cast, get_args, get_origin

import tyro
from tyro.conf import Positional, Suppress

from irgym.api.translations import meant
from irgym.base.configuration import read_configuration
from irgym.base.errors import IrgymError, explained
from irgym.policies.run_folder import RunFolder, options_of_run

SETTINGS = ("set", "hyperparameters")
"""Names under which a file may hold hyper-parameters."""

HELP = (
    "File with options by their names (JSON, TOML or YAML), or a run folder; those on the command line take "
    "precedence."
)

_POSITIONAL = get_args(Positional[str])[1]
_HIDDEN = get_args(Suppress[int])[1]


@dataclass(frozen=True)
class FileOption:
    """An option of a command: the field that holds it, its name in files, and its type."""

    field: str
    name: str
    positional: bool
    kind: Any

    @property
    def flag(self) -> str:
        """The option on the command line."""
        return f"--{self.name.replace('_', '-')}"


def with_config(kind: type[Any]) -> type[Any]:
    """Return a command's class with the option `--config`."""
    described = Annotated[Optional[Path], tyro.conf.arg(help=HELP)]  # noqa: UP045 (see `_with_unions`)
    added = ("config", described, field(default=None))
    return make_dataclass(
        kind.__name__, [added], bases=(kind,), frozen=True, namespace={"__doc__": kind.__doc__}
    )


def configured(command: str, kind: type[Any], words: Sequence[str]) -> tuple[list[str], Any]:
    """Return a command line with the options of its configuration file, and the positional ones as defaults.

    Args:
        command: Name of the command.
        kind: Its class, as `with_config` returned it.
        words: The command line without the command's name.

    Returns:
        The words, and an instance of the class for tyro's defaults; the latter is None without a file.

    Raises:
        IrgymError: The file names what is no option, or a value does not suit its option.
        StorageError: The file cannot be read.
    """
    options = {option.name: option for option in options_of(kind) if option.name != "config"}
    values = _values(command, words, options)
    if values is None:
        return list(words), None
    given = {name for name in given_in(words) if name in options}
    added, settings, positional = list[str](), dict[str, Any](), dict[str, Any]()
    for name, value in values.items():
        if name in SETTINGS:
            settings |= _settings(name, value)
        elif options[name].positional:
            positional[options[name].field] = _positional_value(options[name], value)
        elif name not in given and value is not None:
            added += _words_of(options[name], value)
    merged = with_settings(words, settings)
    end = merged.index("--") if "--" in merged else len(merged)
    return [*merged[:end], *added, *merged[end:]], _defaults(kind, positional)


def options_of(kind: type[Any]) -> Iterator[FileOption]:
    """Yield the options of a command, those of requests too."""
    for option in fields(kind):
        metadata = getattr(option.type, "__metadata__", ())
        inner: Any = get_args(option.type)[0] if metadata else option.type
        if is_dataclass(inner):
            yield from options_of(cast(type[Any], inner))
        elif _HIDDEN not in metadata:
            renamed = [mark.name for mark in metadata if getattr(mark, "name", None)]
            yield FileOption(option.name, (renamed or [option.name])[0], _POSITIONAL in metadata, inner)


def _values(command: str, words: Sequence[str], options: Mapping[str, FileOption]) -> dict[str, Any] | None:
    """Return the values of the command's configuration file by the options' names; None without a file.

    A training that is resumed takes its options from its folder.
    """
    path = value_of(words, "config")
    if path is None:
        folder = value_of(words, "run")
        if command != "train" or folder is None or "resume" not in given_in(words):
            return None
        path = folder if RunFolder(Path(folder)).config.exists() else None
    if path is None:
        return None
    file = Path(path)
    with explained(f"cannot read {file}", "check the path and its permissions"):
        file = RunFolder(file).config if file.is_dir() else file
    content = read_configuration(file)
    run = options_of_run(content)
    if run is not None:
        taken = {*options, *(SETTINGS if "set" in options else ())}
        kept = {name: value for name, value in run.items() if name in taken}
        limited = {"iterations", "seconds"} & given_in(words)  # they replace both limits of the run
        return {name: value for name, value in kept.items() if not limited or name not in LIMITS}
    flat = dict(_flattened(content, options))
    _check_names(file, command, flat, options)
    return flat


LIMITS = ("iterations", "seconds")
"""Options that end a training."""


def _flattened(content: Mapping[str, Any], options: Mapping[str, FileOption]) -> Iterator[tuple[str, Any]]:
    """Yield names and values, those of tables too: `[measuring]` and `[training]` only group options."""
    for written, value in content.items():
        name = written.replace("-", "_")
        if isinstance(value, dict) and name not in options and name not in SETTINGS:
            yield from _flattened(cast(dict[str, Any], value), options)
        else:
            yield name, value


def _check_names(
    file: Path, command: str, values: Mapping[str, Any], options: Mapping[str, FileOption]
) -> None:
    """Make sure that all names are options.

    Raises:
        IrgymError: Some are not; the sentence says what each may have meant.
    """
    allowed = {*options, *(SETTINGS if "set" in options else ())}
    unknown = [name for name in values if name not in allowed]
    if not unknown:
        return
    flags = [option.flag for option in options.values()]
    hints = {name: meant(name, flags, None if "set" in options else ()) for name in unknown}
    names = ", ".join(f"{name} ({hint})" if hint else name for name, hint in hints.items())
    under = "; hyper-parameters go under set" if "set" in options else ""
    raise IrgymError(f"{file} has names that are no options of {command}: correct or remove {names}{under}")


def given_in(words: Sequence[str]) -> set[str]:
    """Return the names of the options on a command line."""
    flags = {word.partition("=")[0] for word in _before_end(words) if word.startswith("--")}
    names = {flag[2:].replace("-", "_") for flag in flags}
    return names | {name.removeprefix("no_") for name in names}


def value_of(words: Sequence[str], name: str) -> str | None:
    """Return the value of an option on a command line; None where it is not there."""
    own = _before_end(words)
    for place, word in enumerate(own):
        flag, equals, value = word.partition("=")
        if flag == f"--{name}":
            return value if equals else next(iter(own[place + 1 :]), None)
    return None


def _before_end(words: Sequence[str]) -> Sequence[str]:
    return words[: words.index("--")] if "--" in words else words


def _settings(name: str, value: Any) -> dict[str, Any]:
    """Return hyper-parameters by name, from a table or from a list of texts such as lr=3e-4.

    Raises:
        IrgymError: It is neither.
    """
    if isinstance(value, dict):
        return cast(dict[str, Any], value)
    texts = cast(list[Any], value) if isinstance(value, list) else [value]
    pairs = [str(text).partition("=") for text in texts]
    if not all(equals for _, equals, _ in pairs):
        raise IrgymError(f"{name} holds hyper-parameters by name, not {value!r}: write a table of them")
    return {key: setting for key, _, setting in pairs}


def with_settings(words: Sequence[str], settings: Mapping[str, Any]) -> list[str]:
    """Return a command line with further hyper-parameters; those that it has itself take precedence."""
    own = list(words)
    if not settings:
        return own
    place = next((at for at, word in enumerate(own) if word.partition("=")[0] == "--set"), None)
    if place is None:
        end = own.index("--") if "--" in own else len(own)
        return [*own[:end], "--set", *_texts(settings), *own[end:]]
    first = own[place].partition("=")[2]
    following = [*([first] if first else []), *own[place + 1 :]]
    count = next((at for at, word in enumerate(following) if word.startswith("--")), len(following))
    taken = {word.partition("=")[0] for word in following[:count]}
    further = {name: value for name, value in settings.items() if name not in taken}
    return [*own[:place], "--set", *_texts(further), *following]


def _texts(settings: Mapping[str, Any]) -> list[str]:
    return [f"{name}={_text(value)}" for name, value in settings.items()]


def _text(value: Any) -> str:
    """Return a value as it is written on the command line."""
    if isinstance(value, list):
        return ",".join(map(_text, cast(list[Any], value)))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _words_of(option: FileOption, value: Any) -> list[str]:
    """Return the words that set an option.

    Raises:
        IrgymError: The value does not suit it.
    """
    if isinstance(value, dict):
        raise IrgymError(f"{option.name} cannot be a table of values: give one value")
    if option.kind is bool:
        if not isinstance(value, bool):
            raise IrgymError(f"{option.name} cannot be {value!r}: write true or false")
        return [option.flag if value else option.flag.replace("--", "--no-", 1)]
    if get_origin(option.kind) is tuple:
        texts = [_text(part) for part in (cast(list[Any], value) if isinstance(value, list) else [value])]
        if any(text.startswith("--") or not text for text in texts):
            raise IrgymError(f"{option.name} cannot hold {value!r}: give values that are no options")
        return [option.flag, *texts] if texts else []
    return [f"{option.flag}={_text(value)}"]


def _positional_value(option: FileOption, value: Any) -> Any:
    """Return the value of a positional option.

    Raises:
        IrgymError: It does not suit.
    """
    text = _text(value)
    if get_origin(option.kind) is Literal and text not in get_args(option.kind):
        choices = ", ".join(get_args(option.kind))
        raise IrgymError(f"{option.name} cannot be {text!r}: choose among {choices}")
    return Path(text) if option.kind is Path else text


def _defaults(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """Return an instance for tyro's defaults, in which what else is required is still missing."""
    required = {
        option.name: tyro.MISSING
        for option in fields(kind)
        if option.default is MISSING and option.default_factory is MISSING
    }
    return kind(**(required | dict(values)))
