"""The function that builds each family's model."""

from collections.abc import Callable, Mapping

from irgym.envs.hlo.models import (
    decoding,
    generative,
    graphs,
    language,
    learning,
    perceptrons,
    recurrent,
    residual,
    transformers,
    vision,
)
from irgym.envs.hlo.models.model import Model, Options

BUILDERS: Mapping[str, Callable[[Options], Model]] = {
    "gpt2": transformers.gpt2,
    "bert": transformers.bert,
    "vit": transformers.vit,
    "llama": language.llama,
    "moe": language.moe,
    "t5": language.t5,
    "decode": decoding.decode,
    "beam": decoding.beam,
    "resnet18": residual.resnet18,
    "resnet50": residual.resnet50,
    "mobilenet": vision.mobilenet,
    "densenet": vision.densenet,
    "unet": generative.unet,
    "vae": generative.vae,
    "lstm": recurrent.lstm,
    "gru": recurrent.gru,
    "ssm": recurrent.ssm,
    "wavenet": recurrent.wavenet,
    "mlp": perceptrons.mlp,
    "mixer": perceptrons.mixer,
    "dlrm": perceptrons.dlrm,
    "nerf": perceptrons.nerf,
    "gnn": graphs.gnn,
    "ppo": learning.ppo,
    "maml": learning.maml,
    "pinn": learning.pinn,
    "ode": learning.ode,
}
"""Builders of models, by family."""
