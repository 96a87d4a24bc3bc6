"""Effects as they are stored."""

import json

import msgspec
import pytest

from reattach.core.receipt import Effect, decode_effect

from .test_payload import O24


def test_an_effect_survives_byte_for_byte() -> None:
    """Arguments, result and error are carried, not understood: no number is rounded, no member moves (O24)."""
    effect = Effect(
        call_id="call_22", tool="tickets.add_note", status="receipt", mutating=True, arguments=O24, receipt_id="receipt_558",
        result_version="ticket_981:v19", result=O24, error=b'{"f":1.50}',
    )  # fmt: skip
    assert decode_effect(effect.encode()) == effect
    assert O24 in effect.encode() and json.loads(effect.encode())["result_version"] == "ticket_981:v19"


def test_null_is_a_result_and_none_is_none() -> None:
    """A tool that returned nothing has a result; one that has not returned has none."""
    intent = Effect(call_id="c", tool="t", status="intent", mutating=False)
    assert b"result" not in intent.encode() and decode_effect(intent.encode()) == intent
    done = msgspec.structs.replace(intent, status="receipt", result=b"null")
    assert decode_effect(done.encode()).result == b"null"


def test_members_of_a_later_version_are_ignored() -> None:
    """Two versions of the service can run side by side."""
    assert decode_effect(b'{"new":[1],"call_id":"c","tool":"t","status":"failed","mutating":true,"arguments":{}}').status == "failed"


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b'{"call_id":"c","tool":"t","status":"done","mutating":true,"arguments":{}}'])
def test_what_is_no_effect(raw: bytes) -> None:
    """Damage is noticed."""
    with pytest.raises(msgspec.DecodeError):
        decode_effect(raw)
