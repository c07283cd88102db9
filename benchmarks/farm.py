"""Overhead of a farm for an evaluation, and the speedup by a second worker.

python benchmarks/farm.py

Schedulers and workers run on this machine, which should be quiet. Ratios are measured side by side.
"""

import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import tyro

from irgym.core.cost import Call, Measurement, Outcome
from irgym.measure.farm import Farm, LocalFarm
from irgym.measure.farm.certificate import security_of
from irgym.measure.farm.dask import DaskFarm
from irgym.measure.farm.endpoint import Endpoint
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import Limits, Reply, Returned
from irgym.measure.machine import load

READY = ("waits for", "works for")
"""Words that a farm's processes print when they are ready."""


@dataclass(frozen=True)
class Options:
    """Options of the command line."""

    evaluations: int = 300
    """Evaluations in each round of the overhead."""
    calls: int = 60
    """Calls in each round of the speedups."""
    rounds: int = 7
    """Number of rounds; the median counts."""


def nothing() -> Measurement:
    """Return at once."""
    return Measurement(Outcome.OK, (1.0,))


def compilation(number: int) -> Measurement:
    """Take as much time as a compiler: compile some thousand lines of Python."""
    source = "\n".join(f"def f{line}(x, y=[{number}]):\n    return [x * {line}, y]" for line in range(700))
    return Measurement(Outcome.OK, (float(len(compile(source, "benchmark", "exec").co_code)),))


def pause(number: int) -> Measurement:
    """Wait for about as long as a compilation takes."""
    time.sleep(0.04)
    return Measurement(Outcome.OK, (float(number),))


@contextmanager
def process(*arguments: str) -> Iterator[None]:
    """Start an irgym command, wait until it is ready, and end it afterwards."""
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    started = subprocess.Popen(
        [sys.executable, "-m", "irgym", *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert started.stdout is not None
    try:
        for line in started.stdout:
            if any(words in line for words in READY):
                break
        yield
    finally:
        started.terminate()
        started.wait()


@contextmanager
def farm_of(workers: int, certificate: Path | None) -> Iterator[DaskFarm]:
    """Start a scheduler and workers on this machine, without TLS if there is no certificate."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = Endpoint("127.0.0.1", server.getsockname()[1], certificate)
    trust = ("--insecure",) if certificate is None else ("--certificate", str(certificate))
    with ExitStack() as stack:
        stack.enter_context(process("farm", "serve", str(endpoint.port), *trust))
        for number in range(workers):
            stack.enter_context(process("worker", endpoint.address, "--name", f"worker{number}"))
        yield stack.enter_context(DaskFarm(endpoint, Limits()))


def seconds(run: Callable[[Sequence[Call]], Iterable[Reply]], calls: Sequence[Call]) -> float:
    """Return the duration of calls in seconds."""
    begin = time.perf_counter()
    assert all(isinstance(reply, Returned) for reply in run(calls))
    return time.perf_counter() - begin


def one_by_one(farm: DaskFarm, calls: Sequence[Call]) -> Iterator[Reply]:
    """Run calls one after the other, each after the answer to the last."""
    for call in calls:
        yield farm.run([call])[0]


def spread(milliseconds: Sequence[float]) -> str:
    """Return median and range as text."""
    least, most = min(milliseconds), max(milliseconds)
    return f"{statistics.median(milliseconds):.2f} ms ({least:.2f} to {most:.2f})"


def report_overhead(farm: DaskFarm, bare: DaskFarm, child: Child, options: Options) -> None:
    """Print the farm's overhead for an empty evaluation, with TLS and without."""
    calls = [Call("farm:nothing")] * options.evaluations
    few = calls[: max(1, len(calls) // 10)]
    farms = {"with TLS": farm, "without": bare}
    together: dict[str, list[float]] = {name: [] for name in farms}
    alone: dict[str, list[float]] = {name: [] for name in farms}
    for number in range(options.rounds):
        local = seconds(child.stream, calls) / len(calls)
        for name in farms if number % 2 == 0 else reversed(farms):
            together[name].append((seconds(farms[name].run, calls) / len(calls) - local) * 1e3)
            alone[name].append((seconds(partial(one_by_one, farms[name]), few) / len(few) - local) * 1e3)
    print(f"overhead of a farm over a local child for an evaluation, 1 worker, {len(calls)} at once:")
    for name in farms:
        print(f"  {spread(together[name])} {name}, {spread(alone[name])} one at a time")


def report_dask(endpoint: Endpoint, options: Options) -> None:
    """Print Dask's time for an empty task, the lower bound for single evaluations."""
    from distributed import Client

    took: list[float] = []
    with Client(endpoint.url, security=security_of(endpoint.certificate), set_as_default=False) as client:
        for _ in range(options.evaluations):
            begin = time.perf_counter()
            client.submit(int, pure=False).result()
            took.append((time.perf_counter() - begin) * 1e3)
    print(f"  Dask alone, one task at a time: {statistics.median(took):.2f} ms")


def report_speedup(name: str, function: str, single: Farm, pair: Farm, options: Options) -> None:
    """Print the speedup of two workers over one."""
    ratios: list[float] = []
    for number in range(options.rounds):
        first = number * options.calls
        calls = [Call(f"farm:{function}", (first + n,)) for n in range(options.calls)]
        order = (single, pair) if number % 2 == 0 else (pair, single)
        took = {id(farm): seconds(farm.run, calls) for farm in order}
        ratios.append(took[id(single)] / took[id(pair)])
    print(f"  {statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f}) {name}")


def main(options: Options) -> None:
    """Print all figures."""
    print(f"this machine is {load(1.0).text()}")
    with (
        TemporaryDirectory() as folder,
        farm_of(1, Path(folder, "farm.pem")) as single,
        farm_of(1, None) as bare,
        farm_of(2, Path(folder, "farm.pem")) as pair,
        LocalFarm(1, Limits()) as alone,  # on any core, as workers compile
        LocalFarm(2, Limits()) as both,
        Child(Limits()) as child,
    ):
        for farm in (single, bare, pair, alone, both):  # children start, and import what they need
            farm.run([Call("farm:compilation", (n,)) for n in range(8)])
        seconds(child.stream, [Call("farm:nothing")])
        report_overhead(single, bare, child, options)
        report_dask(single.endpoint, options)
        print(f"2 workers over 1, {options.rounds} rounds of {options.calls} calls:")
        report_speedup("for calls that compile", "compilation", single, pair, options)
        report_speedup(
            "for the same without a scheduler, which bounds it", "compilation", alone, both, options
        )
        report_speedup(
            "for calls that wait as long, which other load does not slow", "pause", single, pair, options
        )


if __name__ == "__main__":
    main(tyro.cli(Options))
