"""Commands as processes: interrupts, full and closed outputs, missing surroundings."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from commands import without_progress

IRGYM = (sys.executable, "-m", "irgym")
QUICK = (*IRGYM, "programs", "loops", "--dataset", "mm_random:count=9000")

TIME_LIMIT_S = 100.0

HIDDEN, SHOWN = b"\x1b[?25l", b"\x1b[?25h"


def ended(*command: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    given = {"capture_output": True, "text": True, "timeout": TIME_LIMIT_S, "check": False} | options
    return subprocess.run(command, **given)  # pyright: ignore


def one_line(err: str, *words: str) -> None:
    text = without_progress(err)
    assert text.startswith("irgym: ") and text.count("\n") == 1, text
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    "module", ["numpy", "irgym.core.environment", "rich.console", "tyro", "irgym.cli.main"]
)
def test_an_interrupt_while_modules_are_imported(module: str) -> None:
    # With -v Python tells of each module that it has imported.
    with subprocess.Popen(
        [*IRGYM[:1], "-v", *IRGYM[1:], "envs"], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        next(line for line in process.stderr if line.startswith(f"import '{module}'"))
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(TIME_LIMIT_S) == 130
    # Not at the beginning of a line if -v has not ended the line before.
    assert rest.count("irgym: ") == rest.count("irgym: interrupted\n") == 1 and "Traceback" not in rest


def test_two_interrupts_in_a_row_end_a_training_without_a_traceback(tmp_path: Path) -> None:
    command = (
        *IRGYM,
        "train",
        "loops",
        "--run",
        str(tmp_path / "run"),
        "--set",
        "episodes=8",
        "--seconds",
        "90",
    )
    environment = os.environ | {"IRGYM_CACHE_DIR": str(tmp_path)}
    for pause in (0.0, 0.1):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            next(line for line in process.stdout if line.startswith("iteration"))
            process.send_signal(signal.SIGINT)
            time.sleep(pause)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=TIME_LIMIT_S)
        # At its very end Python leaves signals to the system again, which has no words for them.
        assert process.returncode in (130, -signal.SIGINT)
        one_line(err, "interrupted")


def test_the_cursor_comes_back_when_a_command_is_terminated(tmp_path: Path) -> None:
    command = (*IRGYM, "tune", "loops://mm/16x16x16", "--search", "random", "--seconds", "90")
    ours, theirs = os.openpty()
    environment = os.environ | {"IRGYM_CACHE_DIR": str(tmp_path), "TERM": "xterm"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        while HIDDEN not in shown:
            shown += os.read(ours, 4096)
        process.terminate()
        assert process.wait(TIME_LIMIT_S) == -signal.SIGTERM
    with suppress(OSError):  # nothing is left to read
        while True:
            shown += os.read(ours, 4096)
    os.close(ours)
    assert shown.rfind(SHOWN) > shown.rfind(HIDDEN)


def test_an_interrupt_while_a_command_runs(tmp_path: Path) -> None:
    command = (*IRGYM, "tune", "loops://mm/16x16x16", "--search", "random", "--seconds", "90")
    environment = os.environ | {"IRGYM_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        while not list(tmp_path.glob("costs.sqlite")):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIME_LIMIT_S)
    assert process.returncode == 130 and not out
    one_line(err, "interrupted")


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments", [("envs",), ("--help",), ("programs", "loops"), ("cache", "stats")], ids=" ".join
)
def test_a_full_output(arguments: tuple[str, ...], tmp_path: Path) -> None:
    with FULL.open("w") as full:
        environment = os.environ | {"IRGYM_CACHE_DIR": str(tmp_path)}
        result = ended(
            *IRGYM, *arguments, capture_output=False, stdout=full, stderr=subprocess.PIPE, env=environment
        )
    assert result.returncode == 2
    one_line(result.stderr, "the output cannot be written", "No space left")


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("envs",), ("tune", "--seed", "x"), ("tune", "x")], ids=" ".join)
def test_nothing_can_be_said_anywhere(arguments: tuple[str, ...]) -> None:
    with FULL.open("w") as full:
        result = ended(*IRGYM, *arguments, capture_output=False, stdout=full, stderr=full)
    assert result.returncode == 2


def closing(*descriptors: int) -> tuple[str, ...]:
    """Return the beginning of a command that runs the rest with these closed."""
    return "sh", "-c", f'exec {" ".join(f"{descriptor}>&-" for descriptor in descriptors)}; exec "$@"', "sh"


def test_closed_outputs(tmp_path: Path) -> None:
    environment = os.environ | {"IRGYM_CACHE_DIR": str(tmp_path)}
    out = ended(*closing(0, 1), *IRGYM, "cache", "stats", env=environment)
    assert out.returncode == 0 and not out.stderr
    err = ended(*closing(2), *IRGYM, "programs", "nowhere")
    assert err.returncode == 2 and not err.stdout, "what is no result does not get among the results"
    every = ended(*closing(0, 1, 2), *IRGYM, "replay", "loops://mm/4x4x4", "", env=environment)
    assert every.returncode == 0
    assert (tmp_path / "costs.sqlite").read_bytes().startswith(b"SQLite"), (
        "the cache is not taken for the output"
    )


def test_a_reader_that_leaves() -> None:
    with subprocess.Popen(QUICK, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait(TIME_LIMIT_S) == 1


def test_an_output_of_few_letters() -> None:
    result = ended(*IRGYM, "envs", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert result.returncode == 0 and "loops" in result.stdout and not result.stderr


def test_no_usable_temporary_folder(tmp_path: Path) -> None:
    # As root every folder can be written: so there is but one, and it is not there.
    program = (
        "import tempfile; tempfile._candidate_tempdir_list = lambda: ['/proc/nowhere']; "
        "from irgym.cli.main import main; main(['replay', 'loops://mm/4x4x4', ''])"
    )
    result = ended(sys.executable, "-c", program, env=os.environ | {"IRGYM_CACHE_DIR": str(tmp_path)})
    assert result.returncode == 2
    one_line(result.stderr, "no usable temporary folder", "TMPDIR")


@pytest.mark.parametrize("kind", ["file", "fifo", "loop", "nowhere"])
def test_a_cache_folder_of_a_wrong_kind(kind: str, tmp_path: Path) -> None:
    place = tmp_path / kind
    {
        "file": place.touch,
        "fifo": lambda: os.mkfifo(place),
        "loop": lambda: place.symlink_to(place),
        "nowhere": str,
    }[kind]()
    folder = Path("/proc/nowhere") if kind == "nowhere" else place
    result = ended(*IRGYM, "cache", "stats", env=os.environ | {"IRGYM_CACHE_DIR": str(folder)})
    assert result.returncode == 2
    one_line(result.stderr, "IRGYM_CACHE_DIR")


def test_arguments_that_are_no_unicode(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/name-\xff"
    command = [*map(os.fsencode, IRGYM), b"programs", b"loops", b"--split", b"test", b"--json", name]
    result = subprocess.run(command, capture_output=True, timeout=TIME_LIMIT_S, check=False)
    assert result.returncode == 0 and not result.stderr and Path(os.fsdecode(name)).is_file()
    wrong = subprocess.run(
        [*command[:4], b"\xff\xfe"], capture_output=True, timeout=TIME_LIMIT_S, check=False
    )
    assert wrong.returncode == 2
    one_line(wrong.stderr.decode(), r"\udcff\udcfe")
