"""Signatures: Ed25519, with keys and signatures in hexadecimal, each written in one way only."""

import re

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from erasable.errors import WorkspaceDamaged
from erasable.proof.certificate import is_signed, new_key, public_key_of, sign

# RFC 8032, section 7.1, test 2.
SEED = b"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"
PUBLIC = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
SIGNATURE = (
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


def test_the_example_of_rfc_8032():
    assert public_key_of(SEED) == PUBLIC
    assert sign(SEED, b"\x72") == SIGNATURE
    assert is_signed(PUBLIC, b"\x72", SIGNATURE)


def test_a_new_key_is_random_and_hexadecimal():
    keys = {new_key() for _ in range(5)}
    assert len(keys) == 5
    assert all(re.fullmatch(b"[0-9a-f]{64}", key) for key in keys)
    assert len({public_key_of(key) for key in keys}) == 5


def test_the_public_key_does_not_hold_the_private_one():
    key = new_key()
    assert key.decode() not in public_key_of(key)


@given(st.binary(max_size=200))
def test_an_outsider_can_check_a_signature(content):
    key = new_key()
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key_of(key)))
    public.verify(bytes.fromhex(sign(key, content)), content)
    with pytest.raises(InvalidSignature):
        public.verify(bytes.fromhex(sign(key, content)), content + b" ")


@given(st.binary(min_size=1, max_size=60), st.data())
def test_a_signature_fits_its_content_and_its_key_alone(content, data):
    key = new_key()
    signature = sign(key, content)
    assert is_signed(public_key_of(key), content, signature)
    changed = bytearray(content)
    changed[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert not is_signed(public_key_of(key), bytes(changed), signature)
    assert not is_signed(public_key_of(new_key()), content, signature)


def test_one_bit_of_the_signature_or_of_the_public_key_counts():
    for text in (SIGNATURE, PUBLIC):
        raw = bytes.fromhex(text)
        for place in range(len(raw)):
            changed = bytearray(raw)
            changed[place] ^= 1 << place % 8
            parts = (changed.hex(), SIGNATURE) if text is PUBLIC else (PUBLIC, changed.hex())
            assert not is_signed(parts[0], b"\x72", parts[1])


@pytest.mark.parametrize(
    "written",
    [SIGNATURE.upper(), SIGNATURE.replace("a", "A", 1), SIGNATURE[:4] + " " + SIGNATURE[4:], SIGNATURE + "\n"],
)
def test_a_signature_is_written_in_one_way_only(written):
    assert bytes.fromhex(written) == bytes.fromhex(SIGNATURE)
    assert not is_signed(PUBLIC, b"\x72", written)


@pytest.mark.parametrize("wrong", ["", "no hexadecimal", "ab", SIGNATURE[:-2], SIGNATURE + "00", "é"])
def test_what_is_no_signature_or_no_key_does_not_fit(wrong):
    assert not is_signed(PUBLIC, b"\x72", wrong)
    assert not is_signed(wrong, b"\x72", SIGNATURE)


@pytest.mark.parametrize("key", [b"", b"ab", b"no hexadecimal", b"\xff" * 64, SEED + b"00"])
def test_a_key_that_can_not_be_read_is_damage_and_the_remedy_is_said(key):
    for use in (lambda: sign(key, b""), lambda: public_key_of(key)):
        with pytest.raises(WorkspaceDamaged, match="the signing key can't be read: restore it"):
            use()
