"""The pages of a model that is learned at once: nothing is said of groups, stages and rolling back."""

import re

import pytest

from erasable.chain import Config
from kit.small_shop import learn_shop, table

OF_A_CHAIN = re.compile(r"[Ss]tage|rolled? back|[Gg]roup \d|\d of \d|one after the other", re.ASCII)


@pytest.fixture(scope="session")
def learned(tmp_path_factory):
    config = Config(model="ease", neighbours="all", regularisation=5.0, holdout=0.2)
    return learn_shop(tmp_path_factory.mktemp("one-stage") / "shop", table(), config)


def words_of(page: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", page.partition("<main")[2]).split())


def test_groups_are_said_to_be_none(office, shop):
    text = words_of(office.get("/groups"))
    assert f"{shop.live.dataset.users} people" in text
    assert "learned all at once, without groups" in text
    assert not OF_A_CHAIN.search(text.replace("no groups to learn one after the other", ""))


def test_a_plan_is_about_the_model(office, users):
    text = words_of(office.send("/plan", 200, user_ids=users[0]).text)
    assert "The model would be rebuilt without that person." in text
    assert not OF_A_CHAIN.search(text)
    assert "The model would be rebuilt without them." in office.send("/plan", 200, user_ids="\n".join(users[:2])).text


def test_so_is_an_erasure_while_it_is_done_and_after(office, shop, worker, clock, page, request_id):
    facts = {"batch": "abc", "requests": 1, "stages_rerun": 1, "stages_total": 1, "rerun": [0]}
    shop.queue.advance(request_id, "erasing", "worker", shop.clock(), facts)
    assert "The model is being rebuilt without the person." in office.get(page)
    assert not OF_A_CHAIN.search(words_of(office.get(page)))


def test_an_erasure_that_is_done(office, erased):
    text = words_of(office.get(erased))
    assert "The model was rebuilt without the person." in text
    assert "Model rebuilt" in text
    assert not OF_A_CHAIN.search(text)
