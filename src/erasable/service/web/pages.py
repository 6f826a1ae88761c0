"""A page: a template, what it shows, and who looks at it."""

from collections.abc import Mapping
from datetime import datetime

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from erasable.service.shop import shop_of
from erasable.service.web.events_in_words import (
    STATES_IN_WORDS,
    STATES_SERVED_WITHOUT,
    STEPS_IN_WORDS,
    event_in_words,
)
from erasable.service.web.headers import HEADERS
from erasable.service.web.own_site import form_token
from erasable.service.web.wording import (
    counted,
    day,
    duration,
    joined,
    measure,
    moment,
    percentage,
    relative,
    sentence,
    weekday,
)

_TEMPLATES = Environment(
    loader=PackageLoader("erasable.service.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {
    "counted": counted,
    "day": day,
    "duration": duration,
    "event_in_words": event_in_words,
    "from_text": datetime.fromisoformat,
    "joined": joined,
    "measure": measure,
    "moment": moment,
    "percentage": percentage,
    "relative": relative,
    "sentence": sentence,
    "weekday": weekday,
}
_TEMPLATES.globals |= {
    "states_in_words": STATES_IN_WORDS,
    "states_served_without": STATES_SERVED_WITHOUT,
    "steps_in_words": STEPS_IN_WORDS,
}


def page(request: Request, template: str, facts: Mapping[str, object] | None = None, status: int = 200) -> HTMLResponse:
    """Return a page made from a template."""
    shown = {
        "caller": getattr(request.state, "caller", None),
        "form_token": form_token(request),
        "here": request.url.path,
        "now": shop_of(request).clock(),
        **(facts or {}),
    }
    return HTMLResponse(_TEMPLATES.get_template(template).render(shown), status, dict(HEADERS))
