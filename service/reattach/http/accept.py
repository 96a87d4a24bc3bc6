"""Content negotiation between an event stream and a JSON page (RFC 9110, section 12.5.1).

Whoever prefers one of the two gets it. Whoever accepts both alike (``*/*``, or no Accept at all, as curl does) gets the stream, which is
what the address is for, unless the query asks for something that only a page has.
"""

from ..core.errors import NotAcceptable

_STREAM = ("text", "event-stream")
_JSON = ("application", "json")


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return min(max(float(value.strip()), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0


def _ranges(header: str) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for part in header.split(","):
        name, *parameters = part.split(";")
        kind, slash, subtype = name.strip().lower().partition("/")
        if slash:
            found[kind, subtype] = _quality(parameters)
    return found


def _weight(ranges: dict[tuple[str, str], float], media: tuple[str, str]) -> float:
    for candidate in (media, (media[0], "*"), ("*", "*")):
        if candidate in ranges:
            return ranges[candidate]
    return 0.0


def prefers_stream(header: str, *, otherwise: bool) -> bool:
    """Whether the answer is an event stream rather than a JSON page.

    Args:
        header: The Accept header; empty when there is none.
        otherwise: The answer when the header accepts both alike.

    Raises:
        NotAcceptable: Neither is acceptable.
    """
    ranges = _ranges(header) or {("*", "*"): 1.0}
    stream, page = _weight(ranges, _STREAM), _weight(ranges, _JSON)
    if stream <= 0 and page <= 0:
        raise NotAcceptable("events are served as text/event-stream and as application/json")
    return otherwise if stream == page else stream > page
