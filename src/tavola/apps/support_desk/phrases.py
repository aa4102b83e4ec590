"""Texts for the demo data: complaints of customers, assembled from parts.

A complaint consists of a device, its location, a symptom, when it happens and what was tried, in English or Italian. The parts combine to
more texts than a month has tickets, and texts about one topic share words, so that similar ones can be found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """What can go wrong with one kind of device, in one language."""

    product: str
    devices: tuple[str, ...]
    symptoms: tuple[str, ...]
    circumstances: tuple[str, ...]
    attempts: tuple[str, ...]
    room: str = "room"


_ROOMS = tuple(
    f"{building}{floor}.{door:02}" for building in "ABCDEFGHKL" for floor in range(5) for door in range(1, 25)
)


def complaint_text(topic: Topic, choose: Callable[[Sequence[str]], str]) -> str:
    """Return a customer's text about a topic; `choose` picks the parts."""
    return (
        f"{choose(topic.devices)} ({topic.room} {choose(_ROOMS)}) {choose(topic.symptoms)}.\n"
        f"{choose(topic.circumstances)}. {choose(topic.attempts)}."
    )


_SINCE = (
    "It began this morning",
    "It has been like this since the last update",
    "It happens about every second time",
    "Only the first job after a pause is affected",
    "Since we moved it to the other room it is worse",
    "It comes back after some hours",
)
_TRIED = (
    "We switched it off and on again, without success",
    "A colleague changed the cable, and nothing is different",
    "The self test says that everything is in order",
    "We went back to the previous settings and it stayed the same",
    "The steps in the manual were followed twice",
)
_DA_QUANDO = (
    "È cominciato questa mattina",
    "Succede dopo l'ultimo aggiornamento",
    "Capita circa una volta su due",
    "Dopo qualche ora il difetto ritorna",
    "Da quando è stato spostato è peggiorato",
)
_PROVATO = (
    "Spento e riacceso, senza risultato",
    "Il cavo è stato cambiato e non è servito",
    "L'autodiagnosi non trova nulla",
    "Seguite due volte le istruzioni del manuale",
)

TOPICS = (
    Topic(
        "printers",
        (
            "The office printer",
            "The label printer at packing",
            "The large format plotter",
            "The printer at reception",
        ),
        (
            "leaves grey stripes along the edge of every page",
            "pulls in three sheets at once and jams at the fuser",
            "reports an empty toner although the cartridge is new",
            "prints the first page and then waits for ever",
            "answers with error 49.4 as soon as a file has pictures",
            "does not take paper from tray two any more",
            "prints faded colours, blue above all",
        ),
        _SINCE,
        _TRIED,
    ),
    Topic(
        "network",
        (
            "The access point in hall 3",
            "The switch in the cabinet",
            "The VPN gateway",
            "The router of the branch",
        ),
        (
            "drops all connections for about a minute",
            "gives out addresses that are taken already",
            "is slow, a file that took seconds takes minutes",
            "loses the tunnel whenever the line is idle",
            "blinks amber on ports nine to twelve",
            "refuses the certificate since last night",
        ),
        _SINCE,
        _TRIED,
    ),
    Topic(
        "machines",
        ("The packaging machine", "The milling centre", "The conveyor of line 2", "The compressor"),
        (
            "stops with an alarm on the emergency circuit although nobody pressed it",
            "vibrates at high speed and the tolerance is lost",
            "shows an overheated spindle after ten minutes",
            "no longer finds its reference point at the start",
            "loses pressure, and the leak cannot be heard",
            "counts every third piece twice",
        ),
        _SINCE,
        _TRIED,
    ),
    Topic(
        "software",
        ("The warehouse terminal", "The planning client", "The shop floor tablet"),
        (
            "freezes when the order list is opened",
            "asks for the password after every scan",
            "shows yesterday's stock until it is restarted",
            "cannot save, the message speaks of a locked record",
            "has not sent its confirmations since noon",
        ),
        _SINCE,
        _TRIED,
    ),
    Topic(
        "printers",
        ("La stampante dell'ufficio", "La stampante di etichette", "Il plotter"),
        (
            "lascia righe grigie sul bordo di ogni pagina",
            "prende tre fogli alla volta e si inceppa",
            "segnala toner esaurito con la cartuccia nuova",
            "stampa la prima pagina e poi resta in attesa",
            "non prende più la carta dal secondo cassetto",
        ),
        _DA_QUANDO,
        _PROVATO,
        "locale",
    ),
    Topic(
        "network",
        ("L'access point del capannone", "Lo switch nell'armadio", "Il router della filiale"),
        (
            "perde tutte le connessioni per un minuto",
            "assegna indirizzi già in uso",
            "è lento, un file richiede minuti",
            "non accetta più il certificato",
        ),
        _DA_QUANDO,
        _PROVATO,
        "locale",
    ),
    Topic(
        "machines",
        ("La confezionatrice", "Il centro di fresatura", "Il nastro della linea 2", "Il compressore"),
        (
            "si ferma con un allarme sul circuito di emergenza",
            "vibra ad alta velocità e perde la tolleranza",
            "segnala il mandrino surriscaldato dopo dieci minuti",
            "non trova più il punto di riferimento all'avvio",
            "perde pressione senza che si senta la perdita",
        ),
        _DA_QUANDO,
        _PROVATO,
        "locale",
    ),
)

ANSWERS = (
    "Firmware updated, and the settings brought back",
    "Worn part replaced under the contract",
    "Settings corrected remotely and tested with the customer",
    "Sent the steps, the customer confirms that it works",
    "Nuova configurazione inviata, il cliente conferma",
    "Pezzo usurato sostituito, prova superata",
)
REASONS = (
    "The defect is not in the handbook and the line stands still",
    "Third visit for the same fault",
    "A firmware fault is suspected, it needs whoever wrote it",
    "Il cliente ha un contratto con intervento in giornata",
)
FAILURES = (
    "The model does not answer, it must be asked again",
    "The description does not suffice for an answer",
)
COMMENTS = (
    "Quick and clear",
    "It worked at once",
    "The second answer was the right one",
    "Too long, but correct",
    "Risolto al primo tentativo",
    "Non era il nostro modello",
)
NOTES = (
    "Called the customer, who sends the log tonight",
    "The same was seen last month on another line; looking at what helped then",
    "Part ordered, expected tomorrow",
    "Richiamato il cliente, attende il tecnico",
)
HANDED_ON = (
    "Handed on: this is the network's, not the machine's",
    "Handed on for the weekend",
    "Passato al collega che conosce l'impianto",
)
REOPENED = (
    "It worked for some hours, and now it is back",
    "Another unit shows the same since the change",
    "Dopo il riavvio il difetto è tornato",
)
UNMENDED = (
    "Cannot be mended, the unit is replaced",
    "The maker no longer has the part; a new contract is offered",
)
