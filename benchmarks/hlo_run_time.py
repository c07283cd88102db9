"""Run times on XLA:CPU of held-out graphs, with the policy's order of passes against XLA's default order.

The modules after the policy's episode and after `core` run in turn on one thread; and, as a measure of the
noise, `core`'s module against itself. The paper (arXiv 2308.14364) has such a comparison on a Xeon and a
Graviton. Rows are kept as they are done, so that a benchmark that was stopped goes on. Graphs on which both
end in the same module say nothing, and are counted only.

    python benchmarks/hlo_run_time.py --limit 40
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import tyro

from irgym.base.errors import IrgymError
from irgym.core.baseline import Versus
from irgym.core.cost import Call
from irgym.core.dataset import spread
from irgym.core.schedule import replay
from irgym.envs.hlo.environment import HLO
from irgym.judging.statistics import geometric_interval
from irgym.search.policies import load_policy
from irgym.search.rollouts import outcome, rollout

TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    dataset: str = "networks"
    """Data set, of which the test split is taken."""
    limit: int = 40
    """Number of graphs, spread over the split."""
    policy: str = "default"
    """Name or file of the policy."""
    out: Path = Path("docs/measured/hlo_run_time.md")
    """File of the table."""
    rows: Path = Path("runs/hlo_run_time.jsonl")
    """File of the rows."""


def timed(uri: str, policy: Any) -> dict[str, Any]:
    """Return a row: the operations after both orders, the ratio of run times, and that of the noise."""
    task = HLO.task(uri)
    [path] = rollout(task, policy, 1, None)
    ours, core = outcome(task, path).state, replay(task, task.pipeline("core"))
    row = {"uri": uri, "core": core.node.total, "policy": ours.node.total}
    ours_proto: bytes = HLO.pool().call("proto", task.modules.file, ours.path)
    core_proto: bytes = HLO.pool().call("proto", task.modules.file, core.path)
    if ours_proto == core_proto:
        return row
    with HLO.bench() as bench:
        for name, proto in (("ratio", ours_proto), ("noise", core_proto)):
            call = Call("irgym.envs.hlo.compiling.execution:time_in_turn", (proto, core_proto))
            versus: Versus = bench.call(call, TIMEOUT_S)
            row[name] = versus.ratio
    return row


def geometric(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return exp(mean(map(log, values)))


def table(rows: Sequence[dict[str, Any]], options: Options) -> str:
    """Return the results by family, as markdown."""
    families: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        families.setdefault(row["uri"].removeprefix("hlo://").partition("?")[0], []).append(row)
    lines = ["| family | graphs | run time, `core` / policy | noise |", "|---|---|---|---|"]
    for family, members in families.items():
        known = [row for row in members if "ratio" in row]
        told = [
            f"{geometric([row[key] for row in known]):.2f}" if known else "" for key in ("ratio", "noise")
        ]
        lines.append(f"| `{family}` | {len(members)} | {' | '.join(told)} |")
    known = [row for row in rows if "ratio" in row]
    failed = sum("failed" in row for row in rows)
    for key, words in (("ratio", "`core` over the policy"), ("noise", "`core` over itself")):
        values = [row[key] for row in known]
        lines += [
            "",
            f"Run time of {words} on {len(values)} graphs: geometric mean {geometric(values):.3f}, "
            f"median {median(values):.3f}, deviation {stdev(values):.3f}, "
            f"from {min(values):.2f} to {max(values):.2f}.",
        ]
    interval = geometric_interval([row["ratio"] / row["noise"] for row in known])
    lines += [
        "",
        f"The first over the second, graph by graph: geometric mean {interval.mean:.3f} "
        f"[{interval.low:.3f}, {interval.high:.3f}].",
        "",
        f"{len(rows) - len(known) - failed} of {len(rows)} graphs end in the same module, {failed} failed. "
        f"Written by `python benchmarks/hlo_run_time.py --limit {options.limit}`, "
        f"{time.strftime('%Y-%m-%d')}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    uris = spread(HLO.dataset(options.dataset).test, options.limit)
    options.rows.parent.mkdir(parents=True, exist_ok=True)
    kept = options.rows.read_text().splitlines() if options.rows.exists() else []
    done = {row["uri"]: row for row in map(json.loads, kept)}
    policy = load_policy(HLO, options.policy, HLO.task(uris[0]))
    for uri in uris:
        if uri not in done:
            try:
                done[uri] = timed(uri, policy)
            except IrgymError as error:
                done[uri] = {"uri": uri, "failed": str(error)}
            with options.rows.open("a") as file:
                file.write(json.dumps(done[uri]) + "\n")
            print(done[uri], flush=True)
    text = table([done[uri] for uri in uris], options)
    options.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
