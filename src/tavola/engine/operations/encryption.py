"""Encryption settings: the KMS key that a table is described with.

The setting is stored, described and changed as on AWS, but encrypts nothing. There is no KMS here, so every well-formed key
is taken to exist; an alias always resolves to the same key of its own.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from itertools import pairwise

from tavola.engine.catalog import TableDefinition
from tavola.protocol.arns import Scope
from tavola.protocol.faults import ValidationFault
from tavola.protocol.tables import SSESpecification

Encryption = dict[str, str]

_DEFAULT_ALIAS = "alias/aws/dynamodb"
_INVALID = "One or more parameter values were invalid: "
_ARN = re.compile(r"arn:aws[a-z-]*:kms:([a-z0-9-]*):([0-9]*):((?:key|alias)/.+)")
_KEY_ID = re.compile(r"key/[A-Za-z0-9-]+")
_ALIAS = re.compile(r"alias/[A-Za-z0-9/_-]+")


def encryption_of(specification: SSESpecification | None, scope: Scope) -> Encryption | None:
    """Return the description of a requested encryption; None for the key owned by AWS."""
    if specification is None or specification.enabled is False:
        return None
    if specification.enabled is None and specification.sse_type is None:
        return None
    arn = _key_arn(specification.kms_master_key_id or _DEFAULT_ALIAS, scope)
    return {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": arn}


def new_encryption(definition: TableDefinition, specification: SSESpecification) -> Encryption | None:
    """Return the new encryption of a table; refuse the current one where AWS notices."""
    encryption = encryption_of(specification, definition.scope)
    if encryption is None and definition.encryption is None:
        raise ValidationFault(f"{_INVALID}Table is already encrypted by default")
    arn = None if definition.encryption is None else definition.encryption["KMSMasterKeyArn"]
    if arn is not None and specification.kms_master_key_id == arn:
        # AWS compares only the text of the ARN: an alias or id of the same key counts as a change.
        raise ValidationFault(
            f"{_INVALID}Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId parameter if you "
            "want to change Master Key"
        )
    return encryption


def describe_change(old: Encryption | None) -> Encryption:
    """Return the description in the response to an encryption change, which still shows the old key."""
    return (old or {}) | {"Status": "UPDATING"}


def _key_arn(key: str, scope: Scope) -> str:
    """Return the ARN of the key that an id, an alias or an ARN of either names."""
    resource = key
    if key.startswith("arn:"):
        arn = _ARN.fullmatch(key)
        if arn is None:
            raise _unknown(f"Invalid arn {key}")
        if arn[1] != scope.region:
            raise _unknown(f"Invalid arn {arn[1]}")
        if arn[2] != scope.account:
            raise _unknown(f"Key '{key}' does not exist")
        resource = arn[3]
    elif not key.startswith("alias/"):
        resource = f"key/{key}"
    if _ALIAS.fullmatch(resource) is not None:
        digest = blake2b(f"{scope.account}/{scope.region}/{resource}".encode(), digest_size=16).hexdigest()
        bounds = (0, 8, 12, 16, 20, 32)
        key_id = "-".join(digest[start:end] for start, end in pairwise(bounds))
        resource = f"key/{key_id}"
    elif _KEY_ID.fullmatch(resource) is None:
        raise _unknown(f"Invalid keyId '{key}'")
    return f"arn:aws:kms:{scope.region}:{scope.account}:{resource}"


def _unknown(text: str) -> ValidationFault:
    return ValidationFault(
        f"KMS validation error: com.amazonaws.services.kms.model.NotFoundException: {text} (Service: AWSKMS; "
        "Status Code: 400; Error Code: NotFoundException)"
    )
