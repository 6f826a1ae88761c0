import io

from hypothesis import given
from hypothesis import strategies as st

from erasable.data import columns as double_colon
from erasable.data.columns import DoubleColonReader


@given(st.text("ab:\n", max_size=60), st.integers(1, 7), st.integers(1, 9))
def test_blocks_of_any_size_give_what_the_whole_gives(text, block, asked):
    usual, double_colon._BLOCK_BYTES = double_colon._BLOCK_BYTES, block
    try:
        reader = DoubleColonReader(io.BytesIO(text.encode()))
        pieces = list(iter(lambda: reader.read(asked), b""))
    finally:
        double_colon._BLOCK_BYTES = usual
    assert b"".join(pieces) == text.encode().replace(b"::", b"\x1f")
    assert all(len(piece) <= asked for piece in pieces)
    reader.close()
