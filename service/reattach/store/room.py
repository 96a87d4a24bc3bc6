"""How much one run may append: checked by the commands that append, told here."""

from ..core.errors import PayloadTooLarge, TooManyRequests
from ..core.settings import Settings
from .scripts import Reply


class Room:
    """The limits of one run's log, as this process knows them.

    Attributes:
        whole: Events and bytes, as arguments of a command.
        by_minute: Both in a minute, likewise.
    """

    def __init__(self, settings: Settings) -> None:
        """Take the limits."""
        self.whole = (settings.run_events, settings.run_bytes)
        self.by_minute = (settings.run_event_rate, settings.run_byte_rate)

    def check(self, reply: Reply) -> None:
        """Go on unless a command said that there is no room.

        Raises:
            PayloadTooLarge: The run has appended as much as one may.
            TooManyRequests: It has in this minute; the same again later.
        """
        if reply.word == "FULL":
            most = self.whole[0] if reply.text(0) == "events" else self.whole[1]
            raise PayloadTooLarge(f"one run may append {most} {reply.text(0)} here, and this one would have more", maximum=most)
        if reply.word == "BUSY":
            events, size = self.by_minute
            raise TooManyRequests(
                f"one run may append {events or 'any number of'} events and {size or 'any number of'} bytes in a minute here",
                retry_after=reply.integer(0) / 1000,
            )
