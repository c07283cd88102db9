"""Objects that must be closed, for use in a `with` statement."""

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """Closes itself at the end of a `with` block."""

    @abstractmethod
    def close(self) -> None:
        """Give back what is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
