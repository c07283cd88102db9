"""The `irgym` command."""

import sys
from contextlib import suppress
from dataclasses import fields
from typing import Annotated, NoReturn, Protocol, get_args, get_origin

import tyro
from tyro.conf import OmitSubcommandPrefixes, subcommand

from irgym.api.checks import check_file
from irgym.cli.cache import Cache
from irgym.cli.compare import Compare
from irgym.cli.envs import Envs
from irgym.cli.evaluate import Evaluate
from irgym.cli.farm import Farm
from irgym.cli.imitate import Imitate
from irgym.cli.programs import Programs
from irgym.cli.replay import Replay
from irgym.cli.report import Report
from irgym.cli.streams import OutputError, drop_output, watched_output
from irgym.cli.train import Train
from irgym.cli.tune import Tune
from irgym.cli.words import check_words, sentence
from irgym.cli.worker import Worker
from irgym.core.errors import IrgymError, StorageError
from irgym.core.interrupts import INTERRUPTED, raise_when_interrupted


class Command(Protocol):
    """A command: its fields are its options."""

    def run(self) -> None:
        """Do it.

        Raises:
            IrgymError: The input is bad, or something that is needed is missing.
        """
        ...


Commands = (
    Annotated[Envs, subcommand("envs")]
    | Annotated[Programs, subcommand("programs")]
    | Annotated[Tune, subcommand("tune")]
    | Annotated[Replay, subcommand("replay")]
    | Annotated[Imitate, subcommand("imitate")]
    | Annotated[Train, subcommand("train")]
    | Annotated[Evaluate, subcommand("evaluate")]
    | Annotated[Compare, subcommand("compare")]
    | Annotated[Report, subcommand("report")]
    | Annotated[Cache, subcommand("cache")]
    | Annotated[Worker, subcommand("worker")]
    | Annotated[Farm, subcommand("farm")]
)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; exit with 2 and one sentence where the input is bad, with 130 when interrupted."""
    try:
        raise_when_interrupted()  # in here: from now on somebody waits for them
        with watched_output():
            _run(sys.argv[1:] if arguments is None else arguments)
    except IrgymError as error:
        _end(sentence(error), 2)
    except KeyboardInterrupt:
        _end("interrupted", INTERRUPTED)
    except (OutputError, BrokenPipeError) as error:
        drop_output()
        if isinstance(error.__cause__ or error, BrokenPipeError):
            # Whoever read our output has gone, as in `irgym programs loops | head`: nothing is left to say.
            sys.exit(1)
        _end(f"the output cannot be written ({error.__cause__}): free some space, or send it elsewhere", 2)


def _run(words: list[str]) -> None:
    check_words(words, _many())
    command: Command = tyro.cli(
        Commands,  # pyright: ignore[reportArgumentType]
        prog="irgym",
        description="Reinforcement learning and search for compiler optimisation, on real compilers.",
        args=words,
        config=(OmitSubcommandPrefixes,),
    )
    try:
        check_file(vars(command).get("json"))  # before any work is done
        command.run()
    except FileNotFoundError as error:
        if not str(error.strerror).startswith("No usable temporary directory"):
            raise
        raise StorageError(
            "there is no usable temporary folder: set TMPDIR to a folder that is writable and has room"
        ) from error


def _many() -> frozenset[str]:
    """Return the options that take several values."""
    commands = [get_args(command)[0] for command in get_args(Commands)]
    return frozenset(
        f"--{field.name.replace('_', '-')}"
        for command in commands
        for field in fields(command)
        if get_origin(field.type) is tuple
    )


def _end(text: str, code: int) -> NoReturn:
    """Exit with a line on stderr."""
    with suppress(OSError):  # nothing can be said where stderr is full, too
        print(f"irgym: {text}", file=sys.stderr)
    sys.exit(code)
