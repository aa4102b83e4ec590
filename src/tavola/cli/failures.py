"""Failures: an error of any room, as what a person is told and the exit code that goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from tavola.cli.designs import DesignRefused
from tavola.cli.exits import Exit
from tavola.cli.keys import KeyUnusable
from tavola.cli.output import complain
from tavola.errors import TavolaError

_ELSEWHERE = "Look at the name, and at whose it is: --region and --account say so."


@contextmanager
def told(what: str, *, place: str = "--endpoint", failed: Exit = Exit.FAILED) -> Iterator[None]:
    """Turn an error of Tavola inside the block into three lines and an exit code; `what` is the first.

    `place` is the option by which the command is told where the tables are. `failed` is the code of a command whose 1 says
    something else.
    """
    try:
        yield
    except TavolaError as error:
        remedy, code = _remedy_of(error)
        remedy = remedy if remedy is None else remedy.replace("--endpoint", place)
        complain(what, "; ".join((str(error), *getattr(error, "__notes__", ()))), remedy)
        raise typer.Exit(failed if code == Exit.FAILED else code) from error


def _remedy_of(error: TavolaError) -> tuple[str | None, Exit]:
    """Return what to do, None where the error's own sentence says it, and the exit code."""
    from tavola.backends import AnswerUnreadable, EndpointUnreachable, EndpointUntrusted, ExtraMissing
    from tavola.connections import ConnectionRefused
    from tavola.engine import EmulationRefused, StoreDamaged, StoreError, StoreFull, StoreInUse, StoreLocked
    from tavola.expressions.errors import ExpressionError
    from tavola.iac.formats import FileMissing
    from tavola.iam import (
        AlreadyInDirectory,
        AssumeRefused,
        DirectoryRefused,
        DirectoryUnreadable,
        DocumentUnreadable,
        NotInDirectory,
    )
    from tavola.keys import KeyRefused
    from tavola.prices import BookUnknown
    from tavola.protocol.faults import (
        AccessDeniedFault,
        Fault,
        InvalidSignatureFault,
        MissingAuthenticationTokenFault,
        PointInTimeRecoveryUnavailableFault,
        ResourceNotFoundFault,
        TableNotFoundFault,
        UnrecognizedClientFault,
    )
    from tavola.protocol.policy_documents import PolicyRefused
    from tavola.server import AccessLogUnusable, AddressInUse, AddressUnusable, CertificateUnusable
    from tavola.triggers import (
        FileInUse,
        FileRefused,
        FilterRefused,
        HandlerBroken,
        HandlerRefused,
        MappingRefused,
        StreamMissing,
        TriggerError,
    )
    from tavola.values import ValueMalformed, ValueRefused

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
        case EndpointUntrusted():
            return "Set AWS_CA_BUNDLE to the PEM file of the certificate that signed it.", Exit.UNREACHABLE
        case AnswerUnreadable():
            return "Name the endpoint of a DynamoDB with --endpoint.", Exit.UNREACHABLE
        case ExtraMissing():
            return "Install it, or name the file of a store with --store, which needs none.", Exit.FAILED
        case ConnectionRefused():
            return "Name a server with --endpoint, or the file of a store with --store.", Exit.USAGE
        case ResourceNotFoundFault() | TableNotFoundFault():
            return _ELSEWHERE, Exit.NOT_FOUND
        case PointInTimeRecoveryUnavailableFault():
            return "Keep its past from now on with `tavola backup enable TABLE`.", Exit.FAILED
        case MissingAuthenticationTokenFault() | UnrecognizedClientFault() | InvalidSignatureFault():
            return (
                "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to a key that `tavola iam add-key` gave.",
                Exit.FAILED,
            )
        case AccessDeniedFault():
            return "Ask for a policy that allows it; `tavola iam explain` says what decides.", Exit.FAILED
        case Fault():
            return "Change what was asked for, as the sentence above says.", Exit.FAILED
        case StoreInUse():
            return "Stop the other process, or use its endpoint; one process owns a file.", Exit.CONFLICT
        case StoreDamaged():
            return (
                "Give the key if it is encrypted (--key-file); otherwise restore it from a copy.",
                Exit.FAILED,
            )
        case StoreFull():
            return "Make room on the disk and start again; nothing that was confirmed is lost.", Exit.FAILED
        case StoreLocked():
            return (
                "Give its own key with --key-file, --key-command or TAVOLA_KEY; a file in clear takes none.",
                Exit.FAILED,
            )
        case BookUnknown():
            return (
                "Choose one that there is with --region or --date; or give prices of your own, --prices FILE.toml.",
                Exit.USAGE,
            )
        case FileMissing():
            return None, Exit.NOT_FOUND
        case DesignRefused():
            return error.remedy, Exit.USAGE
        case KeyUnusable():
            return "Give one key, with --key-file, --key-command or TAVOLA_KEY.", Exit.USAGE
        case StoreError():
            return "Name another file, or make this one a readable and writable file.", Exit.FAILED
        case DocumentUnreadable():
            return f"Name a file that can be read with {error.option}.", Exit.NOT_FOUND
        case DirectoryUnreadable():
            return "Name a file that is there with --iam; `tavola iam init` makes one.", Exit.NOT_FOUND
        case NotInDirectory():
            return "See who there is with `tavola iam list`.", Exit.NOT_FOUND
        case AlreadyInDirectory():
            return "Choose another name, or remove what has it with `tavola iam remove`.", Exit.CONFLICT
        case AssumeRefused():
            return "Change the role's trust policy or the session, or leave --by out.", Exit.FAILED
        case DirectoryRefused() | PolicyRefused():
            return "Mend it at the place that is named; nothing was changed.", Exit.FAILED
        case MappingRefused() | FilterRefused():
            return "Change the option; see `tavola trigger --help`.", Exit.USAGE
        case HandlerBroken():
            return (
                f"Mend the module {error.module}, or install what it imports, and start again.",
                Exit.FAILED,
            )
        case HandlerRefused():
            return "Name a function of an event and a context, as module:function.", Exit.USAGE
        case StreamMissing():
            return "Enable a stream on the table, and start again.", Exit.NOT_FOUND
        case FileInUse():
            return "Stop the other trigger, or name another file with --checkpoints.", Exit.CONFLICT
        case FileRefused():
            return "Name another file with --checkpoints or --dead-letters, or mend this one.", Exit.FAILED
        case TriggerError():
            return "Mend what is named, and start again; it goes on where it was.", Exit.FAILED
        case ValueRefused() | ValueMalformed() | KeyRefused() | ExpressionError():
            return "Mend the value or expression that is named; nothing was changed.", Exit.FAILED
        case _:  # the other sentences say what to do themselves
            return None, Exit.FAILED
