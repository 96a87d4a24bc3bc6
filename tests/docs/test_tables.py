"""The README's tables and the code say the same: nothing is missing, nothing is left over."""

import re
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import click
import msgspec
import pytest
from prometheus_client.metrics import MetricWrapperBase

from reattach.cli.main import main
from reattach.cli.options import flag, variable
from reattach.core import event
from reattach.core.errors import CursorError, ReattachError, WorkError, every_error
from reattach.core.settings import Settings
from reattach.http.routes import TABLE
from reattach.http.sse import CloseReason
from reattach.obs.metrics import REGISTRY

from . import readme

PARENTS = (ReattachError, CursorError, WorkError)
"""Never raised themselves; each has the code of one of its children."""


def shown(default: Any) -> str:
    """A default as the table shows it."""
    if default in (None, ""):
        return ""
    return (
        f"`{default:g}`"
        if isinstance(default, float) and default < 1_000_000
        else f"`{default:.0f}`"
        if isinstance(default, float)
        else f"`{default}`"
    )


def test_settings() -> None:
    """Each has its flag, variable, default and meaning, in the code's order and words."""
    hints = get_type_hints(Settings, include_extras=True)
    wanted: list[tuple[str, ...]] = []
    for field in msgspec.structs.fields(Settings):
        [meaning] = [part.description for part in get_args(hints[field.name]) if isinstance(part, msgspec.Meta)]
        wanted.append((f"`{flag(field.name)}`", f"`{variable(field.name)}`", shown(field.default), str(meaning)))
    assert [row for row in readme.table("flag", "variable").rows if row[0]] == wanted


def test_error_codes() -> None:
    """Every code with its status, its title and whether the same call may be made again; those for workers are the last."""
    wanted = {cls.code: (str(cls.status), cls.title(), "yes" if cls.retryable else "") for cls in every_error() if cls not in PARENTS}
    found = {readme.names(code)[0]: (status, *rest) for code, status, *rest in readme.table("code", "status").rows}
    assert found == wanted
    workers = [cls.code for cls in every_error() if issubclass(cls, WorkError) and cls is not WorkError]
    assert set(list(found)[-len(workers) :]) == set(workers)
    assert len(workers) == 6
    assert "The last six are told to workers." in readme.text()


def test_event_types() -> None:
    """Every type that the service writes or reads; those of the delta class are marked."""
    cells = [row[0] for row in readme.table("type", "payload").rows]
    types = {
        value
        for name, value in vars(event).items()
        if name.isupper() and isinstance(value, str) and re.fullmatch(event.TYPE_PATTERN, value)
    }
    assert sorted(name for cell in cells for name in readme.names(cell)) == sorted(types)
    assert {name for cell in cells for name in re.findall(r"`([^`]+)` \*delta\*", cell)} == event.DELTA_TYPES


def test_control_frames() -> None:
    """Each reason for which a stream is closed is named."""
    [told] = re.findall(r"`stream\.closing` \(.*?: ([^)]*)\)", readme.text().replace("\n", " "))
    assert set(readme.names(told)) == set(get_args(CloseReason))


def metrics() -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Name, labels and meaning of every metric of ours."""
    # The public interface tells labels only of metrics that have counted something.
    registry: Any = REGISTRY
    for collector in list(registry._collector_to_names):
        if isinstance(collector, MetricWrapperBase):
            [made] = collector.describe()
            labels: Any = vars(collector)["_labelnames"]
            yield made.name + ("_total" if made.type == "counter" else ""), labels, made.documentation


def test_metrics() -> None:
    """Every metric with its labels."""
    found = [(readme.names(name)[0], tuple(readme.names(labels)), text) for name, labels, text in readme.table("metric", "labels").rows]
    assert found == list(metrics())


def test_endpoints() -> None:
    """Everything that is served, with every parameter and every member of a body."""
    rows = [row for table in readme.tables() if table.columns == ("request", "what it does") for row in table.rows]
    served = {f"{endpoint.method} {endpoint.path}": endpoint for endpoint in TABLE}
    assert sorted(readme.names(row[0])[0] for row in rows) == sorted(served)
    for request, told in rows:
        endpoint = served[readme.names(request)[0]]
        assert set(re.findall(r"\?(\w+)=", told)) == set(endpoint.query.__struct_fields__), request
        if endpoint.body is not None:
            assert set(endpoint.body.__struct_fields__) == {name for name in readme.names(told) if re.fullmatch(r"[a-z_]+", name)}, request


def commands(group: click.Command = main, prefix: str = "reattach") -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name."""
    if not isinstance(group, click.Group):
        yield prefix, group
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from commands(command, f"{prefix} {name}")


def test_commands() -> None:
    """Every command with its arguments, as its usage line has them."""
    usages: set[str] = set()
    for name, command in commands():
        words = command.collect_usage_pieces(click.Context(command))
        usages.add(" ".join([name, *(word for word in words if word != "[OPTIONS]")]))
    assert {readme.names(row[0])[0] for row in readme.table("command", "what it does").rows} == usages


@pytest.mark.parametrize("number", range(len(readme.in_language("bash"))))
def test_what_is_not_run_could_be(number: int) -> None:
    """The commands that need a cluster or Docker exist, with their options, and name files that exist."""
    for line in readme.in_language("bash")[number].text.splitlines():
        words = line.replace('"', "").split()
        if words[0] == "reattach":
            context = click.Context(main)
            name, command, rest = main.resolve_command(context, words[1:])
            assert command is not None
            command.make_context(name, rest, parent=context)
        paths = [word for word in words if "/" in word and ":" not in word and not word.startswith("/")]
        assert all((readme.README.parent / path).exists() for path in paths), line


def test_links_lead_somewhere() -> None:
    """Files that are linked exist, and so do the sections."""
    sections = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"(?m)^#+ (.*)$", readme.text())}
    for target in re.findall(r"\]\(([^)]+)\)", readme.text()):
        assert target[1:] in sections if target.startswith("#") else (readme.README.parent / target).exists(), target
