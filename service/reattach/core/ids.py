"""Names of things: run ids, digests of user text, shards.

A run id is ``run_`` and 26 lower-case Crockford base32 characters: two for the shard and 24 random ones (120 bits). No time is in it: the
order of runs is that of the server's clock, in ``created_at``. Clients treat it as opaque.

A session's name is ``ses_``, its shard as well, and 24 characters that are a digest of its tenant and its id: the id is the client's own
text, the name is safe in keys and cursors.
"""

import hashlib
import re
import secrets
from typing import Final

ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
ID_CHARACTER: Final = "[0-9a-hjkmnp-tv-z]"
"""One character of `ALPHABET`, as a regular expression."""

RUN_ID: Final = re.compile(rf"run_[0-9]{{2}}{ID_CHARACTER}{{24}}")
SESSION_NAME: Final = re.compile(rf"ses_[0-9]{{2}}{ID_CHARACTER}{{24}}")
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


def is_session_name(text: str) -> bool:
    """Whether the text has the form of a session's name; says nothing about whether the session exists."""
    return SESSION_NAME.fullmatch(text) is not None


def session_name(tenant: str, session_id: str, shards: int) -> str:
    """The name of a tenant's session. All its runs live in the shard it names, so that one stream can carry them."""
    whole = digest("session", tenant, session_id)
    number = int(whole, 16)
    return f"ses_{shard_for(whole, shards):02d}{''.join(ALPHABET[number >> 5 * i & 31] for i in range(24))}"


def shard_of(name: str) -> str:
    """The shard tag inside a run id or a session's name: ``run_07…`` → ``07``."""
    return name[4:6]


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
