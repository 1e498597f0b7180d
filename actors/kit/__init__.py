"""The actor kit: typed asks, a mailbox that strands nobody, supervision, fair slots, the tree of tasks. For users' own too."""

from protocol.errors import ActorCrashed, ActorGone, AskCycle, MailboxFull

from ._ask import Ask, Reply
from ._fair import FairLimiter, SlotStatistics
from ._hosted import Directory, HostedActor
from ._mailbox import Mailbox, MailboxStatistics
from ._port import Port
from ._supervision import Actor, ActorStatistics, Restart, Restarts, run_once, supervise
from ._tree import format_task_tree
from ._waits import Party, current_party, party_here, waiting_for

__all__ = (
    "Actor",
    "ActorCrashed",
    "ActorGone",
    "ActorStatistics",
    "Ask",
    "AskCycle",
    "Directory",
    "FairLimiter",
    "HostedActor",
    "Mailbox",
    "MailboxFull",
    "MailboxStatistics",
    "Party",
    "Port",
    "Reply",
    "Restart",
    "Restarts",
    "SlotStatistics",
    "current_party",
    "format_task_tree",
    "party_here",
    "run_once",
    "supervise",
    "waiting_for",
)
