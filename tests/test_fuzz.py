"""All fuzzers on a few seeds, and the driver on a fault that is planted."""

import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from fuzz.campaign import LIMITS, tally_of
from fuzz.fuzzer import Fuzzer, Tally, chosen, fuzzers, part

from irgym.measure.isolation.child import Child

ROOT = Path(__file__).parents[1]

SEEDS = {
    "cse/choices": (0, 2),  # even seeds need no network
    "cse/compilers": (0,),
    "cse/faults": (0, 12),
    "cse/flags": (0, 1),
    "cse/interpreter": (0, 1),
    "cse/zeros": (0, 2),
    "graph/mutants": (0,),
    "graph/node_tests": (0,),
    "graph/old_opsets": (0,),
    "graph/open_sizes": (20,),
    "graph/planted": (0,),
    "graph/rewrites": (0, 1),
    "graph/rules": (0, 1, 2),
    "graph/sequences": (0, 3),
    "hlo/exports": (0,),
    "hlo/passes": (0,),
    "hostile/files": (0, 4),
    "linalg/schedules": (0,),
    "llvm/orders": (0,),
    "loops/schedules": (0, 1),
}
"""Seeds of each fuzzer, which take twenty seconds in all."""


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    with Child(LIMITS) as child:
        yield child


@pytest.mark.parametrize("fuzzer", fuzzers(), ids=lambda fuzzer: fuzzer.name)
def test_a_few_seeds_find_nothing(fuzzer: Fuzzer, child: Child):
    total = Tally()
    for seed in SEEDS[fuzzer.name]:
        total.merge(tally_of(child, fuzzer, seed))
    assert total.findings == []
    assert total.cases > 0


PLANTED = '''"""A fault that is planted."""

import os
import time
from pathlib import Path

from fuzz.fuzzer import Tally


def run(seed: int) -> Tally:
    """Find a fault with seed 2, raise an exception with 3, and die with 4."""
    tally = Tally(bars={"odd": 0.6})
    for number in range(20):
        tally.add("odd" if seed >= 10 or number % 2 else "even")
    if seed == 2:
        tally.findings.append("two is wrong")
    if seed == 3:
        raise ValueError("three")
    if seed == 4:
        os._exit(5)
    if seed == 20:
        Path("hanging").touch()
        time.sleep(1000)
    return tally
'''


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder with a copy of the driver, whose only fuzzer has faults."""
    room = tmp_path / "fuzz" / "toys"
    room.mkdir(parents=True)
    for name in ("run.py", "campaign.py", "fuzzer.py", "__init__.py"):
        shutil.copy(ROOT / "fuzz" / name, tmp_path / "fuzz" / name)
    (room / "faulty.py").write_text(PLANTED)
    return tmp_path


def driven(folder: Path, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run the driver in a folder."""
    command = [sys.executable, "fuzz/run.py", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120)


def test_a_finding_comes_with_the_command_that_repeats_it(planted: Path):
    done = driven(planted, ["--seeds", "6"])
    assert done.returncode == 1, done.stderr
    assert "FOUND toys/faulty: two is wrong" in done.stdout
    assert "FOUND toys/faulty: it ended with ValueError: three" in done.stdout
    assert "FOUND toys/faulty: its process did not end well" in done.stdout
    repeats = [line.partition("repeat: python fuzz/run.py ")[2] for line in done.stdout.splitlines()]
    commands = [command for command in repeats if command]
    assert [command.split()[2] for command in commands] == ["2", "3", "4"]
    again = driven(planted, shlex.split(commands[0]))
    assert again.returncode == 1 and again.stdout.count("FOUND") == 1
    assert "FOUND toys/faulty: two is wrong" in again.stdout


