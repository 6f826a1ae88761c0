"""What a field holds is told by its name."""

import pytest

from erasable.proof.residue.field_names import Role, role_of, subject_of

NAMES = {
    Role.USER: "user user_id userId UserID user-id USER uid userid customer_no memberIds person user_ids owner "
    "customer account client subject user_id_1 user_external_ref who user_id:token e_mail reviewerID",
    Role.USERS: "users n_users num_users people customers",
    Role.ID: "id ids ID _id",
    Role.ITEM: "item item_id itemID movieId movies ISBN asin title",
    Role.MEASURE: "rating user_rating timestamp time count user_count group groups position request_id",
    Role.UNKNOWN: "f0 x customer-12 user1 zoë name account_balance 7 _ -",
}


@pytest.mark.parametrize(("name", "role"), [(name, role) for role, names in NAMES.items() for name in names.split()])
def test_a_name_tells_what_a_field_holds(name, role):
    assert role_of(name) is role


def test_no_name_tells_nothing():
    assert role_of(None) is role_of("") is Role.UNKNOWN


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("users-2024.csv", Role.USER),
        ("user_items.csv", Role.USER),
        ("u.item", Role.ITEM),
        ("kept-items-0123456789ab.parquet", Role.ITEM),
        ("requests", Role.MEASURE),
        ("backup.json", Role.UNKNOWN),
        (None, Role.UNKNOWN),
    ],
)
def test_the_name_of_a_table_tells_what_it_is_about(name, role):
    assert subject_of(name) is role
