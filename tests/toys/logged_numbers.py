"""A training with several loggers, and the numbers that each has: a program for a process by itself.

Usage: python logged_numbers.py FOLDER LOGGER...

It prints JSON: {logger: {name: {iteration: number}}}.
"""

import csv
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dials

from irgym.agents.algorithms.ppo import PPOConfig
from irgym.agents.training import Setup, train
from irgym.loggers import make_loggers

Numbers = dict[str, dict[int, float]]
BLOCK = 32_768
"""Bytes in a block of wandb's files, which are LevelDB's logs."""


def main(run: Path, names: list[str]) -> None:
    problem = dials.problem(dials.CODES[::40])
    setup = Setup(
        environment="dials", evaluation=problem.tasks[:2], evaluate_every=2, loggers=make_loggers(names)
    )
    config = PPOConfig(iterations=3, episodes=8, hidden=(8,), epochs=1)
    train(config, problem, run, setup, iterations=2)
    train(config, problem, run, Setup(**{**vars(setup), "loggers": make_loggers(names)}), resume=True)
    print(json.dumps({name: READERS[name](run) for name in names}))


def of_tensorboard(run: Path) -> Numbers:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    return {
        tag: {event.step: event.value for event in events.Scalars(tag)} for tag in events.Tags()["scalars"]
    }


def of_csv(run: Path) -> Numbers:
    found: Numbers = {}
    with (run / "csv/metrics.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            for name, text in row.items():
                if text and name != "iteration":
                    found.setdefault(name, {})[int(row["iteration"])] = float(text)
    return found


def of_wandb(run: Path) -> Numbers:
    found: Numbers = {}
    for file in sorted((run / "wandb").glob("offline-run-*/*.wandb")):
        for record in wandb_records(file.read_bytes()):
            items = record.history.item
            row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}
            for name, value in row.items():
                if name != "iteration" and not name.startswith("_"):
                    found.setdefault(name, {})[row["iteration"]] = value
    return found


def wandb_records(content: bytes) -> Iterator[Any]:
    """Yield the records of a file of wandb.

    After 7 bytes it has pieces, each with a checksum, its length and its kind: 1 is whole, 4 the last one.
    """
    from wandb.proto import wandb_internal_pb2

    place, whole = 7, b""
    while place + 7 <= len(content):
        left = BLOCK - place % BLOCK
        if left < 7:
            place += left
            continue
        _, length, kind = struct.unpack("<IHB", content[place : place + 7])
        whole += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            whole = b""
            yield record


def of_mlflow(run: Path) -> Numbers:
    from mlflow import MlflowClient

    known = json.loads((run / "mlflow.json").read_text())
    client = MlflowClient(tracking_uri=known["store"])
    names = client.get_run(known["run"]).data.metrics
    return {
        name: {metric.step: metric.value for metric in client.get_metric_history(known["run"], name)}
        for name in names
    }


READERS = {"tensorboard": of_tensorboard, "csv": of_csv, "wandb": of_wandb, "mlflow": of_mlflow}

if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
