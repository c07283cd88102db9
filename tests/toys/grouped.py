"""Options by name, sorted into the requests that hold them."""

from dataclasses import fields
from typing import Any

from irgym.api.requests import Measuring


def grouped(*kinds: type[Any], **options: Any) -> dict[str, Any]:
    """Return keywords for a function of `import irgym`: requests of some kinds, and what is in none."""
    keywords = dict(options)
    for kind in (*kinds, Measuring):
        names = {field.name for field in fields(kind)}
        given = {name: keywords.pop(name) for name in list(keywords) if name in names}
        if given:
            keywords[kind.__name__.lower()] = kind(**given)
    return keywords
