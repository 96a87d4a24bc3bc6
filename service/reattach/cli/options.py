"""Flags and variables, made from the fields of `Settings`: a setting is written down once."""

import functools
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import click
import msgspec

from ..core.settings import Settings

Command = Callable[..., None]

ALL: Final = tuple(f.name for f in msgspec.structs.fields(Settings))
STORE: Final = ("redis", "data", "prefix", "shards", "redis_timeout")
"""What a command needs that only looks into the store."""

_METAVARS: Final = {"redis": "URL", "data": "DIR", "host": "ADDRESS"}
_KINDS: Final = {int: "N", float: "SECONDS", str: "TEXT"}


def flag(name: str) -> str:
    """A field's flag: ``redis_timeout`` → ``--redis-timeout``."""
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    """A field's environment variable: ``redis_timeout`` → ``REATTACH_REDIS_TIMEOUT``."""
    return "REATTACH_" + name.upper()


def checked(kind: Any) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A check of a field's type and limits, where the value comes in."""

    def check(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        try:
            return msgspec.convert(value, kind, strict=False)
        except msgspec.ValidationError as e:
            # The value is not repeated: a URL may hold a password.
            raise click.BadParameter(str(e).replace("`", "").lower(), ctx, param) from None

    return check


def with_settings(names: Sequence[str] = ALL) -> Callable[[Command], Command]:
    """Give a command a flag for each of the named fields; it is called with ``settings``, the others at their defaults."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def call(**given: Any) -> None:
            settings = Settings(**{name: given.pop(name) for name in names})
            command(settings=settings, **given)

        decorated: Command = call
        for field in reversed(msgspec.structs.fields(Settings)):
            if field.name in names:
                decorated = _option(field.name, field.default)(decorated)
        return decorated

    return decorate


def _option(name: str, default: Any) -> Callable[[Command], Command]:
    kind, meta = _annotation(name)
    return click.option(
        flag(name),
        name,
        type=str,
        callback=checked(kind),
        default=default,
        show_default=default not in (None, ""),
        envvar=variable(name),
        show_envvar=True,
        metavar=_METAVARS.get(name) or _KINDS.get(get_args(kind)[0], "TEXT"),
        help=meta.description or "",
    )


def _annotation(name: str) -> tuple[Any, msgspec.Meta]:
    kind = get_type_hints(Settings, include_extras=True)[name]
    assert get_origin(kind) is Annotated, f"the setting {name} says nothing of itself"
    return kind, next(part for part in get_args(kind) if isinstance(part, msgspec.Meta))


def environment(settings: Settings) -> dict[str, str]:
    """The settings as variables, for a child process: unlike flags, they are not shown to everybody who lists processes."""
    values = {name: getattr(settings, name) for name in ALL}
    return {variable(name): str(value) for name, value in values.items() if value is not None}
