"""A believable month of a service desk: a few hundred tickets of some forty callers, the same from the same seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from tavola import Entropy, Progress
from tavola.apps.service_desk.domain import OPEN
from tavola.apps.service_desk.model import Comment, Ticket
from tavola.apps.service_desk.store import ServiceDeskStore

TICKETS = 320
SESSIONS = 30
TELEPHONES = tuple(
    f"+1 202 555 01{number:02}" for number in range(10)
)  # kept for fiction by the numbering plan
DAYS = 30

_ISSUES = (
    (
        "My laptop won't turn on after pressing the power button",
        "Held the power button for 30 seconds, no change",
    ),
    ("Email not working in Outlook", "Tried restarting Outlook but still not working"),
    ("VPN connects and drops again after a minute", "Same on the guest network"),
    ("The printer on the second floor prints empty pages", "Changed the toner, still empty"),
    ("Cannot open the shared finance folder", "A colleague on the same team can open it"),
    ("Account locked after holiday", "The reset link says it has expired"),
    ("Screen flickers when the docking station is connected", "Another cable makes no difference"),
    ("The meeting room display shows no signal", "It works with the old adapter"),
    ("Teams calls have no sound on the headset", "Sound works in the browser"),
    ("Expense form does not accept attachments", "A smaller PDF was accepted"),
    ("Wireless network is slow near the canteen", "Two desks further it is fine"),
    ("Software centre says that my device is not compliant", "The update ran over night, same message"),
)
_DETAILS = (
    "",
    "; since this morning",
    "; it worked last week",
    "; happens every day",
    "; urgent, a customer waits",
)
_ANSWERS = (
    "Checked internet connection - it's working fine",
    "Caller asked for the state of the ticket",
    "Explained the workaround; the caller will call again",
    "Second line has taken over",
    "Caller says that it works again since noon",
)
_STATUSES = (
    OPEN,
    OPEN,
    OPEN,
    "in_progress",
    "resolved",
)  # the last two are written by the second line's own tools


class _Draw:
    """Choices out of an `Entropy`, so that one seed gives one month."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def below(self, bound: int) -> int:
        """Return a number from 0 up to a bound that is not reached."""
        return int.from_bytes(self._entropy.bytes(6), "big") % bound

    def of(self, choices: tuple[str, ...]) -> str:
        """Return one of several."""
        return choices[self.below(len(choices))]


async def load(
    store: ServiceDeskStore,
    *,
    entropy: Entropy,
    now: datetime,
    progress: Callable[[Progress], object] | None = None,
    tickets: int = TICKETS,
) -> int:
    """Store so many tickets of the month before a moment, and return how many they are."""
    made = list(month(store, entropy=entropy, now=now, tickets=tickets))
    return await store.db.put_many(made, progress=progress)


def month(
    store: ServiceDeskStore, *, entropy: Entropy, now: datetime, tickets: int = TICKETS
) -> Iterator[Ticket]:
    """Give tickets of the month before a moment, in no order; some callers call more often than others."""
    draw = _Draw(entropy)
    callers = [f"poc-user-{number:03}" for number in range(1, SESSIONS + 1)]
    callers += [store.callers.caller_id(number) for number in TELEPHONES]
    for _ in range(tickets):
        issue, first = _ISSUES[draw.below(len(_ISSUES))]
        created_at = now - timedelta(microseconds=1 + draw.below(DAYS * 86_400_000_000))
        comments = list(_comments(draw, first, created_at, now))
        yield Ticket(
            ticket_id=entropy.uuid(),
            caller_id=callers[min(draw.below(len(callers)), draw.below(len(callers)))],
            issue_description=issue + draw.of(_DETAILS),
            status=draw.of(_STATUSES) if comments else OPEN,
            created_at=created_at,
            updated_at=comments[-1].added_at if comments else created_at,
            comments=comments,
        )


def _comments(draw: _Draw, first: str, created_at: datetime, now: datetime) -> Iterator[Comment]:
    text, at = first, created_at
    for _ in range(draw.below(5)):
        at += timedelta(microseconds=1 + draw.below(20 * 3_600_000_000))
        if at > now:
            return
        yield Comment(comment_text=text, added_at=at)
        text = draw.of(_ANSWERS)
