"""The actor kit: typed asks, a mailbox that strands nobody, supervision, the tree of tasks. For users' own actors too."""

from protocol.errors import ActorCrashed, ActorGone, AskCycle, MailboxFull

from ._ask import Ask, Reply
from ._mailbox import Mailbox, MailboxStatistics, Port
from ._supervision import Actor, Restarts, run_once, supervise
from ._tree import format_task_tree

__all__ = (
    "Actor",
    "ActorCrashed",
    "ActorGone",
    "Ask",
    "AskCycle",
    "Mailbox",
    "MailboxFull",
    "MailboxStatistics",
    "Port",
    "Reply",
    "Restarts",
    "format_task_tree",
    "run_once",
    "supervise",
)
