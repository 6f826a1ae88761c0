"""`compare` and `tune` as the library offers them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from erasable.data.values import OnBadRow
from erasable.models.base import Model
from erasable.models.settings import in_our_words
from erasable.operations.compare import USUAL_MODELS, ModelComparison, with_test_rows
from erasable.operations.compare import compare as compared
from erasable.operations.prepare import NO_INPUTS, Column, Inputs, named_inputs
from erasable.operations.tune import SettingsSearch, Tuned
from erasable.operations.tune import tune as tuned
from erasable.operations.work import Work, available_cores
from erasable.progress import LibraryReporter


def compare(
    table: Any,  # noqa: ANN401 - any table or path
    models: Sequence[str | Model | type[Model]] = USUAL_MODELS,
    inputs: Inputs = NO_INPUTS,
    *,
    quick: bool = False,
    user: Column = None,
    item: Column = None,
    rating: Column = None,
    time: Column = None,
    weight: Column = None,
    event: Column = None,
    on_bad_row: OnBadRow | None = None,
    threads: int | None = None,
    progress: bool = True,
    **settings: Any,  # noqa: ANN401 - settings of many types
) -> ModelComparison:
    """Learn a table with several models, and compare their quality and what learning and forgetting cost.

    Each model runs in a process of its own, one after the other. Nothing is stored.

    Parameters
    ----------
    table : table, path or URL
        Interactions, as for `Recommender.fit`; they are read once.
    models : sequence of str or Model
        Names, names with settings such as "als:factors=128:anchors=0.3", or objects such as `ALS(factors=128)`.
    inputs : Inputs, optional
        The columns as an object.
    quick : bool, default False
        Whether quality is measured on 1,000 people at most, three people are forgotten instead of nine, and models
        that are trained by steps get fewer epochs.
    user, item, rating, time, weight, event : str or int, optional
        The columns, as for `Recommender.fit`.
    on_bad_row : {"refuse", "skip"}, optional
        Whether unusable rows are refused, which is the default, or left out and counted.
    threads : int, optional
        How many threads to use, all cores if not given.
    progress : bool, default True
        Whether a progress bar is shown in a terminal or a notebook.
    **settings
        Settings that all models share, such as `holdout` (0.1 if not given), `min_interactions` and `seed`.

    Returns
    -------
    ModelComparison
        A table with a row for each model, and how it was measured.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"user": [1, 1, 1, 2, 2, 2, 3, 3, 3], "item": list("abcabdacd")})
    >>> found = compare(table, ["ease", "popular"], holdout=0.4, threads=1)
    >>> found.table["model"].to_pylist(), found.facts["users"]
    (['ease', 'popular'], 3)
    """
    columns = {"user": user, "item": item, "rating": rating, "time": time, "weight": weight, "event": event}
    named = named_inputs(inputs, columns, on_bad_row)
    return compared(table, models, in_our_words(settings), named, _work(threads, progress), quick)


def tune(
    table: Any,  # noqa: ANN401 - any table or path
    model: str,
    study: str | Path,
    inputs: Inputs = NO_INPUTS,
    *,
    trials: int = 30,
    objective: str = "ndcg@10",
    user: Column = None,
    item: Column = None,
    rating: Column = None,
    time: Column = None,
    weight: Column = None,
    event: Column = None,
    on_bad_row: OnBadRow | None = None,
    threads: int | None = None,
    progress: bool = True,
    **settings: Any,  # noqa: ANN401 - settings of many types
) -> Tuned:
    """Search for settings of a model on validation rows inside the training rows; test rows are never looked at.

    It needs the extra `tune`. What was tried is recorded in the study; the same call goes on from there.

    Parameters
    ----------
    table : table, path or URL
        Interactions, as for `Recommender.fit`.
    model : str
        The name of the model.
    study : path
        The file in which trials are recorded: settings and scores, nobody's data. It lies in no workspace.
    inputs : Inputs, optional
        The columns as an object.
    trials : int, default 30
        How many settings are tried, those of earlier calls included.
    objective : str, default "ndcg@10"
        The metric to raise.
    user, item, rating, time, weight, event : str or int, optional
        The columns, as for `Recommender.fit`.
    on_bad_row : {"refuse", "skip"}, optional
        Whether unusable rows are refused, which is the default, or left out and counted.
    threads : int, optional
        How many threads to use, all cores if not given.
    progress : bool, default True
        Whether a progress bar is shown in a terminal or a notebook.
    **settings
        Settings that stay as given, and which rows are test rows: `holdout` (0.1 if not given) or `split`.

    Returns
    -------
    Tuned
        The best settings; `Recommender(**found.as_settings())` learns with them.

    Examples
    --------
    >>> import pyarrow as pa, tempfile
    >>> table = pa.table({"user": [n // 4 for n in range(40)], "item": [n * 7 % 12 for n in range(40)]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = tune(table, "als", f"{folder}/als.study", trials=2, factors=4, epochs=1, threads=1)
    >>> found.trials, found.as_settings()["factors"], found.as_settings()["chosen_on"]
    (2, 4, 'data')
    """
    columns = {"user": user, "item": item, "rating": rating, "time": time, "weight": weight, "event": event}
    named = named_inputs(inputs, columns, on_bad_row)
    given: Mapping[str, Any] = with_test_rows({"model": model, **in_our_words(settings)})
    search = SettingsSearch(Path(study), trials, objective)
    return tuned(table, given, search, named, _work(threads, progress))


def _work(threads: int | None, progress: bool) -> Work:
    return Work(available_cores() if threads is None else threads, LibraryReporter(progress))
