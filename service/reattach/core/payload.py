"""JSON at the edge: what is accepted is carried byte for byte, what is not is refused with its reason.

Nothing here re-encodes a value: numbers keep their digits, empty lists stay lists. Only white space between tokens goes,
because an event is one line.
"""

import json
import re
from array import array
from itertools import accumulate
from typing import Any, Final, cast

import msgspec

from .errors import InvalidRequest, PayloadTooLarge

MAX_DEPTH: Final = 64
"""Deepest nesting of arrays and objects; the payload itself is the first level."""

MAX_DIGITS: Final = 1000
"""Most digits in a row in a number: every number that is stored can be read by every reader, in a time that is worth no attack."""

_SURROGATES = re.compile(rb"\\\\|\\u[dD]([89abAB])[0-9a-fA-F]{2}(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|\\u[dD]([c-fC-F])[0-9a-fA-F]{2}")
_STEPS: Final = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_ONE_DIGIT: Final = bytes.maketrans(b"123456789", b"000000000")


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
        InvalidRequest: It is not valid UTF-8 or JSON (RFC 8259), has lone surrogates, NaN or Infinity, is nested too deeply, or has a
            number of more than `MAX_DIGITS` digits.
    """
    if len(raw) > 4 * max_bytes + 1024:
        raise _too_large(what, max_bytes)
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as e:
        raise InvalidRequest(f"{what} is not valid UTF-8 at byte {e.start}", field=what) from None
    _check_surrogates(raw, what)
    try:
        line = msgspec.json.format(raw, indent=-1)
    except msgspec.DecodeError as e:
        raise InvalidRequest(f"{what} is not valid JSON: {e}", field=what) from None
    except RecursionError:
        raise _too_deep(what, max_depth) from None
    if len(line) > max_bytes:
        raise _too_large(what, max_bytes)
    if want_object and line[:1] != b"{":
        raise InvalidRequest(f"{what} must be a JSON object", field=what)
    _check_depth(line, max_depth, what)
    _check_numbers(line, what)
    return line


def _too_large(what: str, max_bytes: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"{what} is larger than {max_bytes} bytes", field=what, max_bytes=max_bytes)


def _too_deep(what: str, max_depth: int) -> InvalidRequest:
    return InvalidRequest(f"{what} is nested deeper than {max_depth} levels", field=what)


def _check_surrogates(raw: bytes, what: str) -> None:
    if b"\\ud" not in raw and b"\\uD" not in raw:
        return
    for match in _SURROGATES.finditer(raw):
        if match[3] is not None or (match[1] is not None and match[2] is None):
            raise InvalidRequest(f"{what} has a lone surrogate at byte {match.start()}", field=what)


# These look at JSON that a parser has accepted, a whole pass at a time: an expression that may look at a character twice is what somebody
# would send a quarter of a megabyte of quotes for.


def _outside_strings(line: bytes) -> bytes:
    return b"".join(line.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])


def _check_depth(line: bytes, max_depth: int, what: str) -> None:
    if line.count(b"[") + line.count(b"{") <= max_depth:
        return
    steps = array("b", _outside_strings(line).translate(_STEPS, _NO_BRACKETS))
    if max(accumulate(steps)) > max_depth:
        raise _too_deep(what, max_depth)


def _check_numbers(line: bytes, what: str) -> None:
    too_many = b"0" * (MAX_DIGITS + 1)
    if too_many in line.translate(_ONE_DIGIT) and too_many in _outside_strings(line).translate(_ONE_DIGIT):
        raise InvalidRequest(f"{what} has a number of more than {MAX_DIGITS} digits", field=what)


def to_json(value: Any, *, max_bytes: int, what: str, want_object: bool = True) -> bytes:
    """Encode a value made in this process, exactly: integers keep their digits, and nothing becomes something else.

    Raises:
        InvalidRequest: The value has no JSON form, has a key that is not a string, holds NaN, Infinity or a lone surrogate, is nested too
            deeply, or has a number of more than `MAX_DIGITS` digits.
        PayloadTooLarge: Its JSON is larger than `max_bytes`.
    """
    try:
        raw = _encoder.encode(value).encode("utf-8")
        _check_keys(value)
    except UnicodeEncodeError as e:
        raise InvalidRequest(f"{what} has a lone surrogate at character {e.start}", field=what) from None
    except RecursionError:
        raise _too_deep(what, MAX_DEPTH) from None
    except (TypeError, ValueError) as e:
        raise InvalidRequest(f"{what} cannot be written as JSON: {e}", field=what) from None
    if len(raw) > max_bytes:
        raise _too_large(what, max_bytes)
    if want_object and raw[:1] != b"{":
        raise InvalidRequest(f"{what} must be a JSON object", field=what)
    _check_depth(raw, MAX_DEPTH, what)
    _check_numbers(raw, what)
    return raw


def _check_keys(value: Any) -> None:
    # The encoder would write the key 1 as "1", beside a "1" that is there already. It has found no cycle, so this ends.
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            members = cast("dict[Any, Any]", item)
            for key in members:
                if not isinstance(key, str):
                    raise TypeError(f"a key is of type {type(key).__name__}, not a string")
            todo.extend(members.values())
        elif isinstance(item, list | tuple):
            todo.extend(cast("list[Any]", item))


def _builtin(value: Any) -> Any:
    return msgspec.to_builtins(value, str_keys=True)


_encoder: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_builtin)


def from_json(raw: bytes) -> Any:
    """Decode stored JSON for a handler; integers of any size stay exact."""
    return json.loads(raw)


def canonical(raw: bytes) -> bytes:
    """One spelling for all JSON texts that parse to the same value: keys sorted, no white space, one form for equal numbers.

    Used to compare request bodies as parsed JSON, never to store anything.

    Args:
        raw: Text that `check_json` accepted.
    """
    hook = _keep_apart if b"\\u0000" in raw else None
    value = json.loads(raw, parse_float=_number, parse_int=_integer, object_hook=hook)
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


def _keep_apart(members: dict[str, Any]) -> dict[str, Any]:
    # A body may spell out the key that stands for a number here.
    return {f"\u0000{key}" if key.startswith("\u0000") else key: value for key, value in members.items()}


# Integers of up to 15 digits stand for themselves, all other numbers for an object that no body can contain.
_SHORT: Final = 15
_NUMBER_KEY: Final = "\u0000number"


def _integer(text: str) -> int | dict[str, str]:
    return int(text) if len(text) <= _SHORT else _number(text)


def _number(text: str) -> int | dict[str, str]:
    # By digits, never by arithmetic: a float would round, and 1e999999999 would have to be written out.
    mantissa, _, exponent = text.lower().lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    short = digits.rstrip("0")
    if not short:
        return 0
    sign = "-" if text[0] == "-" else ""
    shift = int(exponent or "0") - len(fraction) + len(digits) - len(short)
    if 0 <= shift <= _SHORT - len(short):
        return int(f"{sign}{short}{'0' * shift}")
    return {_NUMBER_KEY: f"{sign}{short}e{shift}"}
