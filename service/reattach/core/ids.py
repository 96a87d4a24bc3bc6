"""Names of things: run ids, digests of user text, shards.

A run id is ``run_`` and 26 lower-case Crockford base32 characters: two for the shard, ten for the time it was made (only to make
ids pleasant to sort by eye; nothing depends on it) and fourteen random ones (70 bits). Clients treat it as opaque.
"""

import hashlib
import re
import secrets
import time

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
RUN_ID = re.compile(r"run_[0-9]{2}[0-9a-hjkmnp-tv-z]{24}")
MAX_SHARDS = 100
_RUN_ID_TIME_CHARS, _RUN_ID_RANDOM_CHARS = 10, 14


def _base32(number: int, width: int) -> str:
    return "".join(ALPHABET[(number >> (5 * i)) & 31] for i in reversed(range(width)))


def new_run_id(shard: int) -> str:
    """A fresh id whose first two characters name its shard.

    Args:
        shard: 0 to 99.
    """
    made = _base32(time.time_ns() // 1_000_000, _RUN_ID_TIME_CHARS)
    return f"run_{shard:02d}{made}{_base32(secrets.randbits(5 * _RUN_ID_RANDOM_CHARS), _RUN_ID_RANDOM_CHARS)}"


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
