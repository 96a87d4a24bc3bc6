"""The Lua commands: found, parsed, checked and called by name.

A command's file header is executable::

    -- append: one numbered batch of a worker's events, once however often it is sent.
    -- keys: run log audit bell          bound as locals, in this order; `name?` may be left out, `...` takes the rest
    -- args: id fence batch:int events...  bound as locals; `:int` becomes a number, `...` takes the rest
    -- reply: OK sequence | FENCED       a reply that is not listed, or has another length, is a bug and raises
    -- uses: clock log                   files of lua/include/, with what they use themselves

Scripts are addressed by the SHA-1 of their text (EVALSHA), never loaded as functions: two versions of the service can run side by side.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec

from .keys import KeyNames

GROUP: Final = "workers"
"""The consumer group of every queue."""

_HEADER = re.compile(r"^-- (keys|args|reply|uses):[ \t]*(.*)$", re.MULTILINE)
_INT = "int"


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """One command, assembled.

    Attributes:
        name: The file's name without ``.lua``.
        keys: Names of its keys, in order; a trailing ``?`` marks an optional one, a trailing ``...`` any number of them.
        args: Names of its arguments, without types.
        replies: Reply word → number of values after it.
        text: What the server runs.
        sha: SHA-1 of `text`, lower-case hex.
    """

    name: str
    keys: tuple[str, ...]
    args: tuple[str, ...]
    replies: Mapping[str, int]
    text: str
    sha: str

    def bind_keys(self, given: Mapping[str, KeyNames]) -> list[str]:
        """Key names in the order the script wants them. An optional key that is left out becomes the first key: the script sees that.

        Raises:
            KeyError: A key is missing.
        """
        bound: list[str] = []
        for name in self.keys:
            if name.endswith("..."):
                bound += given.get(name[:-3]) or ()
                continue
            key = given.get(name[:-1]) if name.endswith("?") else given[name]
            bound.append(key if isinstance(key, str) else bound[0])
        return bound

    def decode(self, reply: Any) -> "Reply":
        """Check a raw reply against the header.

        Raises:
            RuntimeError: The script answered something its header does not list.
        """
        parts: list[Any] = list(reply) if isinstance(reply, list) else [None]  # pyright: ignore[reportUnknownArgumentType]
        if not isinstance(parts[0], bytes):
            raise RuntimeError(f"{self.name}.lua answered something else than a word with data")
        word, values = parts[0].decode(), tuple(parts[1:])
        if self.replies.get(word) != len(values):
            raise RuntimeError(f"{self.name}.lua answered {word} with {len(values)} values, which its header does not list")
        return Reply(word=word, values=values)


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A command's answer: a word and its data, as the server sent it (int or bytes)."""

    word: str
    values: tuple[Any, ...]

    def integer(self, index: int) -> int:
        """One value as a number."""
        return int(self.values[index])

    def text(self, index: int) -> str:
        """One value as text."""
        value: Any = self.values[index]
        return value.decode() if isinstance(value, bytes) else str(value)


def lua_folder() -> Path:
    """Where the commands are: inside the installed package, else at the root of the source tree.

    Raises:
        FileNotFoundError: Neither exists.
    """
    inside = Path(str(files("reattach"))) / "lua"
    for folder in (inside, inside.parents[2] / "lua"):
        if (folder / "create.lua").is_file():
            return folder
    raise FileNotFoundError(f"the Lua commands are neither in {inside} nor in {inside.parents[2] / 'lua'}")


def _headers(source: str) -> dict[str, str]:
    return {key: value.strip() for key, value in _HEADER.findall(source)}


def _include(folder: Path, names: str, seen: list[str]) -> list[str]:
    parts: list[str] = []
    for name in names.split():
        if name in seen:
            continue
        seen.append(name)
        source = (folder / "include" / f"{name}.lua").read_text("utf-8")
        parts += _include(folder, _headers(source).get("uses", ""), seen)
        parts.append(source)
    return parts


def _bindings(keys: tuple[str, ...], args: tuple[str, ...]) -> list[str]:
    lines: list[str] = []
    if any(key.endswith("?") for key in keys):
        lines.append("local function key_or_nil(i) return (KEYS[i] ~= KEYS[1]) and KEYS[i] or nil end")
    for i, key in enumerate(keys, 1):
        if key.endswith("..."):
            lines.append(f"local {key[:-3]} = {{ unpack(KEYS, {i}) }}")
            continue
        lines.append(f"local {key[:-1]} = key_or_nil({i})" if key.endswith("?") else f"local {key} = KEYS[{i}]")
    for i, arg in enumerate(args, 1):
        name, _, kind = arg.partition(":")
        if name.endswith("..."):
            lines.append(f"local {name[:-3]} = {{ unpack(ARGV, {i}) }}")
        else:
            lines.append(f"local {name} = tonumber(ARGV[{i}])" if kind == _INT else f"local {name} = ARGV[{i}]")
    return lines


def assemble(folder: Path, name: str) -> Script:
    """Read one command and the files it uses.

    Raises:
        ValueError: Its header is incomplete.
    """
    source = (folder / f"{name}.lua").read_text("utf-8")
    header = _headers(source)
    if not source.startswith(f"-- {name}: ") or "keys" not in header or "reply" not in header:
        raise ValueError(f"{name}.lua needs a header: its name with one sentence, keys, args and reply")
    keys, args = tuple(header["keys"].split()), tuple(header.get("args", "").split())
    replies = {words[0]: len(words) - 1 for words in (part.split() for part in header["reply"].split("|"))}
    parts = _include(folder, header.get("uses", ""), [])
    text = "\n".join([*parts, *_bindings(keys, args), source])
    return Script(
        name=name,
        keys=keys,
        args=tuple(a.partition(":")[0] for a in args),
        replies=replies,
        text=text,
        sha=hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(),
    )


@cache
def load_scripts() -> Mapping[str, Script]:
    """Every command, by name."""
    folder = lua_folder()
    return {path.stem: assemble(folder, path.stem) for path in sorted(folder.glob("*.lua"))}
