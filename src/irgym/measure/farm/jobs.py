"""SLURM batch scripts: any command as a job, which resumes when it is started again.

The farm of `irgym.measure.farm.slurm` is another thing: there a run on this machine has workers in jobs.
"""

import hashlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from irgym.base.errors import BackendError, FarmError

PATTERNS = {
    "memory": r"\d+(\.\d+)?[KMGT]i?B",
    "time": r"(\d+-)?\d+(:\d\d){0,2}",
    "name": r"\w[\w.-]{0,99}",
}
"""Forms of values that go into scripts, by option; they must not be able to inject commands."""

MOST = 100_000
"""Most cores or GPUs of a job."""

TEXT = r"[\w*][\w.,:&|*+-]{0,199}"
"""Form of all other texts."""


@dataclass(frozen=True)
class JobOptions:
    """Resources of a SLURM job.

    Raises:
        FarmError: A value is malformed.
    """

    name: str = ""
    """Name of the job, of its script and of its output; by default made of the command."""
    time: str = "24:00:00"
    """Longest run of the job, hours:minutes:seconds."""
    cores: int = 1
    """Cores of the job."""
    gpus: int = 0
    """GPUs of the job."""
    memory: str = "6GB"
    """Main memory of the job."""
    queue: str | None = None
    """Partition; by default the cluster's own."""
    account: str | None = None
    """Account to charge; by default yours."""
    constraint: str | None = None
    """Features that the node must have."""
    folder: Path = Path("slurm")
    """Folder for the script and the output."""

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if (
                isinstance(value, str)
                and value != option.default
                and not re.fullmatch(PATTERNS.get(option.name, TEXT), value)
            ):
                example = option.default or "text without blanks"
                raise FarmError(f"--{option.name} {value!r} is malformed: write {example}, for example")
        for name, least in (("cores", 1), ("gpus", 0)):
            count = getattr(self, name)
            if not least <= count <= MOST:
                raise FarmError(f"--{name} cannot be {count:g}: give a number from {least} to {MOST:,}")

    @property
    def script(self) -> Path:
        """File of the script."""
        return self.folder.absolute() / f"{self.name}.sh"

    @property
    def output(self) -> Path:
        """File of the output; SLURM replaces %j by the number of the job."""
        return self.folder.absolute() / f"{self.name}-%j.out"

    @property
    def marker(self) -> Path:
        """File that the script makes as it starts, where the command itself leaves none at a known place."""
        return self.folder.absolute() / f"{self.name}.begun"

    @property
    def directives(self) -> list[str]:
        """The options of `sbatch`."""
        optional = {"partition": self.queue, "account": self.account, "constraint": self.constraint}
        return [
            f"--job-name={self.name}",
            f"--time={self.time}",
            f"--cpus-per-task={self.cores}",
            *([f"--gpus={self.gpus}"] if self.gpus else []),
            f"--mem={re.sub('i?B$', '', self.memory)}",
            *(f"--{name}={value}" for name, value in optional.items() if value),
            f"--output={_directive(self.output)}",
            "--open-mode=append",
            "--requeue",
        ]


def _directive(path: Path) -> str:
    """Return a path as a directive takes it: SLURM reads quotes there, and ends it at a blank.

    Raises:
        FarmError: The path has a line break or a quote.
    """
    text = str(path)
    if not text.isprintable() or '"' in text:
        raise FarmError(f"SLURM cannot write to {text!r}: choose a folder without quotes and line breaks")
    return f'"{text}"' if " " in text else text


def named(options: JobOptions, command: Sequence[str]) -> JobOptions:
    """Return the options with a name: the one given, or one that the same command gets again.

    Args:
        options: Options of a job.
        command: The words of the command, its name first.
    """
    if options.name:
        return options
    digest = hashlib.sha256("\0".join(command).encode()).hexdigest()[:6]
    words = [re.sub(r"[^\w.-]+", "-", word).strip("-")[:32] for word in command[:2]]
    return replace(options, name="-".join([*filter(None, words), digest]))


def batch_script(options: JobOptions, command: Sequence[str], place: Path, begun: Sequence[Path]) -> str:
    """Return the script of a job.

    Args:
        options: Resources of the job.
        command: Program and arguments; the first three are Python's `-m irgym`, the fourth the command.
        place: Folder to run in.
        begun: Files that exist once the command has begun, so that it must resume; none where it cannot.
    """
    lines = ["#!/bin/bash", *(f"#SBATCH {directive}" for directive in options.directives)]
    lines.append(f"cd {shlex.quote(str(place))} || exit 1")
    if not begun:
        return "\n".join([*lines, f"exec {shlex.join(command)}", ""])
    tests = " || ".join(f"[ -e {shlex.quote(str(file))} ]" for file in begun)
    first, rest = shlex.join(command[:4]), shlex.join(command[4:])
    mark = [f"touch {shlex.quote(str(options.marker))}"] if options.marker in begun else []
    resume = ["resume=", f"if {tests}; then resume=--resume; fi", *mark]
    return "\n".join([*lines, *resume, f"exec {first} $resume {rest}".rstrip(), ""])


def submit(script: Path) -> str:
    """Submit a script; return the number of the job.

    Raises:
        BackendError: There is no SLURM here.
        FarmError: SLURM refused the script.
    """
    if shutil.which("sbatch") is None:
        raise BackendError(
            "there is no sbatch here: run this on a machine that submits SLURM jobs, or --dry-run"
        )
    done = subprocess.run(["sbatch", str(script)], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise FarmError(f"sbatch refused {script} ({reason}): correct the options of submit")
    words = done.stdout.split()
    return words[-1] if words else "?"
