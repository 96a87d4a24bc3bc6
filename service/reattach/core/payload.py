"""JSON at the edge: what is accepted is carried byte for byte, what is not is refused with its reason.

Nothing here re-encodes a value: numbers keep their digits, empty lists stay lists. Only white space between tokens goes,
because an event is one line.
"""

import json
import re
from decimal import Decimal
from typing import Any

import msgspec

from .errors import InvalidRequest, PayloadTooLarge

MAX_DEPTH = 64
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SURROGATES = re.compile(rb"\\\\|\\u[dD]([89abAB])[0-9a-fA-F]{2}(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|\\u[dD]([c-fC-F])[0-9a-fA-F]{2}")


def check_json(raw: bytes, *, max_bytes: int, what: str, want_object: bool = True, max_depth: int = MAX_DEPTH) -> bytes:
    """Accept JSON text from outside and put it on one line.

    Args:
        raw: UTF-8 JSON text.
        max_bytes: Largest size in bytes, after white space between tokens is removed.
        what: The field's name, for the error.
        want_object: Require a JSON object, as every payload is.
        max_depth: Deepest nesting of arrays and objects.

    Raises:
        PayloadTooLarge: It is larger than `max_bytes`.
        InvalidRequest: It is not valid UTF-8 or JSON (RFC 8259), has lone surrogates, NaN or Infinity, or is nested too deeply.
    """
    if len(raw) > 4 * max_bytes + 1024:
        raise PayloadTooLarge(f"{what} is larger than {max_bytes} bytes", field=what, max_bytes=max_bytes)
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as e:
        raise InvalidRequest(f"{what} is not valid UTF-8 at byte {e.start}", field=what) from None
    _check_depth(raw, max_depth, what)
    try:
        line = msgspec.json.format(raw, indent=-1)
    except msgspec.DecodeError as e:
        raise InvalidRequest(f"{what} is not valid JSON: {e}", field=what) from None
    if len(line) > max_bytes:
        raise PayloadTooLarge(f"{what} is larger than {max_bytes} bytes", field=what, max_bytes=max_bytes)
    if want_object and line[:1] != b"{":
        raise InvalidRequest(f"{what} must be a JSON object", field=what)
    _check_surrogates(line, what)
    return line


def _check_depth(raw: bytes, max_depth: int, what: str) -> None:
    # Before any parser sees it: a parser that recurses must not be handed what could exhaust its stack.
    if raw.count(b"[") + raw.count(b"{") <= max_depth:
        return
    depth = 0
    for char in _STRINGS.sub(b"", raw):
        if char in b"[{":
            depth += 1
            if depth > max_depth:
                raise InvalidRequest(f"{what} is nested deeper than {max_depth} levels", field=what)
        elif char in b"]}":
            depth -= 1


def _check_surrogates(line: bytes, what: str) -> None:
    if b"\\u" not in line:
        return
    for match in _SURROGATES.finditer(line):
        if match[3] is not None or (match[1] is not None and match[2] is None):
            raise InvalidRequest(f"{what} has a lone surrogate at byte {match.start()}", field=what)


def to_json(value: Any, *, max_bytes: int, what: str, want_object: bool = True) -> bytes:
    """Encode a value made in this process, exactly: integers of any size, no NaN.

    Raises:
        InvalidRequest: The value has no JSON form, or holds NaN, Infinity or a lone surrogate.
        PayloadTooLarge: Its JSON is larger than `max_bytes`.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_builtin)
        raw = text.encode("utf-8")
    except UnicodeEncodeError as e:
        raise InvalidRequest(f"{what} has a lone surrogate at character {e.start}", field=what) from None
    except RecursionError:
        raise InvalidRequest(f"{what} is nested deeper than {MAX_DEPTH} levels", field=what) from None
    except (TypeError, ValueError) as e:
        raise InvalidRequest(f"{what} cannot be written as JSON: {e}", field=what) from None
    if len(raw) > max_bytes:
        raise PayloadTooLarge(f"{what} is larger than {max_bytes} bytes", field=what, max_bytes=max_bytes)
    if want_object and raw[:1] != b"{":
        raise InvalidRequest(f"{what} must be a JSON object", field=what)
    _check_depth(raw, MAX_DEPTH, what)
    return raw


def _builtin(value: Any) -> Any:
    if isinstance(value, msgspec.Raw):
        return from_json(bytes(value))
    return msgspec.to_builtins(value)


def from_json(raw: bytes) -> Any:
    """Decode stored JSON for a handler; integers of any size stay exact."""
    return json.loads(raw)


def canonical(raw: bytes) -> bytes:
    """One spelling for all JSON texts that parse to the same value: keys sorted, no white space, one form for equal numbers.

    Used to compare request bodies as parsed JSON, never to store anything.
    """
    value = json.loads(raw, parse_float=_number, parse_int=_number)
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


def _number(text: str) -> dict[str, str]:
    # as_tuple() is exact for any number of digits, where Decimal arithmetic would round to its context's precision.
    sign, digits, exponent = Decimal(text).as_tuple()
    significant = "".join(map(str, digits)).lstrip("0")
    short = significant.rstrip("0")
    shift = int(exponent) + len(significant) - len(short)
    return {"\u0000number": f"{'-' if sign and short else ''}{short}e{shift if short else 0}"}
