"""Policies and methods that are given from Python, under names that tables and files can show."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from irgym.api.objects import module_named
from irgym.base.errors import IrgymError
from irgym.comparing.method_names import MethodName
from irgym.comparing.rows import POLICY
from irgym.core.environment import Environment
from irgym.core.task import Task
from irgym.policies.foreign import adapted, name_of
from irgym.policies.policy import Policy
from irgym.search.naming import search_named
from irgym.search.policies import PolicyFiles

MADE = re.compile(r"(.+\.py|[A-Za-z_]\w*(?:\.\w+)+):([A-Za-z_]\w*)")
"""Names of functions that return policies: `package.module:function` or `folder/file.py:function`."""


@dataclass(frozen=True)
class GivenPolicies:
    """Policies from Python by their names, before those that ship and those in files.

    Attributes:
        environment: Environment of the policies.
        given: The objects by name.
    """

    environment: Environment
    given: Mapping[str, Any]

    def load(self, name: str, task: Task[Any]) -> Policy:
        """Return the policy of a name that suits a task.

        Raises:
            UnsuitedPolicyError: It does not suit.
            IrgymError: There is none.
        """
        if name in self.given:
            return adapted(self.given[name], task)
        made = MADE.fullmatch(name)
        if made is not None:
            return adapted(_made(made[1], made[2]), task)
        return PolicyFiles(self.environment).load(name, task)

    def identify(self, name: str, task: Task[Any]) -> str | None:
        """Return a digest of the file of a policy; None for an object, which has no file."""
        made = MADE.fullmatch(name)
        if name in self.given or made is not None:
            return None
        return PolicyFiles(self.environment).identify(name, task)


def _made(module: str, function: str) -> object:
    """Return the policy that a function makes."""
    make: object = getattr(module_named(module), function, None)
    if not callable(make):
        raise IrgymError(f"{module} has no function {function}: name one that returns a policy")
    return cast(Callable[[], object], make)()


def named_methods(methods: Any) -> tuple[tuple[MethodName, ...], dict[str, Any]]:
    """Return methods as texts and strategies of searches, and the policies among them by name.

    Args:
        methods: A list, or one of these: texts; strategies; policies, as `irgym.policies.foreign.adapted`
            takes them; and pairs of a name and such a policy. A policy without a name gets that of its
            function or class.

    Raises:
        IrgymError: One is of another kind, or a name is given twice or cannot be one.
    """
    listed = cast(Sequence[Any], methods) if isinstance(methods, list | tuple) else (methods,)
    texts: list[MethodName] = []
    given: dict[str, Any] = {}
    for method in listed:
        if isinstance(method, str) or callable(getattr(method, "run", None)):
            if not isinstance(method, str):
                search_named(method)  # refuses a class
            texts.append(method)
            continue
        named = isinstance(method, tuple)
        pair = cast(tuple[Any, ...], method if named else (name_of(method), method))
        if len(pair) != 2:
            raise IrgymError(f"{pair!r} is no method: give a pair of a name and a policy")
        name, policy = pair
        if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name):
            raise IrgymError(f"{name!r} cannot name a policy: choose letters, digits, hyphens and dots")
        if named and name in given:
            raise IrgymError(f"two policies have the name {name}: rename one")
        number = 2
        while not named and name in given:
            name, number = f"{name_of(policy)}-{number}", number + 1
        given[name] = policy
        texts.append(f"{POLICY}:{name}")
    return tuple(texts), given
