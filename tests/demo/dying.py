"""The demo's agents in a process that is gone right after it has written a note, before anybody hears of it."""

import os
import signal
from typing import Any

from reattach.demo.agents import agents
from reattach.demo.tickets import Tickets

_add_note = Tickets.add_note


def _add_and_die(self: Tickets, ticket: int, body: str, *, author: str, key: str) -> Any:
    _add_note(self, ticket, body, author=author, key=key)
    os.kill(os.getpid(), signal.SIGKILL)


Tickets.add_note = _add_and_die

__all__ = ["agents"]
