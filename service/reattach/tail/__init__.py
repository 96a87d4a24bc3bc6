"""Delivery: what is new in the runs that somebody follows here, encoded once, in order, for any number of viewers."""

from .deliver import Sink, deliver
from .ended import StreamEnded
from .follow import changed, follow
from .followed import Followed
from .frames import REDACTED, Frame, Framer, Slice
from .hub import Hub, HubStats

__all__ = ["REDACTED", "Followed", "Frame", "Framer", "Hub", "HubStats", "Sink", "Slice", "StreamEnded", "changed", "deliver", "follow"]
