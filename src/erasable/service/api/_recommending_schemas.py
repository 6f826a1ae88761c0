"""What the routes of recommendations, scores and similar items take and give, as JSON."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from erasable.service.api._schemas import Id, Incoming, Schema


class ContributingItem(Schema):
    """One item that the user has, and the weight that it adds to the score."""

    item_id: str
    weight: float


class RecommendedItem(Schema):
    """One item; rank 1 is best."""

    item_id: str
    score: float
    rank: int
    popular: bool
    """Whether it is a popular item that fills up the list where the model gives no score; then the score is how many
    people have it."""
    because: list[ContributingItem] | None = None
    """The user's own items that add most to the score, the largest weight first; with `why=true` only."""


class RecommendedToOne(Schema):
    """The best items for a user, from one version of the model."""

    user_id: str
    """Empty for a history."""
    version: int
    items: list[RecommendedItem]


Items = Annotated[list[Id], Field(max_length=10_000)]
ItemsByUser = Annotated[dict[Id, Items], Field(max_length=1_000)]
Rating = Annotated[float, Field(allow_inf_nan=False)]
History = Annotated[list[Id], Field(min_length=1, max_length=10_000)]
RatedHistory = Annotated[dict[Id, Rating | None], Field(min_length=1, max_length=10_000)]


class ManyUsers(Incoming):
    """Users to recommend to, or the history of someone without an id; and which items may be recommended."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user_ids": ["user-1"], "exclude": ["item-1"]}]})

    user_ids: list[Id] | None = Field(default=None, min_length=1, max_length=1_000)
    """Whom to recommend to."""
    history: History | RatedHistory | None = None
    """The items of someone without an id, in place of users, or their ratings by item. It is neither stored nor
    logged."""
    k: int = Field(default=10, ge=1, le=1_000)
    """How many items for each; together at most 20,000."""
    items: Items | ItemsByUser | None = None
    """Recommend only these items; or, by user id, those of each user: who is not named has no limit. An unknown item
    is refused."""
    available: Items | ItemsByUser | None = None
    """The same for a stock list: unknown items are passed over."""
    exclude: Items | ItemsByUser | None = None
    """Recommend none of these items, for everyone or by user id."""
    seen: bool = False
    """Whether items that the user has may be recommended too."""
    where: str | None = Field(default=None, min_length=1, max_length=10_000)
    """Recommend only items whose declared attributes fit, such as `category == 'books' and price < 20`."""
    why: bool = False
    """Whether to name the user's own items that add most to each score."""

    @model_validator(mode="after")
    def _is_for_somebody(self) -> Self:
        if (self.user_ids is None) == (self.history is None):
            raise ValueError("give user_ids or history, one of the two")
        return self


class ScoresWanted(Incoming):
    """Items to score for a user, or for the history of someone without an id."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user_id": "user-1", "item_ids": ["item-1"]}]})

    user_id: Id | None = None
    """Whom to score for."""
    history: History | RatedHistory | None = None
    """The items of someone without an id, or their ratings by item; neither stored nor logged."""
    item_ids: list[Id] = Field(min_length=1, max_length=10_000)

    @model_validator(mode="after")
    def _is_for_somebody(self) -> Self:
        if (self.user_id is None) == (self.history is None):
            raise ValueError("give user_id or history, one of the two")
        return self


class ScoredItem(Schema):
    """One item and its score."""

    item_id: str
    score: float | None
    """Null if the model has none: nobody has the item, it is hidden, or nothing was learned from the user's items."""


class Scored(Schema):
    """The scores of some items for a user, from one version of the model, in the order asked for."""

    user_id: str
    """Empty for a history."""
    version: int
    items: list[ScoredItem]
    left_out: list[str] | None = None
    """Items of the history that are not in the catalogue, if there are any."""


class SimilarItem(Schema):
    """One similar item; rank 1 is the most similar."""

    item_id: str
    score: float
    rank: int


class SimilarToOne(Schema):
    """The items most similar to one, from one version of the model."""

    item_id: str
    version: int
    items: list[SimilarItem]


class RecommendedToMany(Schema):
    """The best items for several users, all from one version of the model."""

    version: int
    recommendations: list[RecommendedToOne]
    unknown: list[int]
    """Positions in `user_ids` of those about whom nothing is held, or nothing may be used."""
    suppressed: list[int] | None = None
    """Positions of those who have asked to be erased; given to operators only."""
    left_out: list[str] | None = None
    """Items of a history that are not in the catalogue, if there are any."""
