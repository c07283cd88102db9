"""The function that builds each family's model."""

from collections.abc import Callable, Mapping

from irgym.envs.hlo.models import perceptrons, residual, transformers
from irgym.envs.hlo.models.model import Model, Options

BUILDERS: Mapping[str, Callable[[Options], Model]] = {
    "gpt2": transformers.gpt2,
    "bert": transformers.bert,
    "resnet18": residual.resnet18,
    "resnet50": residual.resnet50,
    "mlp": perceptrons.mlp,
}
"""Builders of models, by family."""