def test_seeds_without_a_finding_end_with_a_summary(planted: Path):
    done = driven(planted, ["toys", "--first", "5", "--seeds", "2", "--workers", "2"])
    assert done.returncode == 0, done.stdout + done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("toys/faulty"))
    seeds, cases, _, findings, *outcomes = row.split()[1:]
    assert (seeds, cases, findings, " ".join(outcomes)) == ("2", "40", "0", "20 even, 20 odd")


def test_a_share_above_its_bar_is_a_finding(planted: Path):
    done = driven(planted, ["--first", "10", "--seeds", "3"])
    assert done.returncode == 1
    assert "60 of 60 cases are 'odd'; the bar is 60.0%" in done.stdout
    assert "repeat: python fuzz/run.py toys/faulty --first 10 --seeds 3" in done.stdout


def interrupted(process: subprocess.Popen[str]) -> str:
    """Interrupt the driver, and return the last line that it prints."""
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    return said.splitlines()[-1]


def test_ctrl_c_ends_with_the_summary(planted: Path):
    command = [sys.executable, "fuzz/run.py", "--first"]
    with subprocess.Popen([*command, "2"], cwd=planted, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "FOUND toys/faulty: two is wrong\n"
        assert interrupted(process).startswith("interrupted")
        assert process.returncode == 1
    with subprocess.Popen([*command, "20"], cwd=planted, stdout=subprocess.PIPE, text=True) as process:
        while not (planted / "hanging").exists():
            time.sleep(0.05)
        assert interrupted(process).split() == ["interrupted", "0", "0", "0", "0"]
        assert process.returncode == 0


def test_a_limit_of_time_ends_it(planted: Path):
    done = driven(planted, ["--first", "100", "--seconds", "0.5"])
    assert done.stdout.splitlines()[-1].startswith("all"), done.stderr
    assert int(done.stdout.splitlines()[-1].split()[1]) > 0


def test_a_fuzzer_that_hangs_is_a_finding(planted: Path):
    campaign = planted / "fuzz" / "campaign.py"
    campaign.write_text(campaign.read_text().replace("timeout_s=300.0", "timeout_s=0.5"))
    done = driven(planted, ["--first", "20", "--seeds", "2"])
    assert done.returncode == 1
    assert "its process did not end well: TimedOut(seconds=0.5" in done.stdout
    assert done.stdout.splitlines()[-1].split()[:3] == ["all", "2", "20"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["graph/rule"], "there is no fuzzer 'graph/rule': choose among cse/choices, "),
        (["--seeds", "0"], "argument --seeds: '0' is no whole number of at least 1"),
        (["--first", "-1"], "argument --first: '-1' is no whole number of at least 0"),
        (["--seconds", "soon"], "argument --seconds: 'soon' is no positive number of seconds"),
        (["--workers", "2.5"], "argument --workers: '2.5' is no whole number of at least 1"),
    ],
)
def test_bad_options_are_one_sentence(words: list[str], said: str):
    done = driven(ROOT, words)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]


def test_all_fuzzers_have_a_name_and_a_summary():
    found = driven(ROOT, ["--list"]).stdout.splitlines()
    assert [line.split()[0] for line in found] == list(SEEDS) == [fuzzer.name for fuzzer in fuzzers()]
    assert all(len(line.split()) > 4 for line in found)
    assert [fuzzer.name for fuzzer in chosen(["hlo", "hlo/exports"])] == ["hlo/exports", "hlo/passes"]


def test_parts_go_through_a_list_in_rounds():
    items = range(11)
    parts = [part(items, seed, 3) for seed in range(8)]
    assert sorted(item for chosen, turn in parts if turn == 0 for item in chosen) == list(items)
    assert parts[0][0] == parts[4][0] and parts[4][1] == 1


def test_there_are_many_hostile_files():
    from fuzz.hostile.files import CASES

    assert len(CASES) > 150


def test_without_irgym_the_driver_says_what_to_run():
    done = subprocess.run(
        [sys.executable, "-S", "fuzz/run.py", "--list"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "irgym is not installed" in done.stderr and "make fuzz" in done.stderr
