"""`erasable learn`."""

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.chain.settings import USUAL_MODEL, Config, PresetName
from erasable.cli.options import (
    COLUMN_OPTIONS,
    CONFIG_OPTIONS,
    EXECUTOR,
    LEARNING,
    BadRows,
    Issuer,
    Json,
    Quiet,
    Sectioned,
    Threads,
    Wait,
    columns_from,
    config_options,
    do_not_learn_from,
    models_that_load,
    of_another_package,
    read_config,
    settings_options,
    work_with,
)
from erasable.cli.output import of_newcomers, print_json, print_line
from erasable.data.splits import SplitSettings
from erasable.errors import WrongUse
from erasable.models.registry import BUILT_IN
from erasable.operations.again import LearnedAgain, learn_again
from erasable.operations.declared_items import read_declared
from erasable.operations.learn import Learned, LearnedMore, learn, learn_more
from erasable.operations.prepare import Inputs
from erasable.operations.recording import name_issuer
from erasable.operations.storage import DiskStorage
from erasable.wording import counted, duration, listed

NAME = "learn"


def _learn(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="CSV, TSV, ::, .inter or Parquet: a file, a folder, a pattern in quotes ('exports/*.csv.gz'), or a "
            "URL (s3://, gs://, az://, file://). With --again it may be left out.",
            show_default=False,
        ),
    ] = None,
    into: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="The workspace folder: a new one, or with --more or --again an existing one.",
            show_default=False,
        ),
    ] = ...,  # type: ignore[assignment] # typer's mark of what must be given
    config: Annotated[Path | None, typer.Option(help="A TOML or JSON file with settings; options win over it.")] = None,
    preset: Annotated[
        PresetName | None,
        typer.Option(
            help="Settings that belong together: sparse for data with few of all pairs, paper is LASER as published. "
            "Other options win."
        ),
    ] = None,
    groups_from: Annotated[
        Path | None,
        typer.Option(help="Take groups and order from a workspace or a CSV (user_id, group, position from 0)."),
    ] = None,
    catalogue: Annotated[
        Path | None,
        typer.Option(
            help="Declare the items (else those that people have): a file with one id a line, or a workspace."
        ),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Declare attributes of items, for recommend --where and --features: CSV or Parquet, one row an item; "
            "nothing about people.",
        ),
    ] = None,
    on_bad_row: BadRows = "refuse",
    more: Annotated[
        bool, typer.Option("--more", help="Learn more into an existing workspace; its settings stay.")
    ] = False,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Learn an existing workspace anew from what it holds, and from DATA; settings that are given change.",
        ),
    ] = False,
    readable_by_group: Annotated[
        bool, typer.Option("--readable-by-group", help="Let your group read the files of the workspace, not only you.")
    ] = False,
    wait: Wait = False,
    issuer: Issuer = None,
    threads: Threads = None,
    json_output: Json = False,
    quiet: Quiet = False,
    settings: dict[str, Any] | None = None,
    columns: dict[str, str] | None = None,
    listed: dict[str, Any] | None = None,
    executor: dict[str, Any] | None = None,
) -> None:
    """Learn a recommender from a table of interactions."""
    work = work_with(threads, quiet or json_output, executor)
    storage = DiskStorage(into, waiting=work.reporter if wait else None)
    attributes = None if items is None else read_declared(items)
    named, about_list, settings = columns or {}, _about_list(listed or {}), settings or {}
    inputs = Inputs(columns_from(named), groups_from, catalogue, on_bad_row=on_bad_row, items=attributes, **about_list)
    _refuse_together(more, again, readable_by_group, wait)
    if data is None and not (again or (more and items is not None)):
        raise WrongUse("there is nothing to learn from: name a file, a folder, a pattern or a URL; or give --again")
    learned: Learned | LearnedMore | LearnedAgain
    chosen: Config | None = None
    if more:
        given = {name: value for name, value in (("preset", preset), ("readable_by_group", readable_by_group)) if value}
        _refuse_settings({**given, **settings}, config)
        learned = learn_more(storage, data, inputs, work)
    else:
        settings, named_in_file = _read_settings(config, settings)
        columns_named = columns_from({**named_in_file, **named})
        inputs = replace(inputs, columns=columns_named, readable_by_group=readable_by_group)
        if again:
            learned = learn_again(storage, data, {"preset": preset, **settings}, inputs, work)
        else:
            chosen = Config.of(settings, preset)
            learned = learn(data, into, chosen, inputs, work)
    if issuer is not None:
        name_issuer(storage, issuer)
    if json_output:
        print_json(asdict(learned))
    else:
        _tell(learned, into, chosen)


def _refuse_together(more: bool, again: bool, readable_by_group: bool, wait: bool) -> None:
    """Refuse options that contradict each other."""
    if again and (more or readable_by_group):
        raise WrongUse("--again learns anew what is held: leave out --more and --readable-by-group")
    if wait and not (again or more):
        raise WrongUse("a new workspace has no other writer: --wait is for --more and --again")


