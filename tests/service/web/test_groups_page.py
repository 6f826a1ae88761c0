"""The page of groups: their sizes, and the chain."""

import re


def test_every_group_is_shown_with_its_size(office, shop):
    groups = shop.live.dataset.groups
    rows = re.findall(r'<th scope="row">(\d+)</th><td>(\d+)</td><td>(\d+)</td>', office.get("/groups"))
    expected = [(place, len(group.users), len(group)) for place, group in enumerate(groups, 1)]
    assert [tuple(map(int, row)) for row in rows] == expected


def test_chain_is_shown_stage_by_stage(office, shop):
    assert office.get("/groups").count('<li class="kept">') == shop.live.dataset.stages
