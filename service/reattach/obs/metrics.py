"""What Prometheus is told. One registry per process; labels have few values by construction (never a run, tenant or user)."""

import os
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

REGISTRY: Final = CollectorRegistry()
CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

# A second series for every counter, of when it began: nobody asks for it, and it doubles what is scraped.
disable_created_metrics()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

REQUESTS: Final = Histogram(
    "reattach_http_request_seconds",
    "Time to answer a request; of a stream: until it ended.",
    ("method", "route", "status"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600, 3600),
    registry=REGISTRY,
)
PROBLEMS: Final = Counter("reattach_http_problems_total", "Requests that were answered with a problem.", ("code",), registry=REGISTRY)
RUNS_CREATED: Final = Counter(
    "reattach_runs_created_total", "Runs this process created (not those an idempotency key found).", registry=REGISTRY
)
CANCELS: Final = Counter("reattach_cancel_requests_total", "Answers to cancel requests.", ("disposition",), registry=REGISTRY)
STREAMS: Final = Gauge("reattach_streams", "Open event streams.", registry=REGISTRY, multiprocess_mode="livesum")
STREAMS_ENDED: Final = Counter("reattach_streams_ended_total", "Event streams that ended, by why.", ("reason",), registry=REGISTRY)
DELIVERED: Final = Counter("reattach_events_delivered_total", "Events written to streams and pages.", ("transport",), registry=REGISTRY)
KEY_FETCHES: Final = Counter(
    "reattach_key_fetches_total", "Looks for the keys that tokens are checked with: ok or failed.", ("result",), registry=REGISTRY
)
POLICY_QUESTIONS: Final = Counter(
    "reattach_policy_questions_total", "Questions to a policy's address, by answer.", ("answer",), registry=REGISTRY
)


def render() -> bytes:
    """Every metric in Prometheus' text form; of processes that serve one port together: their sums, whichever of them is asked."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY)
    together = CollectorRegistry()
    MultiProcessCollector(together)
    return generate_latest(together)
