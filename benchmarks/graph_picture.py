"""Draw the beginning of a network before and after rewriting, as in docs/images/graph_squeezenet.svg.

Rules are applied wherever they apply, each as often as it does, in the order given.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from irgym.core.drawing import Drawing
from irgym.envs.graph.environment import GRAPH
from irgym.reporting.pictures import standalone

RULES = (
    "conv-relu,block-fused-conv,block-max-pool,reorder-concat,reorder-elimination,reorder-round-trip,"
    "reorder-conv"
)


def beginning(drawing: Drawing, count: int) -> Drawing:
    """Return the first boxes of a drawing, layer by layer, and the arrows between them."""
    depth: dict[str, int] = {}
    for box in drawing.boxes:
        above = [depth[arrow.source] for arrow in drawing.arrows if arrow.target == box.name]
        depth[box.name] = 1 + max(above, default=0)
    kept = {name for name, layer in depth.items() if layer <= count}
    return replace(
        drawing,
        boxes=tuple(box for box in drawing.boxes if box.name in kept),
        arrows=tuple(arrow for arrow in drawing.arrows if {arrow.source, arrow.target} <= kept),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="graph://squeezenet1_1?size=64")
    parser.add_argument("--rules", default=RULES)
    parser.add_argument("--layers", nargs=2, type=int, default=(14, 9), help="drawn before and after")
    parser.add_argument("--out", type=Path, default=Path("docs/images/graph_squeezenet.svg"))
    options = parser.parse_args()
    task = GRAPH.task(options.program)
    state = task.initial()
    rules = options.rules.split(",")
    for _ in range(task.horizon):
        found = {task.space.kinds[kind].name: name for kind, name in reversed(task.mask(state).candidates)}
        rule = next((rule for rule in rules if rule in found), None)
        if rule is None:
            break
        state = task.step(state, task.space.parse(f"{rule}@{found[rule]}"))
    pictures = [task.drawing(shown) for shown in (task.initial(), state)]
    before, after = (
        beginning(picture, count) for picture, count in zip(pictures, options.layers, strict=True)
    )
    options.out.write_text(standalone(before, after))
    print(f"written: {options.out}, {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
