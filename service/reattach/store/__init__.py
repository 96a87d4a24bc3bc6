"""The store: the only package that knows Redis."""

from .bells import Bells, Ring, Wake, Wakes
from .handouts import Handout, Handouts
from .leases import Appended, Claim, Delivery, Finished, Intended, Lease, Parked, Renewal
from .records import CancelReply, Created, RunPage
from .runs import Read
from .server import ServerFacts
from .session_log import Batch, Placed
from .store import Store
from .sweep import Sweep, SweepReport

__all__ = [
    "Appended",
    "Batch",
    "Bells",
    "CancelReply",
    "Claim",
    "Created",
    "Delivery",
    "Finished",
    "Handout",
    "Handouts",
    "Intended",
    "Lease",
    "Parked",
    "Placed",
    "Read",
    "Renewal",
    "Ring",
    "RunPage",
    "ServerFacts",
    "Store",
    "Sweep",
    "SweepReport",
    "Wake",
    "Wakes",
]
