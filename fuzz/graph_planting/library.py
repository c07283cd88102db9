"""All kinds of planted faults."""

from graph_planting import arithmetic, composed, further, layers, selecting
from graph_planting.kinds import Kind

KINDS: tuple[Kind, ...] = (
    *arithmetic.KINDS,
    *composed.KINDS,
    *further.KINDS,
    *layers.KINDS,
    *selecting.KINDS,
)
