"""Texts for the demo data: complaints of customers, assembled from parts, and what the desk writes about them.

A complaint consists of a device, its location, a symptom, when it happens and what was tried. The parts combine to more texts than a month
has tickets, and texts about one topic share words, so that similar ones can be found. A topic has one language, English or Italian, and
so have the notes, reasons and comments of its tickets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TicketPhrases:
    """What is written about a ticket after it was opened, in one language."""

    location: str
    answers: tuple[str, ...]
    reasons: tuple[str, ...]  # of an escalation
    failures: tuple[str, ...]
    comments: tuple[str, ...]  # of the customer's feedback
    notes: tuple[str, ...]
    reassigned: tuple[str, ...]
    reopened: tuple[str, ...]
    unrepairable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """What can go wrong with one kind of device: every symptom fits every device."""

    product: str
    devices: tuple[str, ...]
    symptoms: tuple[str, ...]
    circumstances: tuple[str, ...]
    attempts: tuple[str, ...]
    phrases: TicketPhrases


_LOCATIONS = tuple(
    f"{building}{floor}.{number:02}"
    for building in "ABCDEFGHKL"
    for floor in range(5)
    for number in range(1, 25)
)


def complaint_text(topic: Topic, choose: Callable[[Sequence[str]], str]) -> str:
    """Return a customer's text about a topic; `choose` picks the parts."""
    return (
        f"{choose(topic.devices)} ({topic.phrases.location} {choose(_LOCATIONS)}) {choose(topic.symptoms)}.\n"
        f"{choose(topic.circumstances)}. {choose(topic.attempts)}."
    )


_ENGLISH = TicketPhrases(
    location="room",
    answers=(
        "Firmware updated and settings restored",
        "Worn part replaced under the contract",
        "Settings corrected remotely and tested with the customer",
        "Sent instructions; the customer confirms that it works",
    ),
    reasons=(
        "The fault is not in the manual and work has stopped",
        "Third visit for the same fault",
        "Suspected firmware bug, needs the firmware team",
    ),
    failures=(
        "The AI model did not respond, try again",
        "The description is not detailed enough for an answer",
    ),
    comments=(
        "Quick and clear",
        "Worked immediately",
        "The second answer was the right one",
        "Too long, but correct",
    ),
    notes=(
        "Called the customer, who will send the log tonight",
        "Same fault as last month at another customer; checking what helped then",
        "Part ordered, expected tomorrow",
    ),
    reassigned=(
        "Reassigned to an engineer who knows this model",
        "Reassigned for the weekend",
    ),
    reopened=(
        "It worked for some hours, then the fault came back",
        "Another unit has the same fault since the change",
    ),
    unrepairable=(
        "Cannot be repaired, the unit will be replaced",
        "The manufacturer no longer has the part; a new contract was offered",
    ),
)
_ITALIAN = TicketPhrases(
    location="locale",
    answers=(
        "Nuova configurazione inviata, il cliente conferma",
        "Pezzo usurato sostituito, prova superata",
        "Firmware aggiornato e impostazioni ripristinate",
    ),
    reasons=(
        "Il cliente ha un contratto con intervento in giornata",
        "Terzo intervento per lo stesso guasto",
        "Il guasto non è nel manuale e il lavoro è fermo",
    ),
    failures=(
        "Il modello di IA non ha risposto, riprovare",
        "La descrizione non basta per una risposta",
    ),
    comments=(
        "Risolto al primo tentativo",
        "Non era il nostro modello",
        "Risposta chiara e veloce",
    ),
    notes=(
        "Richiamato il cliente, attende il tecnico",
        "Ricambio ordinato, arriva domani",
    ),
    reassigned=(
        "Passato al collega che conosce l'impianto",
        "Riassegnato per il fine settimana",
    ),
    reopened=(
        "Dopo il riavvio il difetto è tornato",
        "Ha funzionato qualche ora, poi il guasto è tornato",
    ),
    unrepairable=(
        "Non riparabile, l'apparecchio sarà sostituito",
        "Il produttore non ha più il ricambio; è stato offerto un nuovo contratto",
    ),
)

