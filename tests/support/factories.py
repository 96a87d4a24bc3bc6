"""What the fixtures that start things are, for annotations."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from .proxy import Proxy
from .servers import RedisServer
from .service import Service
from .working import RunningWorker

Replicas: TypeAlias = Callable[..., Awaitable[Service]]
"""``await replicas(authenticator=…, keepalive=…)``: an API replica in this process."""
Workers: TypeAlias = Callable[..., Awaitable[RunningWorker]]
"""``await workers(agents, name=…, lease=…)``: a worker in this process."""
Proxies: TypeAlias = Callable[..., Awaitable[Proxy]]
"""``await proxies(port_or_url, filter=…)``: a fault proxy."""
OwnRedis: TypeAlias = Callable[..., RedisServer]
"""``own_redis(persist=True)``: a server of the test's own."""