def _read_settings(config: Path | None, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings that are given, also those in the file of settings, and the columns that the file names."""
    brought = of_another_package(given.get("model") or read_config(config).get("model"))
    from_file = read_config(config, {*config_options({**BUILT_IN, **brought}), *COLUMN_OPTIONS})
    columns = {name: from_file.pop(name) for name in COLUMN_OPTIONS if name in from_file}
    return {**from_file, **given}, columns


command = settings_options(CONFIG_OPTIONS, COLUMN_OPTIONS, LEARNING, EXECUTOR)(_learn)


class LearnCommand(Sectioned):
    """`learn` with the options of the model that is named: only that model is imported, or all of them for the help."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:  # noqa: ANN401 - typer's own
        """Parse the arguments with the options of their model; several files are refused with what to give instead."""
        files = [word for word in args if Path(word).is_file()]
        try:
            return self._context(info_name, args, parent, **extra)
        except Exception as error:  # typer has no name for it
            if "unexpected extra argument" not in getattr(error, "message", "") or len(files) < 2:
                raise
            raise WrongUse(
                f"{len(files)} files are given: name their folder, or put a pattern in quotes ('exports/*.csv.gz')"
            ) from None

    def _context(self, info_name: str | None, args: list[str], parent: Any, **extra: Any) -> Any:  # noqa: ANN401 - typer's own
        chosen = _model_in(args)
        helping = parent is not None and not {*args}.isdisjoint(parent.help_option_names)
        further = models_that_load() if helping else of_another_package(chosen)
        if not further.keys() - BUILT_IN.keys():
            return super().make_context(info_name, args, parent, **extra)
        options = config_options({**BUILT_IN, **further}, chosen)
        fresh = typer.Typer(add_completion=False, rich_markup_mode=None)
        fresh.command(NAME, cls=Sectioned)(settings_options(options, COLUMN_OPTIONS, LEARNING, EXECUTOR)(_learn))
        return typer.main.get_command(fresh).make_context(info_name, args, parent, **extra)


COMMAND_CLASS = LearnCommand


def _model_in(args: Sequence[str]) -> str:
    """Return the model that --model names, or else the file of settings."""
    given = {}
    for place, word in enumerate(args):
        name, sign, value = word.partition("=")
        if name in ("--model", "--config"):
            given[name] = value if sign else "".join(args[place + 1 : place + 2])
    if "--model" in given:
        return given["--model"]
    with suppress(WrongUse):  # what is wrong with the file is said once the other arguments are parsed
        named = read_config(Path(given["--config"])).get("model") if "--config" in given else None
        return named if isinstance(named, str) else USUAL_MODEL
    return USUAL_MODEL


def _tell(learned: Learned | LearnedMore | LearnedAgain, into: Path, chosen: Config | None) -> None:
    if isinstance(learned, LearnedAgain):
        _tell_again(learned, into)
    elif isinstance(learned, LearnedMore):
        _tell_more(learned, into)
    elif chosen is not None:
        _tell_learned(learned, into, chosen.own)


def _tell_learned(learned: Learned, into: Path, settings: SplitSettings) -> None:
    in_groups = f"in {counted(learned.groups, 'group')} " if learned.groups > 1 else ""
    print_line(
        f"learned {counted(learned.users, 'user')}, {counted(learned.items, 'item')}, "
        f"{counted(learned.interactions, 'interaction')} {in_groups}({duration(learned.seconds)})"
    )
    if learned.held_out:
        by = {"random": "--holdout", "time": f"--split-time {settings.split_time}"}
        how = by.get(settings.split, f"--split {settings.split}")
        print_line(f"of these, held out and not learned from: {counted(learned.held_out, 'interaction')} ({how})")
    _tell_input(learned)
    print_line(f"the workspace is {into}; next: erasable recommend {shlex.quote(str(into))} --user U")


def _tell_input(learned: Learned | LearnedMore) -> None:
    for sentence in learned.in_words():
        print_line(sentence)
    _tell_of_list(learned)


def _refuse_settings(settings: Mapping[str, Any], config: Path | None) -> None:
    if config is not None:
        raise WrongUse("--more keeps the settings of the workspace: leave out --config")
    for name in settings:
        raise WrongUse(f"--more keeps the settings of the workspace: leave out --{name.replace('_', '-')}")


def _tell_more(learned: LearnedMore, into: Path) -> None:
    again = f"{learned.stages_rerun} of {learned.stages_total} stages" if learned.stages_total > 1 else "the model"
    trained = f"trained {again} again" if learned.stages_rerun else "trained nothing again"
    print_line(
        f"learned {counted(learned.users_added, 'more user')}, {counted(learned.items_added, 'more item')} and "
        f"{counted(learned.interactions_added, 'more interaction')}: {trained} "
        f"({duration(learned.seconds)})"
    )
    if learned.columns:  # else only items were given
        _tell_input(learned)
    if learned.items_unknown:
        print_line(of_newcomers(learned.items_unknown, into))
    print_line(
        f"{into} now knows {counted(learned.users, 'user')}, {counted(learned.items, 'item')} and "
        f"{counted(learned.interactions, 'interaction')}"
    )


def _tell_again(learned: LearnedAgain, into: Path) -> None:
    print_line(
        f"learned anew {counted(learned.users, 'user')}, {counted(learned.items, 'item')}, "
        f"{counted(learned.interactions, 'interaction')} with {learned.model} "
        f"({learned.stages_rerun} of {counted(learned.stages_total, 'stage')} trained, {duration(learned.seconds)})"
    )
    _tell_of_list(learned)
    print_line(f"certificates, log and requests of {into} stay as they were")


def _about_list(listed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the options say about the do-not-learn list."""
    return {
        "do_not_learn": do_not_learn_from(listed),
        "without_do_not_learn": listed.get("no_do_not_learn", False),
        "readmit": tuple(dict.fromkeys(listed.get("readmit") or ())),
    }


def _tell_of_list(learned: Learned | LearnedMore | LearnedAgain) -> None:
    if learned.left_out.total:
        people, single = learned.left_out.users, learned.left_out.interactions
        named = [counted(people, "person", "people")] if people else []
        named += [counted(single, "single interaction")] if single else []
        print_line(f"left out {listed(named)} on the do-not-learn list (--readmit U if someone really comes back)")
    if learned.readmitted:
        print_line(f"took {counted(learned.readmitted, 'person', 'people')} off the do-not-learn list")
    for note in learned.notes:
        print_line(note)
