"""A proxy in front of Redis that kills its client at a command of the test's choice."""

from collections.abc import Callable

from .proxy import Link, Proxy


class LastLink(Link):
    """A connection of the one that is about to die: after the deadly command nothing reaches Redis, whatever was sent with it."""

    def _forward_commands(self, chunk: bytes) -> bool:
        deadly = self.proxy
        assert isinstance(deadly, Deadly)
        for command in self.splitter.feed(chunk):
            if deadly.killed:
                break
            deadly.commands.append(command)
            trap = deadly.spring(command)
            if trap is None or trap.forward:
                self.upstream.write(command)
            if trap is not None:
                deadly.killed = True
                deadly.kill()
        return True


class Deadly(Proxy):
    """Counts commands, and kills at the one its trap names: before it reaches Redis, or when it was handed on and nobody hears the answer.

    Both together are every state a worker can be in when it dies: what it does between two commands is done before the second is sent.

    Attributes:
        kill: Kills the client.
        killed: Whether it did.
    """

    link = LastLink

    def __init__(self, port: int) -> None:
        super().__init__(port, counting=True)
        self.kill: Callable[[], None] = lambda: None
        self.killed = False
