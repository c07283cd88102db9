"""Text lines that describe a result of `tune`."""

from irgym.core.catalogue import ENVIRONMENTS
from irgym.judging.original import Original
from irgym.reporting.facts import choice_text


def test_it_says_which_environment_took_an_object_and_why():
    def said(name: str) -> str:
        return choice_text(Original(object(), (), ENVIRONMENTS.load(name)))

    assert said("graph").startswith("graph, the first that takes a torch module")
    assert said("graph").endswith("linalg takes it too, named as the environment")
    assert said("linalg").startswith("linalg, as named")
    assert said("linalg").endswith("graph takes a torch module with its inputs by default")
    assert said("hlo").startswith("hlo, the first that takes a JAX function") and "too" not in said("hlo")
