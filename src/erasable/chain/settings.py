"""`Config`: a model and a strategy, each with its settings, and the settings of the recommender itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from pydantic import Field, field_validator

from erasable.chain.strategies import STRATEGIES, Aggregate, Policy, Strategy
from erasable.data.splits import Split, SplitSettings
from erasable.data.values import Weights
from erasable.errors import WrongSetting, WrongUse
from erasable.grouping.registry import GroupingSettings, OrderName, check_grouping
from erasable.models.base import Model
from erasable.models.registry import BUILT_IN, checked_model, find_model, made_with, refuse_without_torch
from erasable.models.settings import Settings, checked, given_twice, in_our_words, nearest, no_such_setting
from erasable.wording import listed

PresetName = Literal["paper", "sparse"]
PRESETS: Mapping[PresetName, Mapping[str, Any]] = {
    "paper": {
        "model": "nmf",
        "strategy": "laser",
        "grouping": "cbkm",
        "groups": 8,
        "order": "easy",
        "reach": 4,
        "vectors": "erasable",
        "epoch_budget": "shared",
        "policy": "fixed",
        "rows": "stage",
    },
    "sparse": {},
}
"""Sets of settings: `paper` is LASER as it was published."""
SPARSE: Mapping[str, Mapping[str, Any]] = {"ease": {"neighbours": 300}}
"""What the preset `sparse` sets for which model: what is better on validation rows of every sparse set."""
SPARSE_BELOW = 0.005
"""The share of all pairs of user and item, below which `learn` recommends the preset `sparse`."""
USUAL_MODEL = "ease"
USUAL_FEATURE_WEIGHT = 3
"""What a feature weighs; chosen on validation rows of book-crossing: benchmarks/item_features.py."""
RowsFrom = Literal["stage", "solved"]
SPLITTING = frozenset({"holdout", "split", "split_time"})
"""The settings that say what is held out."""
_IMPLIED = ("rows", "policy", "order", "vectors")
"""The settings that follow from others where they are not given."""


class OwnSettings(SplitSettings, Settings):
    """The settings of a recommender with any model."""

    rows: RowsFrom | None = None
    """Where user rows come from: the stage that trained them, or solved from the user's own data when needed."""

    anchors: float = Field(1.0, gt=0, le=1)
    """The share of users, by a hash of seed and id, whose data shape shared parameters; the others only get a row."""

    risk_threshold: float | None = None
    """Users with at least this risk (--risk-column) form a last group; it trains nothing if rows are solved."""

    seed: int = Field(0, ge=0, lt=2**63)
    """The seed of everything random."""

    features: str | list[str] | dict[str, int] | None = None
    """Columns of --items to learn from: author,publisher, or weighed: author=5,publisher=1 (usual: 3), or none."""

    chosen_on: Literal["data", "declared"] | None = None
    """Say data if settings were tried on data, as tune does: certificates then say so; declared if they were not."""

    @field_validator("features")
    @classmethod
    def _names_columns(cls, value: str | list[str] | dict[str, int] | None) -> dict[str, int] | None:
        return None if value in (None, "none") else _features_named(value)

    def written(self) -> dict[str, Any]:
        """Return the settings as workspaces and certificates hold them: some only where they are used."""
        optional = ("max_weight", "event_weights", "split_time", "features", "chosen_on")
        unused = {name for name in optional if getattr(self, name) is None}
        unused |= {"split"} if self.split == "random" else set()
        return self.model_dump(mode="json", exclude=unused)


