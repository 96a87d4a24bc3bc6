"""What a person is told who asks, or who asks wrongly."""

from itertools import pairwise

import msgspec
import pytest
from click.testing import CliRunner

from reattach.cli.main import main
from reattach.cli.options import ALL, environment, flag, variable
from reattach.core.settings import Settings
from reattach.core.version import __version__

from .shell import reattach

COMMANDS = ["dev", "serve", "work", "tail", "runs", "runs ls", "runs show", "runs cancel", "runs resolve", "token", "revoke", "doctor"]


def run(*arguments: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Run a command inside this process; its exit code and everything it said."""
    result = CliRunner().invoke(main, arguments, env=env, prog_name="reattach", terminal_width=200)
    return result.exit_code, result.output


def test_the_version() -> None:
    """One word and a number."""
    assert run("--version") == (0, f"reattach {__version__}\n")


def test_help_names_every_command_and_exit_code() -> None:
    """A newcomer needs no other page to begin."""
    code, text = run("--help")
    assert code == 0
    for name in ("dev", "serve", "work", "tail", "runs", "doctor"):
        assert f"\n  {name} " in text
    assert "      reattach dev                     everything on this machine" in text
    for exit_code in range(5):
        assert f"\n      {exit_code}  " in text
    assert "\b" not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    """Each has a sentence and explains each of its options."""
    code, text = run(*command.split(), "--help")
    assert code == 0
    assert "\b" not in text
    options = text.partition("Options:")[2].partition("Commands:")[0]
    lines = [*options.splitlines(), ""]
    # An explanation stands beside its option, or, where that is long, on the next line.
    silent = [a for a, b in pairwise(lines) if a.strip().startswith("--") and len(a.split("  ")) < 3 and not b.startswith("        ")]
    assert not silent


@pytest.mark.parametrize("command", ["dev", "serve", "work"])
def test_every_setting_is_a_flag_and_a_variable(command: str) -> None:
    """Nothing that can be set is hidden."""
    _, text = run(command, "--help")
    assert [name for name in ALL if f"  {flag(name)} " not in text or f"env var: {variable(name)}" not in text] == []


def test_settings_survive_the_way_into_a_child_process() -> None:
    """What one process was given, the other gets, exactly."""
    settings = Settings(redis="unix:///a%20b", lease=1.5, port=0, max_body=2048, cors="https://a.example")
    given = environment(settings)
    read = {f.name: given[variable(f.name)] for f in msgspec.structs.fields(Settings) if variable(f.name) in given}
    assert msgspec.convert(read, Settings, strict=False) == settings


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["dev", "--prot", "1"], "'--port'"),
        (["dev", "--port", "99999"], "Invalid value for '--port' (env var: 'REATTACH_PORT'): expected int <= 65535"),
        (["dev", "--lease", "soon"], "Invalid value for '--lease' (env var: 'REATTACH_LEASE'): expected float"),
        (["dev", "--log-format", "xml"], "Invalid value for '--log-format'"),
        (["tail"], "Missing argument 'RUN'"),
        (["work"], "Missing argument 'MODULE:AGENTS'"),
        (["deploy"], "No such command 'deploy'"),
        (["runs", "ls", "--state", "done"], "'queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled'"),
    ],
)
def test_wrong_usage_is_explained(arguments: list[str], sentence: str) -> None:
    """Exit code 2, what was wrong, and where to read more."""
    code, text = run(*arguments)
    assert code == 2
    assert sentence in text
    assert "--help' for help" in text


def test_a_variable_is_checked_as_a_flag_is() -> None:
    """The sentence names the variable."""
    code, text = run("doctor", env={"REATTACH_SHARDS": "0"})
    assert code == 2
    assert "REATTACH_SHARDS" in text


def test_a_refused_url_is_not_repeated() -> None:
    """It may hold a password."""
    code, text = run("runs", "ls", "--redis", "http://user:hunter2@host")
    assert code == 4
    assert "must begin with redis://" in text
    assert "hunter2" not in text


@pytest.mark.parametrize("arguments", [["runs", "ls"], ["tail", "run_x"], ["serve"], ["work", "tests.support.agents:agents"]])
def test_a_store_that_is_not_there_is_one_sentence(arguments: list[str]) -> None:
    """No traceback; the code of the error, and where to look further."""
    ended = reattach(*arguments, env={"REATTACH_REDIS": "redis://127.0.0.1:1", "REATTACH_REDIS_TIMEOUT": "0.2"})
    assert ended.returncode == 4
    assert ended.stdout == ""
    assert ended.stderr == "Error: the store cannot be reached now [store_unavailable]; look with: reattach doctor\n"
