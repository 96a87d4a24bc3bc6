"""Deliveries on their way to a worker that is far away: which run a claim's name stands for.

A claim that came over a network may have to be asked for again, because its answer was lost. What it shall be is therefore written down
under its name *before* the run is claimed: the entry, and the fence. Whoever is asked again claims with the same two, which is the same
claim, whether the first one happened or not.
"""

from typing import Final

import msgspec

from ..core.settings import Settings
from .door import Door
from .keys import Keys
from .leases import Delivery

_MARGIN_MS: Final = 60_000


class Handout(msgspec.Struct, frozen=True, kw_only=True):
    """What a named claim stands for: a queue entry, and the fence its run is claimed under."""

    delivery: Delivery
    fence: str


_decoder: Final = msgspec.json.Decoder(Handout)


class Handouts:
    """Named claims."""

    def __init__(self, door: Door, keys: Keys, settings: Settings) -> None:
        """Bind to a door, a set of key names, and the lease time."""
        self._door, self._keys = door, keys
        # A name is good while the first lease may last; whether it does is decided by the claim itself.
        self._keep_ms = int(settings.lease * 1000) + _MARGIN_MS

    async def find(self, name: str) -> Handout | None:
        """What a name stands for; None when it is new or was forgotten.

        Args:
            name: A digest, see `core.ids.digest`.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        stored = await self._door.call("GET", self._keys.handout(name))
        return None if stored is None else _decoder.decode(stored)

    async def keep(self, name: str, handout: Handout) -> Handout:
        """Let a name stand for this; what it stands for now, which is something else where somebody was faster.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        key, value = self._keys.handout(name), msgspec.json.encode(handout)
        before = await self._door.call("SET", key, value, "NX", "GET", "PX", self._keep_ms)
        return handout if before is None else _decoder.decode(before)

    async def forget(self, name: str) -> None:
        """Let a name stand for nothing.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        await self._door.call("DEL", self._keys.handout(name))
