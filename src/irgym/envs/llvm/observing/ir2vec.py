"""IR2Vec's symbolic embeddings of modules.

From VenkataKeerthy et al., "IR2Vec: LLVM IR Based Scalable Program Embeddings", ACM TACO 17(4), 2020, as LLVM
computes them (llvm/Analysis/IR2Vec.h): the vector of an instruction is the weighted sum of the vectors of its
opcode, of the kind of its type, of the kinds of its operands and of its predicate, if it compares. The vector
of a module is the sum over its instructions, but for those in blocks that nothing leads to. So it is a
product of counts and a vocabulary, which holds a vector for each of these entities.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.envs.llvm.observing.counts import LAYOUT, OPERANDS, PREDICATES, SIZE, TYPES, Counts
from irgym.envs.llvm.observing.opcodes import NEWER, NUMBERS, OPCODES

OPCODE_WEIGHT, TYPE_WEIGHT, ARGUMENT_WEIGHT = 1.0, 0.5, 0.2
"""LLVM's own weights; predicates have the weight of arguments."""

ENTITIES = OPCODES + len(TYPES) + len(OPERANDS) + len(PREDICATES)
"""Number of rows of a vocabulary: opcodes by LLVM's numbers, types, operands, predicates."""

FILE_VARIABLE = "IRGYM_IR2VEC"
"""Environment variable that names the file of a vocabulary."""

LARGEST_BYTES = 16 << 20
"""Greatest size of a vocabulary's file."""

_SECTIONS = ("Opcodes", "Types", "Arguments")
_LINE = re.compile(r"^\s*([A-Za-z]\w*)\s*:\s*(\[[^\]]*\])\s*,?\s*$")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Vectors of the entities of LLVM's IR.

    Attributes:
        weighted: Shape [ENTITIES, D]; each vector times the weight of its section. Zeros for entities that
            the vocabulary lacks.
        missing: Names of these entities.
    """

    weighted: NDArray[np.float32]
    missing: tuple[str, ...]

    @property
    def size(self) -> int:
        """D, the length of a vector."""
        return self.weighted.shape[1]

    @staticmethod
    def read(path: Path) -> "Vocabulary":
        """Read a file: the JSON that LLVM takes as `-ir2vec-vocab-path`, or the text of IR2Vec's package.

        Names are compared without regard to case. An opcode that is newer than the vocabulary has the vector
        of the one that it was before, such as Br for CondBr; LLVM itself has zeros then.

        Raises:
            ProgramError: It cannot be read, or is no vocabulary.
        """
        try:
            if path.stat().st_size > LARGEST_BYTES:
                raise ProgramError(f"{path} has more than {LARGEST_BYTES >> 20} MiB: name a vocabulary")
            return Vocabulary.of(_vectors(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise ProgramError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise ProgramError(
                f"{path} is no vocabulary of IR2Vec: name seedEmbeddingVocab75D.json of LLVM's sources"
            ) from error

    @staticmethod
    def of(vectors: Mapping[str, NDArray[np.float32]]) -> "Vocabulary":
        """Return the vocabulary of some vectors by names in lower case.

        Raises:
            ValueError: The vectors are empty, are none, differ in length or have numbers that are not finite;
                or no opcode has one.
        """
        lengths = {vector.shape for vector in vectors.values()}
        if (
            len(lengths) != 1
            or {len(shape) for shape in lengths} != {1}
            or (0,) in lengths
            or not vectors.keys() & _OPCODE_NAMES
        ):
            raise ValueError("vectors of one length are needed, of opcodes among others")
        if not all(np.isfinite(vector).all() for vector in vectors.values()):
            raise ValueError("the vectors hold numbers that are not finite")
        weighted = np.zeros((ENTITIES, *lengths.pop()), dtype=np.float32)
        missing: list[str] = []
        for row, names, weight in _ROWS:
            found = next((name for name in names if name.lower() in vectors), None)
            if found is None:
                missing.append(names[0])
            else:
                weighted[row] = weight * vectors[found.lower()]
        return Vocabulary(weighted, tuple(missing))

    @staticmethod
    def named() -> "Vocabulary | None":
        """Return the vocabulary that the environment variable `FILE_VARIABLE` names; None if there is none.

        Raises:
            ProgramError: See `read`.
        """
        file = os.environ.get(FILE_VARIABLE)
        return Vocabulary.read(Path(file)) if file else None

    def embedding(self, counts: Counts) -> NDArray[np.float32]:
        """Return the vector of the module with some counts, shape [D]."""
        return counts[-ENTITIES:].astype(np.float32) @ self.weighted


def entity_counts(counts: Counts) -> Counts:
    """Return how often each entity of `ENTITY_NAMES` occurs, shape [len(ENTITY_NAMES)]."""
    return counts[-ENTITIES:][_NAMED]


def _rows() -> tuple[tuple[int, tuple[str, ...], float], ...]:
    """Return the row, the names in order of preference and the weight of each entity."""
    rows = [(number, (name,), OPCODE_WEIGHT) for name, number in NUMBERS.items()]
    rows += [(number, (name, older), OPCODE_WEIGHT) for name, (number, older) in NEWER.items()]
    others = [(name, TYPE_WEIGHT) for name in TYPES] + [
        (name, ARGUMENT_WEIGHT) for name in (*OPERANDS, *PREDICATES)
    ]
    return (*rows, *((OPCODES + place, (name,), weight) for place, (name, weight) in enumerate(others)))


_ROWS = _rows()
_NAMED = np.array([row for row, _, _ in _ROWS], dtype=np.intp)

ENTITY_NAMES = tuple(names[0] for _, names, _ in _ROWS)
"""Names of the entities, as a vocabulary has them: opcodes, types, operands, predicates."""

_OPCODE_NAMES = frozenset(name.lower() for name in NUMBERS)
assert [*LAYOUT][-4:] == ["reachable", "types", "operands", "predicates"] and SIZE > ENTITIES


def _vectors(text: str) -> dict[str, NDArray[np.float32]]:
    """Return the vectors of a vocabulary's text by names in lower case.

    Raises:
        ValueError: It is none.
    """
    if text.lstrip().startswith("{"):
        said = json.loads(text)
    else:
        lines = [_LINE.match(line) for line in text.splitlines() if line.strip()]
        said = {line[1] if line else "": json.loads(line[2]) if line else None for line in lines}
    sections: list[Any] = [said[name] for name in _SECTIONS if name in said] or [said]
    if not all(isinstance(section, dict) for section in sections):
        raise ValueError("a section is no object")
    found: dict[str, NDArray[np.float32]] = {}
    for section in cast(list[dict[str, Any]], sections):
        for name, vector in section.items():
            if not isinstance(vector, list):
                raise ValueError(f"{name} has no vector")
            found[name.lower()] = np.array(vector, dtype=np.float32)
    return found
