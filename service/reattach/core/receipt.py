"""Tool calls and what is known of them: the intention before a tool runs, and the receipt after it.

An effect is one JSON object in the run's ``effects`` hash, so that an operator can read what happened with ``redis-cli``. What the
product put into it (arguments, result, error) is carried byte for byte.
"""

from typing import Final, Literal

import msgspec

EffectStatus = Literal["intent", "receipt", "failed", "unresolved"]
"""Asked for and perhaps running; done, with a receipt; done, and it failed; nobody knows whether it was done."""

_ABSENT: Final = msgspec.Raw()


class EffectCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that is about to run.

    Attributes:
        call_id: The same in every attempt; what makes the call happen at most once.
        tool: Name of the tool.
        arguments: JSON text.
        mutating: Whether the tool changes anything outside the run: what decides between the two ways a cancel can end.
    """

    call_id: str
    tool: str
    arguments: bytes
    mutating: bool


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call and what became of it, as it is stored.

    Attributes:
        call_id: The same in every attempt.
        tool: Name of the tool.
        status: How far it got.
        mutating: Whether the tool changes anything outside the run.
        arguments: JSON text.
        receipt_id: What the outside calls it, once it is done.
        result_version: The resource's version after it, ``resource:version``.
        result: JSON text of what the tool returned; ``null`` is a result, None is none.
        error: JSON text of how it failed.
    """

    call_id: str
    tool: str
    status: EffectStatus
    mutating: bool
    arguments: bytes = b"null"
    receipt_id: str | None = None
    result_version: str | None = None
    result: bytes | None = None
    error: bytes | None = None

    @property
    def call(self) -> EffectCall:
        """The call it became of."""
        return EffectCall(call_id=self.call_id, tool=self.tool, arguments=self.arguments, mutating=self.mutating)

    def encode(self) -> bytes:
        """The effect as one JSON object; what is not known is left out."""
        return _encoder.encode(
            _Stored(
                call_id=self.call_id,
                tool=self.tool,
                status=self.status,
                mutating=self.mutating,
                arguments=msgspec.Raw(self.arguments),
                receipt_id=self.receipt_id,
                result_version=self.result_version,
                result=_ABSENT if self.result is None else msgspec.Raw(self.result),
                error=_ABSENT if self.error is None else msgspec.Raw(self.error),
            )
        )


class _Stored(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    # Raw fields have an empty Raw as their default, since `Raw | None` could not tell a result of null from no result.
    call_id: str
    tool: str
    status: EffectStatus
    mutating: bool
    arguments: msgspec.Raw
    receipt_id: str | None = None
    result_version: str | None = None
    result: msgspec.Raw = _ABSENT
    error: msgspec.Raw = _ABSENT


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(_Stored)


def decode_effect(raw: bytes) -> Effect:
    """Read a stored effect; members this version does not know are ignored.

    Raises:
        msgspec.DecodeError: It was not written by `Effect.encode`.
    """
    stored = _decoder.decode(raw)
    return Effect(
        call_id=stored.call_id,
        tool=stored.tool,
        status=stored.status,
        mutating=stored.mutating,
        arguments=bytes(stored.arguments),
        receipt_id=stored.receipt_id,
        result_version=stored.result_version,
        result=bytes(stored.result) or None,
        error=bytes(stored.error) or None,
    )
