"""Enough of the Redis protocol to tell one command of a byte stream from the next."""


class CommandSplitter:
    """Cuts what a client sends into whole commands, in whatever portions it arrives."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take in bytes; give back the commands that are now complete, each exactly as it was sent."""
        self._buffer += chunk
        commands: list[bytes] = []
        while (end := _command_end(self._buffer)) is not None:
            commands.append(self._buffer[:end])
            self._buffer = self._buffer[end:]
        return commands


def _command_end(data: bytes) -> int | None:
    line = data.find(b"\r\n")
    if line < 0:
        return None
    if data[:1] != b"*":
        return line + 2
    position = line + 2
    for _ in range(int(data[1:line])):
        line = data.find(b"\r\n", position)
        if line < 0:
            return None
        position = line + 2 + int(data[position + 1 : line]) + 2
        if position > len(data):
            return None
    return position


def command_words(command: bytes) -> list[bytes]:
    """The words of one whole command."""
    if command[:1] != b"*":
        return command.split()
    words: list[bytes] = []
    position = command.find(b"\r\n") + 2
    while position < len(command):
        line = command.find(b"\r\n", position)
        length = int(command[position + 1 : line])
        words.append(command[line + 2 : line + 2 + length])
        position = line + 2 + length + 2
    return words
