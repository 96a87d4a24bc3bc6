"""What the benches write: a text delta of the size that models send with their metadata."""


def payload(number: int, size: int = 120) -> bytes:
    """One payload, about `size` bytes of text."""
    return b'{"message_id":"m1","text":"%b"}' % (b"%d " % number * size)[:size]