_SINCE = (
    "It began this morning",
    "It has been like this since the last update",
    "It happens about half of the time",
    "It comes back after some hours",
    "It has been getting worse for a week",
)
_SINCE_PRINTERS = (
    *_SINCE,
    "Only the first job after a pause is affected",
    "It got worse after we moved it to another office",
)
_TRIED = (
    "We switched it off and on again, without success",
    "A colleague replaced the cable, without success",
    "The self-test reports no errors",
    "We restored the previous settings, without success",
    "We followed the steps in the manual twice",
)
_TRIED_SOFTWARE = (
    "We restarted it twice, without success",
    "We installed it again, without success",
    "Another user has the same problem on the same device",
    "We restored the previous settings, without success",
)
_DA_QUANDO = (
    "È cominciato questa mattina",
    "Succede dopo l'ultimo aggiornamento",
    "Capita circa una volta su due",
    "Dopo qualche ora il difetto ritorna",
    "Peggiora da una settimana",
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
            "The printer at reception",
            "The printer in accounting",
        ),
        (
            "leaves grey stripes along the edge of every page",
            "pulls in three sheets at once and jams at the fuser",
            "says the toner is empty although the cartridge is new",
            "prints the first page and then stops",
            "reports error 49.4 when a file contains images",
            "no longer takes paper from tray 2",
            "prints faded colours, especially blue",
        ),
        _SINCE_PRINTERS,
        _TRIED,
        _ENGLISH,
    ),
    Topic(
        "printers",
        (
            "The label printer at packing",
            "The label printer in the warehouse",
        ),
        (
            "prints the barcode too pale to scan",
            "feeds an empty label after each printed one",
            "shifts the print by half a label",
            "stops after ten labels and blinks red",
        ),
        _SINCE_PRINTERS,
        _TRIED,
        _ENGLISH,
    ),
    Topic(
        "network",
        (
            "The access point in hall 3",
            "The access point in the canteen",
            "The router of the branch",
        ),
        (
            "drops all connections for about a minute",
            "assigns addresses that are already in use",
            "is slow: a file that took seconds takes minutes",
            "restarts several times a day",
        ),
        _SINCE,
        _TRIED,
        _ENGLISH,
    ),
    Topic(
        "network",
        (
            "The switch in the cabinet",
            "The switch in the server room",
        ),
        (
            "blinks amber on ports nine to twelve",
            "drops all connections for about a minute",
            "is slow: a file that took seconds takes minutes",
            "no longer powers the telephones",
        ),
        _SINCE,
        _TRIED,
        _ENGLISH,
    ),
    Topic(
        "network",
        (
            "The VPN gateway",
            "The VPN gateway of the branch",
        ),
        (
            "loses the tunnel whenever the line is idle",
            "has been rejecting the certificate since last night",
            "drops all connections for about a minute",
            "is slow: a file that took seconds takes minutes",
        ),
        _SINCE,
        _TRIED,
        _ENGLISH,
    ),
    Topic(
        "machines",
        (
            "The milling centre",
            "The lathe",
        ),
        (
            "vibrates at high speed and the tolerance is lost",
            "shows an overheated spindle after ten minutes",
            "no longer finds its reference point at the start",
            "stops with an alarm on the emergency circuit although the button was not pressed",
        ),
        _SINCE,
        _TRIED,
        _ENGLISH,
    ),
    Topic(
        "machines",
        (
            "The packaging machine",
            "The conveyor of line 2",
        ),
        (
            "stops with an alarm on the emergency circuit although the button was not pressed",
            "counts every third piece twice",
            "stops when it is fully loaded",
            "runs on for a second after a stop",
        ),
        _SINCE,
        _TRIED,
        _ENGLISH,
    ),
    Topic(
        "machines",
        (
            "The compressor",
            "The compressor of hall 2",
        ),
        (
            "loses pressure, with no audible leak",
            "switches itself off after ten minutes because of its temperature",
            "starts every two minutes although no air is used",
            "vibrates at full load",
        ),
        _SINCE,
        _TRIED,
        _ENGLISH,
    ),
    Topic(
        "software",
        (
            "The warehouse terminal",
            "The planning client",
            "The shop floor tablet",
        ),
        (
            "freezes when the order list is opened",
            "asks for the password after every scan",
            "shows yesterday's stock until it is restarted",
            "cannot save and reports a locked record",
            "has not sent its confirmations since noon",
        ),
        _SINCE,
        _TRIED_SOFTWARE,
        _ENGLISH,
    ),
    Topic(
        "printers",
        (
            "La stampante dell'ufficio",
            "La stampante della reception",
        ),
        (
            "lascia righe grigie sul bordo di ogni pagina",
            "prende tre fogli alla volta e si inceppa",
            "segnala toner esaurito con la cartuccia nuova",
            "stampa la prima pagina e poi resta in attesa",
            "non prende più la carta dal secondo cassetto",
        ),
        _DA_QUANDO,
        _PROVATO,
        _ITALIAN,
    ),
    Topic(
        "network",
        (
            "L'access point del capannone",
            "Il router della filiale",
        ),
        (
            "perde tutte le connessioni per un minuto",
            "assegna indirizzi già in uso",
            "è lento, un file richiede minuti",
            "si riavvia più volte al giorno",
        ),
        _DA_QUANDO,
        _PROVATO,
        _ITALIAN,
    ),
    Topic(
        "machines",
        (
            "Il centro di fresatura",
            "Il tornio",
        ),
        (
            "si ferma con un allarme sul circuito di emergenza",
            "vibra ad alta velocità e perde la tolleranza",
            "segnala il mandrino surriscaldato dopo dieci minuti",
            "non trova più il punto di riferimento all'avvio",
        ),
        _DA_QUANDO,
        _PROVATO,
        _ITALIAN,
    ),
    Topic(
        "machines",
        (
            "Il compressore",
            "Il compressore del capannone",
        ),
        (
            "perde pressione senza che si senta la perdita",
            "si spegne dopo dieci minuti per la temperatura",
            "parte ogni due minuti senza consumo d'aria",
            "vibra a pieno carico",
        ),
        _DA_QUANDO,
        _PROVATO,
        _ITALIAN,
    ),
)
