"""Failures: an error of any room, as what a person is told and the exit code that goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from tavola.cli.exits import Exit
from tavola.cli.keys import KeyUnusable
from tavola.cli.output import complain
from tavola.errors import TavolaError

_ELSEWHERE = (
    "Look at the name, and at whose it is: without --region and --account, or AWS_REGION set, tables of us-east-1 "
    "and account 000000000000 are meant."
)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn an error of Tavola inside the block into three lines and an exit code; `what` is the first."""
    try:
        yield
    except TavolaError as error:
        remedy, code = _remedy_of(error)
        complain(what, str(error), remedy)
        raise typer.Exit(code) from error


def _remedy_of(error: TavolaError) -> tuple[str, Exit]:
    from tavola.backends import EndpointUnreachable
    from tavola.engine import EmulationRefused, StoreDamaged, StoreError, StoreFull, StoreInUse, StoreLocked
    from tavola.iam import AlreadyInDirectory, DirectoryRefused, DirectoryUnreadable, NotInDirectory
    from tavola.protocol import Fault, PolicyRefused, ResourceNotFoundFault, TableNotFoundFault
    from tavola.server import AccessLogUnusable, AddressInUse, AddressUnusable, CertificateUnusable
    from tavola.triggers import (
        FileInUse,
        FileRefused,
        FilterRefused,
        HandlerRefused,
        MappingRefused,
        StreamMissing,
        TriggerError,
    )

    match error:
        case AddressInUse():
            return "Choose another port with --port; 0 takes a free one.", Exit.CONFLICT
        case AddressUnusable():
            return "Choose an address of this machine with --host, or another --port.", Exit.UNREACHABLE
        case CertificateUnusable():
            return "Name a certificate and its own key with --tls-cert and --tls-key.", Exit.FAILED
        case AccessLogUnusable():
            return "Name a file in a folder that may be written with --access-log.", Exit.FAILED
        case EmulationRefused():
            return "See `tavola serve --help`, and the guide's page on emulation.", Exit.USAGE
        case EndpointUnreachable():
            return "Start a server with `tavola serve`, or name another with --endpoint.", Exit.UNREACHABLE
        case ResourceNotFoundFault() | TableNotFoundFault():
            return _ELSEWHERE, Exit.NOT_FOUND
        case Fault():
            return "Change what was asked for: the sentence above is DynamoDB's own.", Exit.FAILED
        case StoreInUse():
            return "Stop the other process, or use its endpoint; one process owns a file.", Exit.CONFLICT
        case StoreDamaged():
            return "Restore the file from a copy; what is in it is not served.", Exit.FAILED
        case StoreFull():
            return "Make room on the disk and start again; nothing that was confirmed is lost.", Exit.FAILED
        case StoreLocked():
            return "Give the key with --key-file, --key-command or TAVOLA_KEY.", Exit.FAILED
        case KeyUnusable():
            return "Give one key, with --key-file, --key-command or TAVOLA_KEY.", Exit.USAGE
        case StoreError():
            return "Name another file, or make this one a readable and writable file.", Exit.FAILED
        case DirectoryUnreadable():
            return "Name a file that is there with --iam; `tavola iam init` makes one.", Exit.NOT_FOUND
        case NotInDirectory():
            return "See who there is with `tavola iam list`.", Exit.NOT_FOUND
        case AlreadyInDirectory():
            return "Choose another name, or remove what has it with `tavola iam remove`.", Exit.CONFLICT
        case DirectoryRefused() | PolicyRefused():
            return "Mend it at the place that is named; nothing was changed.", Exit.FAILED
        case MappingRefused() | FilterRefused():
            return "Change the option; see `tavola trigger --help`.", Exit.USAGE
        case HandlerRefused():
            return "Name a function of an event and a context, as module:function.", Exit.USAGE
        case StreamMissing():
            return "Enable a stream on the table, and start again.", Exit.NOT_FOUND
        case FileInUse():
            return "Stop the other trigger, or name another file with --checkpoints.", Exit.CONFLICT
        case FileRefused() | TriggerError():
            return "Mend what is named, and start again; it goes on where it was.", Exit.FAILED
        case _:
            return "See `tavola --help`.", Exit.FAILED
