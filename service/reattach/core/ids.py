"""Names of things: run ids, digests of user text, shards.

A run id is ``run_`` and 26 lower-case Crockford base32 characters: two for the shard and 24 random ones (120 bits). No time is in it: the
order of runs is that of the server's clock, in ``created_at``. Clients treat it as opaque.
"""

import hashlib
import re
import secrets
from typing import Final

ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
ID_CHARACTER: Final = "[0-9a-hjkmnp-tv-z]"
"""One character of `ALPHABET`, as a regular expression."""

RUN_ID: Final = re.compile(rf"run_[0-9]{{2}}{ID_CHARACTER}{{24}}")
MAX_SHARDS: Final = 100


def new_run_id(shard: int) -> str:
    """A fresh id whose first two characters name its shard.

    Args:
        shard: 0 to 99.
    """
    return f"run_{shard:02d}{''.join(secrets.choice(ALPHABET) for _ in range(24))}"


def is_run_id(text: str) -> bool:
    """Whether the text has the form of a run id; says nothing about whether the run exists."""
    return RUN_ID.fullmatch(text) is not None


def shard_of(run_id: str) -> str:
    """The shard tag inside a run id: ``run_07…`` → ``07``."""
    return run_id[4:6]


def digest(*parts: str) -> str:
    """A name for user text that is safe inside a key: no part can reach into another one, and no brace can steer a hash slot.

    Returns:
        32 hex characters (128 bits of SHA-256 over the length-prefixed parts).
    """
    h = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        h.update(b"%d:" % len(raw))
        h.update(raw)
    return h.hexdigest()[:32]


def shard_for(name: str, shards: int) -> int:
    """The shard that a digest belongs to."""
    return int(name[:8], 16) % shards


def new_token() -> str:
    """128 random bits as hex: fencing tokens and request nonces."""
    return secrets.token_hex(16)
