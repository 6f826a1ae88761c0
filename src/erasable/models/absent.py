"""A stand-in for a model that is not here: it says how the model was set, so that a workspace can be looked at."""

from typing import Any, ClassVar, NoReturn

from pydantic import ConfigDict

from erasable.errors import UnknownModel
from erasable.models.model import Model
from erasable.models.settings import Settings


class AnySettings(Settings):
    """Settings as they were written, whatever they are called."""

    model_config = ConfigDict(extra="allow")


class AbsentModel(Model):
    """What is known of a model without its code; whatever it would have to compute is refused."""

    settings_class: ClassVar[type[Settings]] = AnySettings
    uses: ClassVar[tuple[str, ...]] = ()
    reason: ClassVar[str]
    """Why it is not here, and what to do."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - of many types
        self.settings = AnySettings(**settings)

    def refuse(self, *_: Any, **__: Any) -> NoReturn:  # noqa: ANN401 - whatever a method is given
        """Say that the model is not here."""
        raise UnknownModel(self.reason)

    start = train = represent = score = refuse


def absent_model(name: str, revision: int, trains_rows: bool, reason: str) -> type[Model]:
    """Return the class of a stand-in under the name and the revision that a workspace has."""
    facts = {"name": name, "revision": revision, "trains_rows": trains_rows, "reason": reason}
    return type("AbsentModel", (AbsentModel,), {**facts, "__doc__": AbsentModel.__doc__, "__module__": __name__})
