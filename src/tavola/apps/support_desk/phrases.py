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
    location: str = "office"


_LOCATIONS = tuple(
    f"{building}{floor}.{number:02}"
    for building in "ABCDEFGHKL"
    for floor in range(5)
    for number in range(1, 25)
)


def complaint_text(topic: Topic, choose: Callable[[Sequence[str]], str]) -> str:
    """Return a customer's text about a topic; `choose` picks the parts."""
    return (
        f"{choose(topic.devices)} ({topic.location} {choose(_LOCATIONS)}) {choose(topic.symptoms)}.\n"
        f"{choose(topic.circumstances)}. {choose(topic.attempts)}."
    )


_SINCE = (
    "It began this morning",
    "It has been like this since the last update",
    "It happens about half of the time",
    "Only the first job after a pause is affected",
    "It got worse after we moved it to another office",
    "It comes back after some hours",
)
_TRIED = (
    "We switched it off and on again, without success",
    "A colleague replaced the cable, without success",
    "The self-test reports no errors",
    "We restored the previous settings, without success",
    "We followed the steps in the manual twice",
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
            "prints the first page and then stops",
            "reports error 49.4 when a file contains images",
            "no longer takes paper from tray 2",
            "prints faded colours, especially blue",
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
            "assigns addresses that are already in use",
            "is slow: a file that took seconds takes minutes",
            "loses the tunnel whenever the line is idle",
            "blinks amber on ports nine to twelve",
            "has been rejecting the certificate since last night",
        ),
        _SINCE,
        _TRIED,
    ),
    Topic(
        "machines",
        ("The packaging machine", "The milling centre", "The conveyor of line 2", "The compressor"),
        (
            "stops with an alarm on the emergency circuit although the button was not pressed",
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
            "cannot save and reports a locked record",
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
    "Firmware updated and settings restored",
    "Worn part replaced under the contract",
    "Settings corrected remotely and tested with the customer",
    "Sent instructions; the customer confirms that it works",
    "Nuova configurazione inviata, il cliente conferma",
    "Pezzo usurato sostituito, prova superata",
)
REASONS = (
    "The defect is not in the manual and the line is down",
    "Third visit for the same fault",
    "Suspected firmware bug, needs the firmware team",
    "Il cliente ha un contratto con intervento in giornata",
)
FAILURES = (
    "The AI model did not respond, try again",
    "The description is not detailed enough for an answer",
)
COMMENTS = (
    "Quick and clear",
    "Worked immediately",
    "The second answer was the right one",
    "Too long, but correct",
    "Risolto al primo tentativo",
    "Non era il nostro modello",
)
NOTES = (
    "Called the customer, who will send the log tonight",
    "Same fault as last month on another line; checking what helped then",
    "Part ordered, expected tomorrow",
    "Richiamato il cliente, attende il tecnico",
)
REASSIGNED = (
    "Reassigned: this is a network fault, not a machine fault",
    "Reassigned for the weekend",
    "Passato al collega che conosce l'impianto",
)
REOPENED = (
    "It worked for some hours, then the fault came back",
    "Another unit has the same fault since the change",
    "Dopo il riavvio il difetto è tornato",
)
UNREPAIRABLE = (
    "Cannot be repaired, the unit will be replaced",
    "The manufacturer no longer has the part; a new contract was offered",
)
