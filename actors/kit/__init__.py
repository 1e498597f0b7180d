"""The actor kit: typed asks, a mailbox that strands nobody, supervision. For users' own actors too."""

from protocol.errors import ActorCrashed, ActorGone, AskCycle, MailboxFull

from ._ask import Ask, Reply
from ._mailbox import Mailbox, MailboxStatistics, Port
from ._supervision import Actor, Restarts, run_once, supervise

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
    "run_once",
    "supervise",
)
