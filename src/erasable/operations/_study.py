"""A study: the settings that were tried and their scores, in a file outside workspaces; Optuna proposes the next.

The file holds settings and scores and no person. Finished trials stay in it, so a search that was stopped goes on.
"""

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from erasable.errors import WrongUse
from erasable.extensions import install_command
from erasable.models.settings import Settings
from erasable.workspace.files import MANIFEST

_NAME, _FACTS = "erasable", "facts"
_NO_SCORE = "could not be learned"


class Study:
    """Proposes settings; the same file, facts and finished trials propose the same next."""

    def __init__(self, file: Path, settings: type[Settings], facts: Mapping[str, Any], seed: int) -> None:
        self._optuna = _optuna()
        self._settings = settings
        self._seed = seed
        if any((folder / MANIFEST).exists() for folder in file.resolve().parents):
            raise WrongUse(f"{file}: a study in a workspace would outlive the people it shows: name a file elsewhere")
        try:
            self._study = self._opened(file)
        except OSError as error:
            raise WrongUse(f"{file}: can't be written ({error.strerror}): name another file for the study") from None
        except (ValueError, KeyError):
            raise WrongUse(f"{file}: is no study: name another file") from None
        self._check(file, json.dumps(dict(facts), sort_keys=True))

    def _opened(self, file: Path) -> Any:  # noqa: ANN401 - Optuna's own
        journal = self._optuna.storages.journal
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the journal is called experimental
            storage = self._optuna.storages.JournalStorage(journal.JournalFileBackend(str(file)))
        return self._optuna.create_study(storage=storage, study_name=_NAME, direction="maximize", load_if_exists=True)

    def _check(self, file: Path, facts: str) -> None:
        """Refuse a file of another search; what was begun and never finished counts for nothing."""
        before = self._study.user_attrs.get(_FACTS)
        if before is None:
            self._study.set_user_attr(_FACTS, facts)
        elif before != facts:
            raise WrongUse(f"{file}: holds a search with other data or settings: name another file, or remove it")
        states = self._optuna.trial.TrialState
        for trial in self._study.get_trials(deepcopy=False, states=(states.RUNNING,)):
            self._study.tell(trial.number, state=states.FAIL)

    @property
    def finished(self) -> int:
        """How many trials have a score."""
        return len(self._scored())

    @property
    def tried(self) -> int:
        """How many trials are over, with a score or without; those that were interrupted do not count."""
        return len(self._over())

    def _over(self) -> list[Any]:
        trials = self._study.get_trials(deepcopy=False)
        complete = self._optuna.trial.TrialState.COMPLETE
        return [trial for trial in trials if trial.state == complete or trial.user_attrs.get(_NO_SCORE)]

    def _scored(self) -> list[Any]:
        states = (self._optuna.trial.TrialState.COMPLETE,)
        found: list[Any] = self._study.get_trials(deepcopy=False, states=states)
        return found

    def propose(self) -> tuple[Any, dict[str, Any]]:
        """Return a new trial and its settings: the defaults first, then what Optuna finds promising."""
        usual = self._settings()
        waiting = self._study.get_trials(deepcopy=False, states=(self._optuna.trial.TrialState.WAITING,))
        if not self.tried and not waiting:
            self._study.enqueue_trial({name: getattr(usual, name) for name in self._settings.searched})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # parts of the sampler are called experimental
            self._study.sampler = self._optuna.samplers.TPESampler(seed=(self._seed + self.tried) % 2**32)
        trial = self._study.ask()
        return trial, {name: self._suggested(trial, name) for name in self._settings.searched}

    def _suggested(self, trial: Any, name: str) -> Any:  # noqa: ANN401 - Optuna's own
        space = self._settings.searched[name]
        if isinstance(space, list):
            return trial.suggest_categorical(name, space)
        low, high = space
        if isinstance(low, int) and isinstance(high, int):
            return trial.suggest_int(name, low, high, log=True)
        return trial.suggest_float(name, low, high, log=True)

    def tell(self, trial: Any, score: float | None) -> None:  # noqa: ANN401 - Optuna's own
        """Record the score of a trial; None if it could not be learned."""
        states = self._optuna.trial.TrialState
        if score is None:
            trial.set_user_attr(_NO_SCORE, True)
            self._study.tell(trial, state=states.FAIL)
        else:
            self._study.tell(trial, score)

    def best(self) -> tuple[dict[str, Any], float]:
        """Return the settings with the highest score, of several the first, and that score."""
        found = max(self._scored(), key=lambda trial: (trial.value, -trial.number))
        return dict(found.params), float(found.value)

    def first(self) -> float | None:
        """Return the score of the defaults."""
        first = next(iter(self._over()), None)
        return None if first is None or first.value is None else float(first.value)


def _optuna() -> Any:  # noqa: ANN401 - untyped here
    """Return Optuna; if it is missing, the error says how to install it."""
    try:
        import optuna
    except ImportError:
        raise WrongUse(f"tuning needs Optuna: {install_command('tune')}") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
