"""`irgym tune FILE --seconds N --export`, from an empty cache, on 20,001 operators with an open batch.

The graph is a chain of blocks: two transposes that cancel out, a product, bias, activations and a residual.
Each `tune` is a process, timed from start to end; it should take at most 1.2 N + 10 seconds.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import onnx
import tyro
from onnx import TensorProto, helper, numpy_helper

from irgym.measure.machine import fingerprint
from irgym.measure.variables import REMOVED

WIDTH = 32
"""Features of each block."""

BLOCK = (
    ("Transpose", ("x",), "t"),
    ("Transpose", ("t",), "u"),
    ("MatMul", ("u", "weight"), "m"),
    ("Add", ("m", "bias"), "a"),
    ("Relu", ("a",), "r"),
    ("Mul", ("r", "scale"), "s"),
    ("Identity", ("s",), "i"),
    ("Tanh", ("i",), "h"),
    ("Add", ("x", "h"), "b"),
    ("Relu", ("b",), "y"),
)
"""Operators of a block, with their operands and their results; `x` is the block before."""


def chain(blocks: int) -> onnx.ModelProto:
    """Return a model of so many blocks, float32[batch, WIDTH] to the same."""
    generator = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    before = "x"
    for block in range(blocks):
        names = {name: f"{name}{block}" for name in "tumarsihby"} | {"x": before}
        shapes = {"weight": (WIDTH, WIDTH), "bias": (WIDTH,), "scale": ()}
        for name, shape in shapes.items():
            names[name] = f"{name}{block}"
            array = generator.standard_normal(shape, np.float32) / 8
            weights.append(numpy_helper.from_array(np.asarray(array, np.float32), names[name]))
        for kind, operands, result in BLOCK:
            made = helper.make_node(kind, [names[name] for name in operands], [names[result]])
            if kind == "Transpose":
                made.attribute.append(helper.make_attribute("perm", [1, 0]))
            nodes.append(made)
        before = names["y"]
    nodes.append(helper.make_node("Identity", [before], ["result"]))
    given, made = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", WIDTH]) for name in ("x", "result")
    )
    graph = helper.make_graph(nodes, "chain", [given], [made], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@dataclass(frozen=True)
class LargeGraph:
    """Time `irgym tune` on a large graph."""

    seconds: float = 30.0
    """Budget of each run."""
    runs: int = 5
    """Number of runs."""
    blocks: int = 2000
    """Blocks of ten operators."""

    def run(self) -> None:
        """Run and print."""
        took: list[float] = []
        with tempfile.TemporaryDirectory() as folder:
            file, out = Path(folder, "chain.onnx"), Path(folder, "out.json")
            model = chain(self.blocks)
            onnx.save(model, str(file))
            print(f"{len(model.graph.node)} operators; {fingerprint().text()}", flush=True)
            for run in range(self.runs):
                cache = Path(folder, f"cache{run}")
                kept = {name: value for name, value in os.environ.items() if name not in REMOVED}
                command = [sys.executable, "-m", "irgym", "tune", str(file), "--seconds", str(self.seconds)]
                command += ["--json", str(out), "--export", str(Path(folder, "out.onnx"))]
                begun = time.monotonic()
                subprocess.run(
                    command, check=True, env={**kept, "XDG_CACHE_HOME": str(cache)}, capture_output=True
                )
                took.append(time.monotonic() - begun)
                result = json.loads(out.read_text())
                print(f"{took[-1]:.1f} s, {result['speedup']:.2f} of the original", flush=True)
        allowed = 1.2 * self.seconds + 10
        late = sum(seconds > allowed for seconds in took)
        print(f"median {median(took):.1f} s of {allowed:.0f} allowed; later: {late} of {len(took)}")


if __name__ == "__main__":
    tyro.cli(LargeGraph).run()
