"""The builders of all families."""

from irgym.envs.graph.programs.models import (
    dalle,
    drawn_images,
    drawn_sequences,
    emformer,
    images,
    language,
    preresnet,
    recurrent,
    transformer,
    unet,
)
from irgym.envs.graph.programs.models.model import Builder

BUILDERS: dict[str, Builder] = {
    **images.BUILDERS,
    **language.BUILDERS,
    **recurrent.BUILDERS,
    **dalle.BUILDERS,
    **drawn_images.BUILDERS,
    **drawn_sequences.BUILDERS,
    **emformer.BUILDERS,
    **preresnet.BUILDERS,
    **transformer.BUILDERS,
    **unet.BUILDERS,
}
"""Builders of all families' models."""
