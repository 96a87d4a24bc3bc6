"""The container image builds and serves, checked without a registry: the base is a fresh Debian under the name the Dockerfile asks for."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from reattach.core.settings import Settings

from ..support.processes import Child, free_port
from ..support.waiting import wait_until_sync
from .tree import ROOT

BASE: Final = "docker.io/library/python:3.13-slim"
IMAGE: Final = "localhost/reattach-check"
CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
MIRROR: Final = "http://deb.debian.org/debian"

pytestmark = [
    pytest.mark.skipif(
        "REATTACH_TEST_IMAGE" not in os.environ or shutil.which("buildah") is None or shutil.which("debootstrap") is None,
        reason="takes minutes and root: apt-get install buildah debootstrap, then REATTACH_TEST_IMAGE=1 pytest tests/house/test_image.py",
    ),
    pytest.mark.timeout(900),
]


def run(*command: str | Path) -> str:
    """Run a command; its output, or a failure that shows it."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Debian with any Python from 3.11 on; made once and kept by buildah."""
    if BASE in run("buildah", "images", "--format", "{{.Name}}:{{.Tag}}"):
        return BASE
    root = tmp_path_factory.mktemp("base") / "root"
    run("debootstrap", "--variant=minbase", "--include=ca-certificates,python3,python3-pip,python3-venv", "bookworm", root, MIRROR)
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    shutil.copy(CERTIFICATES, root / CERTIFICATES.relative_to("/"))
    (root / "etc/pip.conf").write_text(f"[global]\ncert = {CERTIFICATES}\n", "utf-8")
    made = run("buildah", "from", "scratch")
    run("buildah", "copy", "--quiet", made, root, "/")
    run("buildah", "config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", made)
    run("buildah", "commit", "--rm", "--quiet", made, BASE)
    return BASE


@pytest.fixture(scope="module")
def container(base: str) -> Iterator[str]:
    """A container of the image, built as the Dockerfile says."""
    build = ("buildah", "bud", "--format", "docker", "--isolation", "chroot", "--pull-never", "--network", "host", "--tag", IMAGE)
    run(*build, ROOT)
    name = run("buildah", "from", "--pull-never", IMAGE)
    yield name
    run("buildah", "rm", name)
    run("buildah", "rmi", IMAGE)


def config(container: str) -> dict[str, Any]:
    """What the image says of itself."""
    return json.loads(run("buildah", "inspect", container))["Docker"]["config"]


def test_the_image_runs_as_nobody_in_particular(container: str) -> None:
    """Its user is not root, and its health check needs nothing but Python."""
    facts = config(container)
    assert facts["User"].split(":")[0] not in ("", "0", "root")
    assert facts["Healthcheck"]["Test"][:2] == ["CMD", "python"]
    assert run("buildah", "run", "--isolation", "chroot", container, "--", "id", "-u") != "0"


def test_the_image_serves_with_nothing_but_a_redis_url(container: str, settings: Settings, tmp_path: Path) -> None:
    """Its own command answers /healthz and /readyz, its health check passes, and it stops on SIGTERM."""
    facts, port = config(container), free_port()
    env = [f"--env=REATTACH_{name}={value}" for name, value in (("REDIS", settings.redis), ("PREFIX", settings.prefix), ("PORT", port))]
    inside = ["buildah", "run", "--isolation", "chroot", "--network", "host", *env, container, "--"]
    served = Child("the container", [*inside, *facts["Entrypoint"], *facts["Cmd"]], log=tmp_path / "container.log")

    def answers(path: str) -> bool:
        assert served.alive, served.output()
        try:
            return urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).status == 200
        except URLError:
            return False

    served.start()
    try:
        wait_until_sync(lambda: answers("/healthz"), "the container to be alive", timeout=30)
        wait_until_sync(lambda: answers("/readyz"), "the container to be ready", timeout=30)
        run(*inside, *facts["Healthcheck"]["Test"][1:])
        served.term()
        served.wait(20)
    finally:
        served.close()
