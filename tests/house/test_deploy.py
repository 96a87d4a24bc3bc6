"""What ``deploy/`` gives an operator is true."""

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from ..support.servers import RedisServer
from .tree import ROOT


def reattach(*arguments: str) -> str:
    """Run the command; its output, or a failure that shows it."""
    done = subprocess.run([sys.executable, "-m", "reattach", *arguments], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def directives(path: Path) -> tuple[str, ...]:
    """A configuration file's lines as flags."""
    lines = [shlex.split(line, comments=True) for line in path.read_text("utf-8").splitlines()]
    return tuple(word for name, *values in filter(None, lines) for word in (f"--{name}", *values))


def test_the_doctor_finds_nothing_wrong_with_our_redis_conf(own_redis: Callable[..., RedisServer]) -> None:
    """A server with ``deploy/redis.conf`` starts, and ``reattach doctor`` has neither an error nor a warning."""
    server = own_redis(options=directives(ROOT / "deploy" / "redis.conf"))
    with server.admin() as admin:
        assert admin.config_get("appendfsync") == {"appendfsync": "always"}
    found = reattach("doctor", "--redis", server.url).splitlines()
    assert found
    assert not [line for line in found if not line.startswith("ok ")]


@pytest.mark.parametrize("service", ["api", "worker"])
def test_the_commands_of_the_compose_file_exist(service: str) -> None:
    """What the containers are told to run is a command of this version, with the module that it names."""
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))
    name, *modules = compose["services"][service]["command"]
    assert f"reattach {name}" in reattach(name, "--help")
    for module, _, attribute in (text.partition(":") for text in modules):
        subprocess.run([sys.executable, "-c", f"import {module} as m; m.{attribute}"], check=True, timeout=30)
