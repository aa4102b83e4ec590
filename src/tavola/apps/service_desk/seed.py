"""Demo data: a month of tickets of forty callers, the same for the same entropy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from tavola import Entropy, Progress
from tavola.apps.seeding import RandomChoices
from tavola.apps.service_desk.domain import OPEN
from tavola.apps.service_desk.model import Comment, ServiceTicket
from tavola.apps.service_desk.store import ServiceDeskStore

TICKETS = 320
SESSIONS = 30
TELEPHONES = tuple(f"+1 202 555 01{number:02}" for number in range(10))  # reserved for fictional use
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
    ("The conference display shows no signal", "It works with the old adapter"),
    ("Teams calls have no sound on the headset", "Sound works in the browser"),
    ("Expense form does not accept attachments", "A smaller PDF was accepted"),
    ("Wi-Fi is slow near the canteen", "It is fine two desks away"),
    (
        "The software centre says that my device is not compliant",
        "Installed the update overnight, same message",
    ),
)
_DETAILS = (
    "",
    "; since this morning",
    "; it worked last week",
    "; happens every day",
    "; urgent, a customer is waiting",
)
_ANSWERS = (
    "Checked internet connection - it's working fine",
    "Caller asked for the status of the ticket",
    "Explained the workaround; the caller will call back",
    "Escalated to second-level support",
    "Caller confirms that it has worked since noon",
)
# Other programs set the last two
_STATUSES = (
    OPEN,
    OPEN,
    OPEN,
    "in_progress",
    "resolved",
)


async def load(
    store: ServiceDeskStore,
    *,
    entropy: Entropy,
    now: datetime,
    progress: Callable[[Progress], object] | None = None,
    tickets: int = TICKETS,
) -> int:
    """Write tickets of the month before `now` and return how many."""
    generated = list(month(store, entropy=entropy, now=now, tickets=tickets))
    return await store.db.put_many(generated, progress=progress)


def month(
    store: ServiceDeskStore, *, entropy: Entropy, now: datetime, tickets: int = TICKETS
) -> Iterator[ServiceTicket]:
    """Generate tickets of the month before `now`, in no order; some callers call more often than others."""
    random = RandomChoices(entropy)
    callers = [f"poc-user-{number:03}" for number in range(1, SESSIONS + 1)]
    callers += [store.callers.caller_id(number) for number in TELEPHONES]
    for _ in range(tickets):
        issue, first = _ISSUES[random.below(len(_ISSUES))]
        created_at = now - timedelta(microseconds=1 + random.below(DAYS * 86_400_000_000))
        comments = list(_comments(random, first, created_at, now))
        yield ServiceTicket(
            ticket_id=entropy.uuid(),
            caller_id=callers[min(random.below(len(callers)), random.below(len(callers)))],
            issue_description=issue + random.choose(_DETAILS),
            status=random.choose(_STATUSES) if comments else OPEN,
            created_at=created_at,
            updated_at=comments[-1].added_at if comments else created_at,
            comments=comments,
        )


def _comments(random: RandomChoices, first: str, created_at: datetime, now: datetime) -> Iterator[Comment]:
    text, at = first, created_at
    for _ in range(random.below(5)):
        at += timedelta(microseconds=1 + random.below(20 * 3_600_000_000))
        if at > now:
            return
        yield Comment(comment_text=text, added_at=at)
        text = random.choose(_ANSWERS)
