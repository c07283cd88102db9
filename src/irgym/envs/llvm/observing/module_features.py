"""Features of a module for irgym's policies: its counts beside the original's and a reference's."""

import math

import numpy as np
from numpy.typing import NDArray

from irgym.envs.llvm.observing.counts import (
    AUTOPHASE,
    INST_COUNT,
    LAYOUT,
    OPERANDS,
    PREDICATES,
    SHAPE,
    SIZE,
    TYPES,
    Counts,
    autophase,
    inst_count,
    part,
)

_OPCODES = tuple(name for name in INST_COUNT if name not in ("UserOp1", "UserOp2"))
_SHAPE = tuple(AUTOPHASE.index(name) for name in (*SHAPE, "TotalMemInst", "testUnary"))
_KEPT = np.array([INST_COUNT.index(name) for name in _OPCODES], dtype=np.intp)
_TYPES = tuple(name for name in TYPES if name not in ("LabelTy", "FunctionTy", "UnknownTy"))
_TYPE_PLACES = np.array([TYPES.index(name) for name in _TYPES], dtype=np.intp)

COUNTED = (*_OPCODES, *(AUTOPHASE[place] for place in _SHAPE), *_TYPES, *OPERANDS, *PREDICATES)
"""Names of what is counted: InstCount, what Autophase adds, and what IR2Vec adds."""

GENERAL = 3
"""Number of features of the module as a whole."""

MODULE_FEATURES = 4 * len(COUNTED) + GENERAL
"""Length of the vector."""


def counted(counts: Counts) -> NDArray[np.float32]:
    """Return the numbers that features are made of, by `COUNTED`."""
    return np.concatenate(
        [
            inst_count(counts)[_KEPT],
            autophase(counts)[list(_SHAPE)],
            part(counts, "types")[_TYPE_PLACES],
            part(counts, "operands"),
            part(counts, "predicates"),
        ],
        dtype=np.float32,
    )


def module_features(now: Counts, first: Counts, reference: Counts) -> NDArray[np.float32]:
    """Return the feature vector of a module, shape [MODULE_FEATURES].

    - For each name of `COUNTED`: the logarithm of the count, in fifths; the count relative to the module's
      instructions; the logarithms of its ratios to the original's and to the reference's, one added to each.
    - For the module: its instructions relative to the original's and to the reference's; their logarithm, in
      tenths.

    Args:
        now: The module's counts.
        first: Those of the original.
        reference: Those of the original after a pipeline, such as -Oz.

    Raises:
        ValueError: Some counts have another length.
    """
    if not len(now) == len(first) == len(reference) == SIZE:
        raise ValueError(f"counts have {SIZE} numbers, of {', '.join(LAYOUT)}")
    present, original, best = counted(now), counted(first), counted(reference)
    vector = np.empty(MODULE_FEATURES, dtype=np.float32)
    logs, shares, changes, distances = vector[:-GENERAL].reshape(4, -1)
    np.log1p(present, out=logs)
    np.divide(present, max(present[0], 1.0), out=shares)
    np.subtract(logs, np.log1p(original), out=changes)
    np.subtract(logs, np.log1p(best), out=distances)
    logs /= 5.0
    vector[-GENERAL:] = (
        present[0] / max(original[0], 1.0),
        present[0] / max(best[0], 1.0),
        math.log1p(present[0]) / 10.0,
    )
    return vector
