"""Every sentence of a certificate stands under its condition: states of many kinds, and what may be said of each."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from erasable.chain import Config, Dataset
from erasable.data import Catalogue
from erasable.operations import DiskStorage, Inputs, MemoryStorage, Outside, Storage, Work, forget, learn, learn_more
from erasable.operations.learn import learn_into
from erasable.proof import Certificate, certificate_page, read_certificate
from erasable.proof.issuing import catalogue_origin, does_not_prove
from erasable.requests import Request
from kit.choosing import cases
from kit.fitting import fitting
from kit.handmade import handmade

ITEMS = "abcdefgh"
PERSON, LATER = "ann", "zoe"
NOTHING = Outside()
CHAIN = {"groups": 2, "epochs": 2, "batch": 32}


def table(users: dict[str, str]) -> pa.Table:
    rows = [(user, item, 1 + place % 5) for user, items in users.items() for place, item in enumerate(items)]
    names, items, ratings = zip(*rows, strict=True)
    return pa.table({"user_id": names, "item_id": items, "rating": ratings})


SHOP = table({name: ITEMS[: 4 + place % 5] for place, name in enumerate((PERSON, "bob", "cat", "dan", "eve", "fay"))})
MORE = table({LATER: ("a", "b", "only-theirs")})


@dataclass(frozen=True)
class Case:
    """A way to come to a state, and what of it the sentences depend on."""

    settings: dict[str, Any]
    inputs: Callable[[Path], Inputs] = lambda _: Inputs()
    more: bool = False
    memory: bool = False


def declared(folder: Path) -> Inputs:
    (folder / "items").write_text("\n".join((*ITEMS, "only-theirs")))
    return Inputs(catalogue=folder / "items")


def given(folder: Path) -> Inputs:
    names = SHOP["user_id"].to_pylist()
    lines = [f"{user},{place % 2},{place % 2}" for place, user in enumerate(dict.fromkeys(names))]
    (folder / "groups.csv").write_text("\n".join(["user_id,group,position", *lines]))
    return Inputs(groups_from=folder / "groups.csv")


CASES = {
    "als": Case({"model": "als", "factors": 2}),
    "als, learned more": Case({"model": "als", "factors": 2}, more=True),
    "als, all declared": Case({"model": "als", "factors": 2, "rating_scale": (1, 5)}, declared, more=True),
    "als, anchors": Case({"model": "als", "factors": 2, "anchors": 0.5, "holdout": 0.3}, more=True),
    "als, filter": Case({"model": "als", "factors": 2, "min_interactions": 2}),
    "als, in memory": Case({"model": "als", "factors": 2, "holdout": 0.3}, memory=True),
    "ease": Case({"model": "ease"}),
    "nmf, fixed": Case(CHAIN, more=True),
    "nmf, fixed, filter": Case({**CHAIN, "min_interactions": 2}),
    "nmf, given groups": Case(CHAIN, given),
    "nmf, independent": Case({**CHAIN, "grouping": "independent", "holdout": 0.3}, more=True),
    "nmf, independent, filter": Case({**CHAIN, "grouping": "independent", "min_interactions": 2}),
    "nmf, regroup": Case({**CHAIN, "policy": "regroup"}),
    "nmf, regroup, filter": Case({**CHAIN, "policy": "regroup", "min_interactions": 2}),
    "nmf, solved rows": Case({**CHAIN, "rows": "solved"}),
    "nmf, one group": Case({**CHAIN, "groups": 1}),
    "sisa": Case({**CHAIN, "strategy": "sisa"}, memory=True),
}


def learned(case: Case, folder: Path) -> Storage:
    inputs, config = case.inputs(folder), Config(**fitting(case.settings))
    if case.memory:
        storage: Storage = MemoryStorage()
        with storage.writing() as session:
            learn_into(session, SHOP, config, inputs, Work(1))
    else:
        learn(SHOP, folder / "shop", config, inputs, Work(1))
        storage = DiskStorage(folder / "shop")
    if case.more:
        learn_more(storage, MORE, work=Work(1))
    return storage


def certified(storage: Storage, *requests: Request, outside: Outside = NOTHING) -> tuple[list[Certificate], Dataset]:
    """Forget, and return the certificates with what is known after."""
    done = forget(storage, requests, work=Work(1), outside=outside)
    with storage.reading() as session:
        dataset, issued = session.state().dataset, session.issued()
        list(dataset.groups)
        return [read_certificate(issued[Path(place).name]) for place in done.certificates], dataset


QUICK = (
    *("als, all declared", "als, in memory", "ease", "nmf, fixed, filter", "nmf, given groups", "nmf, independent"),
    *("nmf, regroup", "sisa"),
)
"""Each policy, each model, with and without filter, declared items, what came later, and files."""


@pytest.fixture(params=cases(CASES, QUICK))
def case(request) -> Case:
    return request.param


@pytest.fixture
def stated(case, tmp_path) -> tuple[Case, dict[str, Any], Dataset, str]:
    """A case, what its certificate says, what is known, and the page as text."""
    (certificate,), dataset = certified(learned(case, tmp_path), Request(LATER if case.more else PERSON))
    return case, json.loads(certificate.content), dataset, certificate_page(certificate).decode()


def test_each_sentence_is_there_if_and_only_if_its_condition_holds(stated):
    case, said, dataset, page = stated
    config = dataset.config
    filtered, grouped = dataset.kept_items is not None, config.groups > 1
    assert filtered == ("min_interactions" in case.settings)
    conditions = {
        "The groups and their order were given": grouped and config.grouping == "given",
        "The groups and their order were decided before": grouped and _decided(config) and not filtered,
        "The groups, their order and the filter were decided before": grouped and _decided(config) and filtered,
        "The filter was decided before": filtered and not (grouped and _decided(config)) and config.policy != "regroup",
        "catalogue": False,
        "The rating scale was not declared": config.rating_scale is None,
        "copies outside this workspace": not case.memory,
        "copies outside this recommender": case.memory,
        "The signature shows that nothing was changed since": True,
    }
    assert {text: text in said["does_not_prove"] for text in conditions} == conditions
    proved = {
        "in groups as the policy says": grouped,
        "`erasable verify`": not case.memory,
        "`Recommender.verify`": case.memory,
        "the files of the workspace were searched": not case.memory,
    }
    assert {text: text in said["proves"] for text in proved} == proved
    meant = {
        "follows from that person's own id": config.policy == "independent",
        "were decided anew without the erased data": config.policy == "regroup" and grouped,
        "The filter was decided anew without": config.policy == "regroup" and filtered and not grouped,
        "There are no groups to train in turn and no filter": not grouped and not filtered,
        "filter": filtered or not grouped,
    }
    assert {text: text in said["policy_means"] for text in meant} == meant
    assert ("The recommender was held in memory" in page) == case.memory
    assert ("How well it recommends" in page) == bool(len(dataset.held_out)) == (said["utility"] is not None)


def _decided(config: Config) -> bool:
    return config.policy == "fixed" and config.grouping != "given"


def test_where_items_come_from_is_so(stated):
    case, said, dataset, _ = stated
    assert said["catalogue"]["declared"] == (case.inputs is declared)
    assert (said["catalogue"]["origin"] == "declared") == (case.inputs is declared)
    assert ("gone with them" in said["catalogue"]["origin"]) == (case.inputs is not declared)
    # An item that only the erased person had goes, as the certificate says.
    assert ("only-theirs" in dataset.items) == (case.inputs is declared)


def test_what_0_1_froze_stays_and_that_is_said():
    dataset = handmade().state.dataset
    frozen = replace(dataset, catalogue=Catalogue(dataset.items, (len(dataset.items),), declared=False))
    assert "The catalogue was not declared" in does_not_prove(frozen, on_disk=True)
    assert catalogue_origin(frozen) == "found in the data and frozen by version 0.1"
    assert "catalogue" not in does_not_prove(dataset, on_disk=True)
    assert catalogue_origin(dataset) == "declared"


def test_only_settings_of_the_model_are_named(stated):
    _, said, dataset, _ = stated
    names, config = {*said["settings"]}, dataset.config
    assert {"model", "strategy", "policy", "holdout", "anchors"} <= names
    assert "seed" not in names
    assert names <= {*config.flat()}
    assert ("factors" in names, "epochs" in names) == (config.model == "als", config.model != "ease")
    for name in ("batch", "learning_rate", "negatives"):
        assert (name in names) == (config.model in ("nmf", "dmf"))
    assert ("grouping" in names, "groups" in names) == (config.strategy != "retrain",) * 2
    assert ("aggregate" in names) == (config.strategy == "sisa")


@pytest.mark.full
def test_cost_and_duration_are_the_same_whoever_it_is_about(case, tmp_path):
    storage = learned(case, tmp_path)
    told = [certified(storage, Request(user))[0][0] for user in ("bob", "cat", "dan")]
    figures = [[json.loads(one.content)[name] for name in ("cost", "duration", "policy_means")] for one in told]
    assert figures[0] == figures[1] == figures[2]


class TestTheDoNotLearnList:
    @pytest.mark.parametrize("name", ["als", "als, in memory"])
    def test_is_named_with_what_is_kept_why_and_how_to_drop_it(self, name, tmp_path):
        found, _ = certified(learned(CASES[name], tmp_path), Request(PERSON), Request("bob", ("a",)))
        whole, some = (json.loads(one.content)["do_not_learn"] for one in found)
        assert whole.startswith("A keyed digest of the person's id is kept on a do-not-learn list")
        assert some.startswith("A keyed digest of each interaction erased is kept")
        for text in (whole, some):
            assert "does not bring back" in text
            assert "readmit" in text
            assert ("outside the workspace" in text) == (name == "als")
            assert ("in memory" in text) == (name != "als")

    @pytest.mark.parametrize("name", ["als", "als, in memory"])
    def test_is_not_named_if_none_is_kept(self, name, tmp_path):
        storage, without = learned(CASES[name], tmp_path), Outside(without_do_not_learn=True)
        (certificate,), _ = certified(storage, Request(PERSON), outside=without)
        assert json.loads(certificate.content)["do_not_learn"] is None