@dataclass(frozen=True)
class Written:
    """What a workspace records about the model besides its settings."""

    revision: int
    """The revision of the model that made its checkpoints."""
    further: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Fields that a newer version wrote beside the settings; they are kept."""
    unnamed: frozenset[str] = frozenset()
    """Settings that are newer than the workspace, so its file lacks them: checkpoint names leave them out."""


@dataclass(frozen=True, init=False, eq=False)
class Config:
    """Every setting that decides what is learned.

    It is built from flat names, as the command and `Recommender` give them; the model and the strategy are each a name
    or an object. Each setting belongs to the model, the strategy or the recommender itself; any other is refused. All
    can be read under their flat names.
    """

    learner: Model
    """The model with its settings."""
    learning: Strategy
    """The strategy with its settings."""
    own: OwnSettings
    """The settings of the recommender itself."""
    written: Written = field(repr=False)
    """What the workspace records besides the settings, if there is one."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - settings of many types
        given = in_our_words(settings)
        kind, in_model = _with_own(given.pop("model", USUAL_MODEL), _model_class)
        shown = kind.name if "model" in settings else f"{kind.name} (the default model)"
        strategy, in_strategy = _with_own(given.pop("strategy", kind.strategies[0]), _strategy_class)
        if strategy.name not in kind.strategies:
            raise _no_such_strategy(strategy.name, kind, shown)
        fields = [one.settings_class.model_fields for one in (kind, strategy)] + [OwnSettings.model_fields]
        for name in given:
            if not any(name in part for part in fields):
                there = {one: None for part in fields for one in part}
                raise _foreign_setting(name, kind, shown, strategy.name, there)
        for name in sorted(given.keys() & {**in_model, **in_strategy}.keys()):
            raise given_twice(name, f"in {settings['model' if name in in_model else 'strategy']!r} and beside it")
        of_model, of_strategy, own = ({name: given[name] for name in given if name in part} for part in fields)
        self._set(made_with(kind, {**in_model, **of_model}), strategy(**{**in_strategy, **of_strategy}), _own(own))

    @classmethod
    def of(cls, settings: Mapping[str, Any], preset: str | None = None) -> Self:
        """Build a configuration, on top of a preset if one is named; refuse a model that can't be learned here."""
        config = cls.named(settings, preset)
        refuse_without_torch(config.learner)
        return config

    @classmethod
    def named(cls, settings: Mapping[str, Any], preset: str | None = None) -> Self:
        """Build a configuration as `of` does, also where what its model needs is not installed."""
        below = in_preset(preset, settings.get("model", USUAL_MODEL))
        over = {name for part in ("model", "strategy") for name in _set_in(settings.get(part))}
        config = cls(**{name: value for name, value in below.items() if name not in over} | in_our_words(settings))
        check_grouping(config.dividing)  # only here: a workspace may name what is not installed
        return config

    @classmethod
    def joined(cls, learner: Model, learning: Strategy, own: OwnSettings, written: Written) -> Self:
        """Build a configuration from its parts, as read from a workspace."""
        config = cls.__new__(cls)
        config._set(learner, learning, own, written)
        return config

    def changed(self, **settings: Any) -> "Config":  # noqa: ANN401 - settings of many types
        """Return the configuration with some settings changed, by their flat names.

        The others stay. But what has the value that follows from others, given or not, follows from the new ones.
        """
        own = {"model": type(self.learner), "strategy": type(self.learning), **self.own.model_dump()}
        own |= {**_set_in(self.learner), **_set_in(self.learning)}
        left = {name for name in _IMPLIED if name in own and self._implies(name, own)}
        left |= set() if settings.get("model", self.model) == self.model else _set_in(self.learner).keys()
        left |= _set_in(self.learning).keys() - _shared_with(settings["strategy"]) if "strategy" in settings else set()
        if not settings.keys().isdisjoint(SPLITTING):  # one way to hold out takes the place of another
            left |= SPLITTING
        kept = {name: value for name, value in own.items() if name not in left}
        other = Config(**{**kept, **in_our_words(settings)})
        same = other.model == self.model
        written = replace(self.written, unnamed=self.written.unnamed - settings.keys()) if same else other.written
        return Config.joined(other.learner, other.learning, other.own, written)

    def _implies(self, name: str, own: Mapping[str, Any]) -> bool:
        """Whether a setting has the value that it gets by itself, with the others as they are."""
        try:
            without = Config(**{one: value for one, value in own.items() if one != name})
        except WrongSetting:  # it is needed
            return False
        return bool(without.flat()[name] == self.flat()[name])

    def of_this_revision(self) -> "Config":
        """Return the configuration with the installed revision of the model, whatever made its checkpoints."""
        written = replace(self.written, revision=self.learner.revision)
        return Config.joined(self.learner, self.learning, self.own, written)

    def with_rows_of_stages(self) -> "Config":
        """Return the configuration for checkpoints that hold given rows, even if the model solves rows."""
        config = Config.joined(self.learner, self.learning, self.own, self.written)
        object.__setattr__(config, "own", self.own.model_copy(update={"rows": "stage", "anchors": 1.0}))
        return config

    def flat(self) -> dict[str, Any]:
        """Return all settings of the model, the strategy and the recommender under their flat names."""
        names = {"strategy": self.strategy, "model": self.model}
        parts = (self.learning.settings.model_dump(mode="json"), self.learner.settings.model_dump(mode="json"))
        return {**names, **parts[0], **parts[1], **self.own.written()}

    def setting(self, name: str, usual: Any = None) -> Any:  # noqa: ANN401 - settings of many types
        """Return a setting of the model by name, or the usual value if the model has no such setting."""
        return getattr(self.learner.settings, name, usual)

    def stage_facts(self) -> dict[str, Any]:
        """Return the part of the configuration that a stage depends on, and nothing else."""
        settings = self.learner.settings
        reaching = settings.model_dump(mode="json", exclude={"epochs", *settings.only_for_rows, *self.written.unnamed})
        facts = {"model": self.model, "revision": self.revision, "settings": reaching, "epochs": self.stage_epochs}
        facts |= {"weights": True} if self.weighed else {}
        return {**facts, **({"order": True} if self.learner.uses_time else {})}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._facts() == other._facts()

    __hash__ = None  # type: ignore[assignment]

    def _facts(self) -> tuple[object, ...]:
        return self.model, self.revision, self.learner.settings, self.strategy, self.learning.settings, self.own

    def _set(
        self,
        learner: Model,
        learning: Strategy,
        own: OwnSettings,
        written: Written | None = None,
    ) -> None:
        rows = _rows(own, learner, learning)
        facts = {
            "learner": learner,
            "learning": learning,
            "own": own.model_copy(update={"rows": rows}),
            "written": written or Written(learner.revision),
        }
        for name, value in facts.items():
            object.__setattr__(self, name, value)

    @property
    def revision(self) -> int:
        """The revision of the model that made its checkpoints."""
        return self.written.revision

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.learner.name

    @property
    def strategy(self) -> str:
        """The name of the strategy."""
        return self.learning.name

    @property
    def policy(self) -> Policy:
        """How far back exactness goes."""
        return self.learning.policy

    @property
    def aggregate(self) -> Aggregate | None:
        """What scores, if there are several models."""
        return self.learning.aggregate

    @property
    def dividing(self) -> GroupingSettings:
        """How users are divided into groups."""
        return self.learning.grouping

    @property
    def groups(self) -> int:
        """How many groups there are from the start."""
        return self.dividing.groups

    @property
    def grouping(self) -> str:
        """How users are grouped."""
        return self.dividing.grouping

    @property
    def order(self) -> OrderName | None:
        """Which groups come first."""
        return self.dividing.order

    @property
    def reach(self) -> int:
        """The paper's l."""
        return self.dividing.reach

    @property
    def epochs(self) -> int:
        """The total number of epochs; 1 for a model without epochs."""
        epochs: int = self.setting("epochs", 1)
        return epochs

    @property
    def stage_epochs(self) -> int:
        """How many epochs each stage gets."""
        return self.learning.stage_epochs(self.epochs)

    @property
    def row_epochs(self) -> int:
        """How often solving a row goes through the user's own interactions."""
        epochs: int = self.setting("row_epochs", 1)
        return epochs

    @property
    def rows(self) -> RowsFrom:
        """Where personal rows come from."""
        return self.own.rows or "stage"

    @property
    def anchors(self) -> float:
        """The share of users whose data shape shared parameters."""
        return self.own.anchors

    @property
    def risk_threshold(self) -> float | None:
        """The risk from which users go into a group of their own."""
        return self.own.risk_threshold

    @property
    def seed(self) -> int:
        """The seed of everything random."""
        return self.own.seed

    @property
    def chosen_on(self) -> str | None:
        """Whether settings were chosen on data or declared; None if that is not said."""
        return self.own.chosen_on

    @property
    def holdout(self) -> float:
        """The share of interactions kept out of training."""
        return self.own.holdout

    @property
    def splitting(self) -> Split:
        """Which interactions are held out."""
        return self.own.splitting(self.seed)

    @property
    def min_interactions(self) -> int:
        """The fewest interactions that the filter keeps."""
        return self.own.min_interactions

    @property
    def rating_scale(self) -> tuple[float, float] | None:
        """The declared rating scale."""
        return self.own.rating_scale

    @property
    def max_weight(self) -> int | None:
        """The most that a pair weighs; None if no weights are learned."""
        return self.own.max_weight

    @property
    def features(self) -> Mapping[str, int] | None:
        """The features of items that are learned from, with their weights; None if there are none."""
        named = self.own.features
        return named if isinstance(named, dict) else None

    @property
    def weighed(self) -> bool:
        """Whether weights are learned."""
        return self.max_weight is not None

    @property
    def weights(self) -> Weights | None:
        """How rows are weighed; None if no weights are learned."""
        events = self.own.event_weights
        most = self.own.max_weight
        return None if most is None else Weights(most, events if isinstance(events, dict) else None)


