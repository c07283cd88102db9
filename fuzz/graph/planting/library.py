"""All kinds of planted faults."""

from fuzz.graph.planting import arithmetic, composed, further, layers, selecting
from fuzz.graph.planting.kinds import Kind

KINDS: tuple[Kind, ...] = (
    *arithmetic.KINDS,
    *composed.KINDS,
    *further.KINDS,
    *layers.KINDS,
    *selecting.KINDS,
)
