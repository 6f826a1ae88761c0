"""Ratings of a made-up shop with planted groups."""

import pytest

from erasable.data import SyntheticSettings, synthesise


@pytest.fixture(scope="session")
def ratings_file(tmp_path_factory):
    """Ratings of a made-up shop in a file, for experiments that read it in processes of their own."""
    rows = synthesise(SyntheticSettings(users=60, items=40, groups=4, per_user=8)).interactions
    file = tmp_path_factory.mktemp("data") / "small.csv"
    lines = [
        f"{rows.users[user]},{rows.items[item]},{rating:g}"
        for user, item, rating in zip(rows.user_index, rows.item_index, rows.rating, strict=True)
    ]
    file.write_text("\n".join(["user_id,item_id,rating", *lines]) + "\n")
    return file
