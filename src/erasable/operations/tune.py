"""Tune: search for settings of a model on validation rows inside the training rows; test rows are never seen."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from erasable.chain.settings import USUAL_MODEL, Config
from erasable.errors import DataRefused, Refused, WrongUse
from erasable.evaluation.utility import metric_named
from erasable.models.registry import BUILT_IN
from erasable.models.settings import in_our_words
from erasable.operations._study import Study
from erasable.operations._validation import Validation
from erasable.operations.prepare import Inputs, read_rows
from erasable.operations.work import Work
from erasable.proof import coarse
from erasable.wording import listed

_NOT_TUNED = ("features", "risk_threshold", "chosen_on")  # they need more than interactions, or are what tune says
_HELD_OUT = ("holdout", "split", "split_time")  # which rows are test rows is said again where the outcome is measured
_FURTHER = 2  # times as many trials are begun, at most, where some can't be learned


@dataclass(frozen=True)
class SettingsSearch:
    """How many trials, what they are to raise, and where they are recorded."""

    study: Path
    trials: int = 30
    objective: str = "ndcg@10"


@dataclass(frozen=True)
class Tuned:
    """The best settings that `tune` has found, and what they rest on.

    Parameters
    ----------
    model : str
        The name of the model.
    settings : dict of str to Any
        The settings that were given, except what to hold out, and those that were searched and are not the model's
        defaults.
    score : float
        Their score on validation rows.
    usual : float or None
        The score of the defaults there.
    objective : str
        The metric.
    trials : int
        How many settings have a score.
    users, interactions : str
        About how many there were.
    day : str
        When it was found.

    Examples
    --------
    >>> found = Tuned("als", {"factors": 32}, 0.31, 0.3, "ndcg@10", 30, "< 1,000", "< 10,000", "2026-11-18")
    >>> found.as_settings()
    {'model': 'als', 'factors': 32, 'chosen_on': 'data'}
    """

    model: str
    settings: dict[str, Any]
    score: float
    usual: float | None
    objective: str
    trials: int
    users: str
    interactions: str
    day: str

    def as_settings(self) -> dict[str, Any]:
        """Return the settings for `Recommender`, which say that they were chosen on data."""
        return {"model": self.model, **self.settings, "chosen_on": "data"}

    def as_toml(self) -> str:
        """Return a file of settings for `learn --config`."""
        lines = [
            f"# Chosen on data on {self.day}: the best of {self.trials} trials by {self.objective} on validation rows",
            f"# ({self.score:.4f}; the defaults: {'not measured' if self.usual is None else f'{self.usual:.4f}'}).",
            f"# It rests on {self.interactions} interactions of {self.users} people, so these settings are a trace of",
            '# their data. Certificates of what is learned with chosen_on = "data" say so.',
            f'model = "{self.model}"',
            *as_lines(self.settings),
            'chosen_on = "data"',
        ]
        return "\n".join(lines) + "\n"


def as_lines(settings: Mapping[str, Any]) -> list[str]:
    """Return settings as lines of TOML.

    >>> as_lines({"event_weights": {"view": 1, "buy": 3}, "rating_scale": [1.0, 5.0]})
    ['event_weights = {"view" = 1, "buy" = 3}', 'rating_scale = [1.0, 5.0]']
    """
    return [f"{name} = {_as_toml(value)}" for name, value in settings.items()]


def _as_toml(value: Any) -> str:  # noqa: ANN401 - a value of a setting of many types
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_as_toml(name)} = {_as_toml(part)}" for name, part in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)  # TOML has no pairs of escapes for one character


def tune(
    source: Any,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    settings: Mapping[str, Any],
    search: SettingsSearch,
    inputs: Inputs,
    work: Work,
) -> Tuned:
    """Search for settings of a model; the test rows that the settings name are set aside first.

    Settings that are given stay as they are, and the others that the model's `searched` names are searched.
    """
    given, objective = in_our_words(settings), str(metric_named(search.objective))
    if search.trials < 1:
        raise WrongUse(f"{search.trials} trials find nothing: give 1 at least")
    if not isinstance(given.get("model", USUAL_MODEL), str):
        raise WrongUse("a model is tuned by its name: give the name, and its settings beside it")
    foreign = next((name for name in _NOT_TUNED if given.get(name) is not None), None)
    if foreign is not None:
        raise WrongUse(f"`{foreign}` is not for tuning: leave it out, and give it when you learn")
    config = Config.of({"model": USUAL_MODEL, **given})
    kind = _narrowed(config, given)
    rows = read_rows(source, config, inputs, work)
    config = config.changed(**rows.settings) if rows.settings else config
    validation = Validation.inside(rows, config, work)
    users, interactions = (coarse.count(number) for number in (len(rows.interactions.users), len(rows.interactions)))
    size = {"users": users, "interactions": interactions, "checksum": validation.checksum()}
    facts = {**config.flat(), "objective": objective, **size}
    study = Study(search.study, kind, facts, config.seed)
    work.reporter.note(
        f"trials are in {search.study}: settings and scores, nobody's data; the same command goes on from there"
    )
    with work.reporter.track("tuning", search.trials) as advance:
        advance(min(study.finished, search.trials))
        while study.finished < search.trials and study.tried < _FURTHER * search.trials:
            trial, proposed = study.propose()
            study.tell(trial, _score(validation, config, proposed, objective))
            advance(1)
    if not study.finished:
        raise Refused(f"no trial of {config.model} could be learned: compare models first, to see why")
    best, score = study.best()
    usual = kind()
    changed = {name: value for name, value in best.items() if value not in (None, getattr(usual, name))}
    return Tuned(
        model=config.model,
        settings={**_fixed(config, given), **changed},
        score=score,
        usual=study.first(),
        objective=objective,
        trials=study.finished,
        users=users,
        interactions=interactions,
        day=datetime.now(UTC).date().isoformat(),
    )


def _fixed(config: Config, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that were given, those in a strategy's object included, except what to hold out."""
    whole, names = config.flat(), dict.fromkeys([*given, *sorted(config.learning.settings.model_fields_set)])
    fixed = {name: whole.get(name) for name in names if name not in (*_HELD_OUT, "model")}
    return {name: value for name, value in fixed.items() if value is not None}


def _narrowed(config: Config, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a class of settings
    """Return the model's settings class, searched only in what is not given; refuse a model with nothing to search."""
    kind = config.learner.settings_class
    if not kind.searched:
        can = listed([name for name, model in BUILT_IN.items() if model.settings_class.searched], "or")
        raise WrongUse(
            f"the model {config.model} says of none of its settings what to search (`searched` of {kind.__name__}): "
            f"choose {can}"
        )
    left = {name: space for name, space in kind.searched.items() if name not in given}
    if not left:
        raise WrongUse(f"all settings that {config.model} searches are given: leave one of them out")
    return type(kind.__name__, (kind,), {"searched": left, "__module__": kind.__module__, "__doc__": kind.__doc__})


def _score(validation: Validation, config: Config, proposed: Mapping[str, Any], objective: str) -> float | None:
    """Return the score of a proposal; None if it can't be learned."""
    try:
        return validation.score(config.changed(**proposed), objective)
    except (Refused, DataRefused):
        return None