def in_preset(name: str | None, model: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a name, a class or an object
    """Return what a preset sets for a model; nothing if no preset is named."""
    if name is None:
        return {}
    if name not in PRESETS:
        raise WrongUse(f"there is no preset {name!r}: choose one of {', '.join(PRESETS)}")
    return _for_sparse_data(model) if name == "sparse" else PRESETS["paper"]


def settings_classes(models: Mapping[str, type[Model]] = BUILT_IN) -> dict[str, type[Settings]]:
    """Return the settings of models, of every strategy, and of the recommender itself (under "")."""
    of_models = {name: kind.settings_class for name, kind in models.items()}
    return {**of_models, **{name: kind.settings_class for name, kind in STRATEGIES.items()}, "": OwnSettings}


def _model_class(given: object) -> type[Model]:
    kind = find_model(given) if isinstance(given, str) else checked_model(given)
    taken = {*OwnSettings.model_fields, "model", "strategy", "threads", "n_jobs", "preset", "progress"}
    taken |= {name for strategy in STRATEGIES.values() for name in strategy.settings_class.model_fields}
    for name in kind.settings_class.model_fields:
        if name in taken:
            raise WrongSetting(
                f"the model {kind.name!r} has a setting `{name}`, which recommenders or strategies have: give the "
                "model's another name"
            )
    _check_strategies(kind)
    return kind


def _check_strategies(kind: type[Model]) -> None:
    """Refuse a model that names an unknown strategy, or one that it can't be learned with."""
    for name in kind.strategies:
        if name not in STRATEGIES:
            there = ", ".join(STRATEGIES)
            raise WrongSetting(
                f"the model {kind.name!r} names the strategy {name!r}, which does not exist: choose one of {there}"
            )
    if "sisa" in kind.strategies and not kind.trains_rows:
        raise WrongSetting(
            f"the model {kind.name!r} names the strategy 'sisa', which needs rows that are trained: leave it out of "
            "strategies, or return rows from train and set trains_rows"
        )


def _strategy_class(given: object) -> type[Any]:
    named = STRATEGIES.get(given) if isinstance(given, str) else given
    if isinstance(named, type) and issubclass(named, tuple(STRATEGIES.values())):
        return named
    raise WrongSetting(f"there is no strategy {given!r}: choose one of {', '.join(STRATEGIES)}")


def _with_own(given: Any, class_of: Any) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401 - a model or a strategy
    """Return the class that a name, an object or a class stands for, and the object's settings."""
    if isinstance(given, str | type):
        return class_of(given), {}
    kind = class_of(type(given))
    if not hasattr(given, "settings"):
        raise WrongSetting(f"{kind.name} was made without its settings: hand them to super().__init__ in its __init__")
    return kind, _set_in(given)


def _shared_with(strategy: Any) -> set[str]:  # noqa: ANN401 - a name, a class or an object
    """Return the settings that stay with another strategy; none with an object, which has its own."""
    return {*_strategy_class(strategy).settings_class.model_fields} if isinstance(strategy, str | type) else set()


def _set_in(given: Any) -> dict[str, Any]:  # noqa: ANN401 - a model, a strategy or anything else
    """Return the settings that an object was given."""
    found = getattr(given, "settings", None)
    return found.model_dump(exclude_unset=True) if isinstance(found, Settings) else {}


def _for_sparse_data(model: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a name, a class or an object
    """Return what the preset `sparse` sets for a model; refuse a model for which it sets nothing."""
    name = model if isinstance(model, str) else getattr(model, "name", None)
    if name not in SPARSE:
        raise WrongUse(f"the preset 'sparse' changes nothing for {name}, only for {listed(SPARSE)}: leave it out")
    return SPARSE[str(name)]


def _features_named(given: str | Sequence[str] | Mapping[str, int]) -> dict[str, int]:
    """Return the weight of each feature that is named: author,publisher or author=5,publisher=1."""
    if isinstance(given, Mapping):
        named = dict(given)
    else:
        parts = given.split(",") if isinstance(given, str) else given
        named = dict(_feature_weighed(part.strip()) for part in parts)
    if not named or "" in named or not all(isinstance(one, int) and 1 <= one <= 100 for one in named.values()):
        raise ValueError(
            "name columns of the items, each with a whole number from 1 to 100 if you like: author=3,genre"
        )
    return dict(sorted(named.items()))


def _feature_weighed(part: str) -> tuple[str, int]:
    name, sign, weight = part.rpartition("=")
    if not sign:
        return part, USUAL_FEATURE_WEIGHT
    return name.strip(), int(weight) if weight.strip().isdigit() else 0


def _own(given: Mapping[str, Any]) -> OwnSettings:
    return checked(OwnSettings, given, "a recommender")


def _rows(own: OwnSettings, learner: Model, learning: Strategy) -> RowsFrom:
    """Return where rows come from; refuse settings that contradict that."""
    at_risk = own.risk_threshold is not None and not learner.has_rows  # users at risk then shape nothing
    needed = own.anchors < 1 or at_risk or not learner.trains_rows
    rows: RowsFrom = own.rows or ("solved" if needed else "stage")
    if learning.name == "sisa" and (rows == "solved" or needed):
        raise WrongSetting(
            'sisa has several models and rows are solved for one: give `rows="stage"` and `anchors=1`, or another '
            "`strategy`"
        )
    if rows == "stage" and needed:
        raise WrongSetting(
            'users who shape nothing, and those of a model such as als, have solved rows: give `rows="solved"`'
        )
    if own.risk_threshold is not None:
        _refuse_going_last(rows, learner, learning)
    return rows


def _refuse_going_last(rows: RowsFrom, learner: Model, learning: Strategy) -> None:
    """Refuse users at risk in a last group where there is none, or where it would be computed again."""
    if rows == "stage" and learning.name == "retrain":
        laser = ', or `strategy="laser"`' if "laser" in learner.strategies else ""
        raise WrongSetting(f"all are trained at once, so nobody can go last: give `anchors` below 1{laser}")
    if learning.policy == "regroup":
        raise WrongSetting('risk is not kept, so groups by it can\'t be computed again: give `policy="fixed"`')


def _no_such_strategy(name: str, kind: type[Model], shown: str) -> WrongSetting:
    others = [other for other, model in BUILT_IN.items() if name in model.strategies]
    return WrongSetting(
        f'{shown} can be learned with {listed(kind.strategies)} only: leave out `strategy="{name}"`'
        + (f', or choose `model="{others[0]}"`' if others else "")
    )


def _foreign_setting(name: str, kind: type[Model], shown: str, strategy: str, there: Mapping[str, Any]) -> WrongSetting:
    """Return the error for a setting that neither model nor strategy has: whose it is, or the nearest name."""
    owner, whose = _owner(name, kind, shown, strategy)
    if not whose:
        every = {one: None for settings in settings_classes().values() for one in settings.model_fields}
        near = nearest(name, {**there, **every})
        owner, whose = _owner(near, kind, shown, strategy)
        if near in there or not whose:
            return no_such_setting(name, shown, there)
        whose = f"did you mean `{near}`? I{whose[1:]}"
    return WrongSetting(f"there is no setting `{name}` in {owner}: {whose}", f"{owner} has no option `{name}`: {whose}")


def _owner(name: str, kind: type[Model], shown: str, strategy: str) -> tuple[str, str]:
    """Return whether model or strategy lacks a setting, and whose it is with what to give ("" if nobody's)."""
    owners = [one for one in STRATEGIES if name in STRATEGIES[one].settings_class.model_fields]
    having = [one for one, model in BUILT_IN.items() if name in model.settings_class.model_fields]
    near = [one for one in owners if one in kind.strategies]
    if near:
        return strategy, _belonging(f"the {_strategies(owners)}", f'`strategy="{near[0]}"`')
    if owners:
        having = [one for one, model in BUILT_IN.items() if set(owners) & set(model.strategies)]
        usual = BUILT_IN[having[0]].strategies[0] in owners
        remedy = f'`model="{having[0]}"`' + ("" if usual else f' and `strategy="{owners[0]}"`')
        return shown, _belonging(f"the {_strategies(owners)} of {listed(having)}", remedy)
    return shown, _belonging(listed(having), f'`model="{having[0]}"`') if having else ""


def _belonging(others: str, remedy: str) -> str:
    return f"it belongs to {others}; give {remedy}, or leave it out"


def _strategies(names: Sequence[str]) -> str:
    return f"{'strategy' if len(names) == 1 else 'strategies'} {listed(names)}"
