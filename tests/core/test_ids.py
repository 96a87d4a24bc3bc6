"""Names: run ids, shards, and digests of user text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.core.ids import ALPHABET, MAX_SHARDS, digest, is_run_id, new_run_id, new_token, shard_for, shard_of

GOOD = "run_070123456789abcdefghjkmnpq"


@pytest.mark.parametrize("shard", [0, 7, 15, MAX_SHARDS - 1])
def test_a_run_id_names_its_shard(shard: int) -> None:
    """``run_``, the shard, and 24 random characters; no two are the same."""
    ids = {new_run_id(shard) for _ in range(1000)}
    assert len(ids) == 1000
    for run_id in ids:
        assert is_run_id(run_id) and len(run_id) == 30 and int(shard_of(run_id)) == shard
        assert set(run_id[4:]) <= set(ALPHABET)


@pytest.mark.parametrize(
    "text",
    [
        "", "run_", "run_07", GOOD.upper(), GOOD[:-1], GOOD + "q", GOOD + "\n", " " + GOOD, GOOD[:-1] + "Q", GOOD[:-1] + "u",
        GOOD[:-1] + "é", GOOD.replace("_0", "_x"), GOOD.replace("_0", "_０"), GOOD.replace("07", "{7}"), "run_07*", "../" + GOOD,
    ],
)  # fmt: skip
def test_what_is_no_run_id(text: str) -> None:
    """Nothing else can get into a key's name."""
    assert not is_run_id(text)


@given(st.lists(st.text(max_size=6), max_size=4), st.lists(st.text(max_size=6), max_size=4))
def test_digests_tell_every_list_of_texts_apart(one: list[str], other: list[str]) -> None:
    """No part can reach into the next one: ("ab", "c") is not ("a", "bc")."""
    assert (digest(*one) == digest(*other)) == (one == other)


@pytest.mark.parametrize("text", ["{", "}", "{}", "{07}", ":", "a b", "\ud83d", "é" * 1000])
def test_user_text_cannot_steer_a_key(text: str) -> None:
    """O23: braces, colons and blanks never reach a key; a digest is 32 hex characters."""
    name = digest("tenant", text)
    assert len(name) == 32 and set(name) <= set("0123456789abcdef")
    assert 0 <= shard_for(name, 16) < 16


def test_tokens_are_new_every_time() -> None:
    """128 bits each."""
    assert len({new_token() for _ in range(100)}) == 100 and len(new_token()) == 32
