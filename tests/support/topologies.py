"""Several servers as one: a cluster of three primaries, and a primary with a replica under Sentinels."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from .admin import Admin, RedisError, connect
from .processes import Child, free_port, is_free
from .servers import RedisServer, chosen_binary
from .waiting import wait_until_sync

SLOTS = 16384


class Cluster:
    """Three primaries that share all slots."""

    def __init__(self, nodes: list[RedisServer]) -> None:
        self.nodes = nodes

    @property
    def url(self) -> str:
        """The product's URL for it; two of three nodes are named, the third is found."""
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes[:2])

    def form(self) -> None:
        """Deal out the slots, introduce the nodes, wait until all agree."""
        share = SLOTS // len(self.nodes)
        for number, node in enumerate(self.nodes):
            last = SLOTS - 1 if node is self.nodes[-1] else (number + 1) * share - 1
            with node.admin() as admin:
                admin.execute_command("CLUSTER", "ADDSLOTSRANGE", number * share, last)
                admin.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
                if number:
                    admin.execute_command("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port)
        for node in self.nodes:
            with node.admin() as admin:
                wait_until_sync(lambda admin=admin: self._agrees(admin), f"{node.child.name} to know the cluster", timeout=20)

    def _agrees(self, admin: Admin) -> bool:
        info = admin.cluster("INFO")
        text = "\n".join(f"{k}:{v}" for k, v in info.items())
        return "cluster_state:ok" in text and f"cluster_known_nodes:{len(self.nodes)}" in text and f"cluster_size:{len(self.nodes)}" in text


@contextmanager
def running_cluster(folder: Path) -> Generator[Cluster]:
    """A cluster for one test."""
    options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
    with ExitStack() as stack:
        nodes: list[RedisServer] = []
        for number in range(3):
            node = RedisServer(folder / f"node-{number}", options=options, port=_cluster_port())
            stack.callback(node.close)
            nodes.append(node.start())
        cluster = Cluster(nodes)
        cluster.form()
        yield cluster


def _cluster_port() -> int:
    while True:
        port = free_port(22_000)
        if is_free(port + 10_000):  # where the cluster's bus listens
            return port


class Watched:
    """A primary and a replica under three Sentinels.

    Attributes:
        primary: The server that is primary at first.
        replica: The one that takes over.
    """

    NAME = "tests"

    def __init__(self, primary: RedisServer, replica: RedisServer, ports: list[int]) -> None:
        self.primary, self.replica, self.ports = primary, replica, ports

    @property
    def url(self) -> str:
        """The product's URL for it."""
        return f"redis+sentinel://{','.join(f'127.0.0.1:{port}' for port in self.ports)}/{self.NAME}"

    def fail_over(self) -> None:
        """Kill the primary hard and wait until the Sentinels name the replica."""
        self.primary.kill9()
        sentinel = connect(f"redis://127.0.0.1:{self.ports[0]}", timeout=2)
        try:

            def moved() -> bool:
                address: Any = sentinel.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.NAME)
                with self.replica.admin() as admin:
                    return int(address[1]) == self.replica.port and admin.execute_command("ROLE")[0] == b"master"

            wait_until_sync(moved, "the Sentinels to promote the replica", timeout=30)
        finally:
            sentinel.close()


@contextmanager
def running_sentinels(folder: Path) -> Generator[Watched]:
    """A watched pair for one test."""
    with ExitStack() as stack:
        primary = RedisServer(folder / "primary", options=("--repl-diskless-sync-delay", "0"))
        stack.callback(primary.close)
        primary.start()
        replica = RedisServer(folder / "replica", options=("--replicaof", "127.0.0.1", str(primary.port)))
        stack.callback(replica.close)
        replica.start()
        with replica.admin() as admin:
            wait_until_sync(lambda: admin.info("replication").get("master_link_status") == "up", "the replica's link")
        ports = [free_port() for _ in range(3)]
        for port in ports:
            stack.callback(_start_sentinel(folder, port, primary.port).close)
        for port in ports:
            _wait_for_sentinel(port)
        yield Watched(primary, replica, ports)


def _start_sentinel(folder: Path, port: int, primary: int) -> Child:
    config = folder / f"sentinel-{port}.conf"
    lines = [f"port {port}", "bind 127.0.0.1", f"dir {folder}", f"sentinel monitor {Watched.NAME} 127.0.0.1 {primary} 2"]
    lines += [f"sentinel down-after-milliseconds {Watched.NAME} 500", f"sentinel failover-timeout {Watched.NAME} 3000"]
    config.write_text("\n".join(lines) + "\n")
    child = Child(f"sentinel on {port}", [str(chosen_binary()), str(config), "--sentinel"], log=folder / f"sentinel-{port}.log")
    child.start()
    return child


def _wait_for_sentinel(port: int) -> None:
    client = connect(f"redis://127.0.0.1:{port}", timeout=2)

    def ready() -> bool:
        with suppress(RedisError):
            facts = client.sentinel_master(Watched.NAME)
            return facts["num-slaves"] >= 1 and facts["num-other-sentinels"] >= 2
        return False

    try:
        wait_until_sync(ready, f"the sentinel on {port} to know replica and peers", timeout=20)
    finally:
        client.close()
