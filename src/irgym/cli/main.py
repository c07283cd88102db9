"""The `irgym` command."""

import os
import sys
from typing import Annotated, Protocol

import tyro
from tyro.conf import OmitSubcommandPrefixes, subcommand

from irgym.cli.cache import Cache
from irgym.cli.compare import Compare
from irgym.cli.envs import Envs
from irgym.cli.evaluate import Evaluate
from irgym.cli.farm import Farm
from irgym.cli.imitate import Imitate
from irgym.cli.programs import Programs
from irgym.cli.replay import Replay
from irgym.cli.report import Report
from irgym.cli.train import Train
from irgym.cli.tune import Tune
from irgym.cli.worker import Worker
from irgym.core.errors import IrgymError


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
    command: Command = tyro.cli(
        Commands,  # pyright: ignore[reportArgumentType]
        prog="irgym",
        description="Reinforcement learning and search for compiler optimisation, on real compilers.",
        args=arguments,
        config=(OmitSubcommandPrefixes,),
    )
    try:
        command.run()
    except IrgymError as error:
        print(f"irgym: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # Whoever read our output has gone, as in `irgym programs loops | head`: nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        print("irgym: interrupted", file=sys.stderr)
        sys.exit(130)
