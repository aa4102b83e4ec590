"""List the DynamoDB actions of each access pattern of a design, as IAM sees them.

They are the requests that Tavola's client makes: one key is a GetItem, several a BatchGetItem, a query may fetch whole items afterwards, an update whose
index keys depend on unchanged fields reads the item first, and a unique value has a guard item. For a table that other code writes
(`foreign`), only what the design declares is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tavola.iac.grants import ResourceReference
from tavola.iac.required_actions import (
    ANY,
    Enclosing,
    PatternActions,
    RequiredAction,
    collection_leading_keys,
    escape_pattern,
    guard_leading_keys,
    leading_keys,
    restrict_to_tenant,
    tenant_leading_keys,
    updatable_attributes,
)
from tavola.model import VERSION_ATTRIBUTE, WritePattern
from tavola.model.document import (
    AccessPattern,
    CollectionDesign,
    Design,
    EntityDesign,
    IndexDesign,
    KeyDesign,
    Need,
    PatternDesign,
    Route,
    TableDesign,
)

_ROUTE_ACTIONS = {"get": "GetItem", "batch_get": "BatchGetItem", "query": "Query", "scan": "Scan"}


def list_pattern_actions(design: Design, *, narrow: bool | None = None) -> tuple[PatternActions, ...]:
    """Return the actions of every access pattern of a design.

    Every query counts, with or without a rate; a key counts if it has an access pattern. `narrow` restricts patterns
    to the fields they declare in `reads`: True everywhere, False nowhere, None where the request can name them: in a
    get (with `view=`) and in requests of other code. Tavola's client queries whole items.
    """
    patterns: list[PatternActions] = []
    for table in design.tables:
        for entity in table.entities:
            primary_patterns = (
                [] if entity.primary is None or entity.primary.access is None else [entity.primary]
            )
            patterns += [
                _read_actions(table, entity, pattern, narrow)
                for pattern in (*primary_patterns, *entity.patterns)
            ]
        patterns += [_collection_actions(table, collection) for collection in table.collections]
        for entity in table.entities:
            patterns += [_write_actions(table, entity, write) for write in entity.writes]
    patterns += [
        primary_patterns for need in design.needs for primary_patterns in _need_actions(design, need, narrow)
    ]
    return tuple(pattern for pattern in patterns if pattern.actions)


def _read_actions(
    table: TableDesign, entity: EntityDesign, pattern: PatternDesign, narrow: bool | None
) -> PatternActions:
    place = f"{entity.name}.{pattern.name}"
    access, key = pattern.access, entity.key_on(pattern.index)
    title = place if access is None else access.title
    if key is None or entity.key is None:
        return PatternActions(title, place, "read", ())
    if pattern is not entity.primary:
        actions = [_query_action(table, entity, key, access, table.foreign if narrow is None else narrow)]
        if _fetches_items(table, entity, pattern.index, hydrate=pattern.hydrate):
            actions.append(_item_action(table, entity, "BatchGetItem"))
        return PatternActions(title, place, "read", tuple(actions))
    reads_many = access is not None and access.items is not None and access.items > 1
    if access is not None and access.transactional:
        action = _item_action(table, entity, "GetItem", "TransactGetItems")
    elif reads_many:
        action = _item_action(table, entity, "BatchGetItem")
    else:
        action = _item_action(table, entity, "GetItem")
        if entity.version == 1 and narrow is not False:  # an item of an older schema is read whole
            action = _narrow_attributes(action, table, entity, None, access)
    return PatternActions(title, place, "read", (action,))


def _query_action(
    table: TableDesign, entity: EntityDesign, key: KeyDesign, access: AccessPattern | None, narrow: bool
) -> RequiredAction:
    action = RequiredAction(
        "Query", _reference(table, key.index), leading_keys(entity, key), tenant_leading_keys(entity, key)
    )
    index = None if key.index is None else table.index(key.index)
    return _narrow_attributes(action, table, entity, index, access) if narrow else action


def _collection_actions(table: TableDesign, collection: CollectionDesign) -> PatternActions:
    members = [entity for entity in table.entities if entity.name in {m.entity for m in collection.members}]
    leading, tenant = collection_leading_keys(
        collection.partition, (field for entity in members for field in entity.fields)
    )
    actions = [RequiredAction("Query", _reference(table, collection.index), leading, tenant)]
    actions += [
        _item_action(table, entity, "BatchGetItem")
        for entity in members
        if _fetches_items(table, entity, collection.index, hydrate=False)
    ]
    access = collection.access
    title = collection.name if access is None else access.title
    return PatternActions(title, collection.name, "read", tuple(actions))


def _fetches_items(table: TableDesign, entity: EntityDesign, index: str | None, *, hydrate: bool) -> bool:
    """Return whether the projection of an index may be insufficient, so that whole items are fetched."""
    if index is None or table.index(index).projection == "ALL":
        return False
    if hydrate or table.foreign:
        return hydrate
    ttl = table.settings.ttl
    expires = ttl is not None and any(field.attribute == ttl for field in entity.fields)
    return entity.version > 1 or (expires and not _projects(table.index(index), str(ttl)))


def _projects(index: IndexDesign, attribute: str) -> bool:
    projected = index.projection if isinstance(index.projection, tuple) else ()
    return attribute in (*index.attributes, *projected)


def _narrow_attributes(
    action: RequiredAction,
    table: TableDesign,
    entity: EntityDesign,
    index: IndexDesign | None,
    access: AccessPattern | None,
) -> RequiredAction:
    """Return a request that names the attributes it reads, if the pattern declares fewer than all."""
    if access is None or not access.reads or len(access.reads) >= len(entity.fields):
        return action
    settings = table.settings
    names = [*settings.key_names, *(() if index is None else index.attributes)]
    if not table.foreign:
        names += [name for name in (settings.tag, settings.ttl, VERSION_ATTRIBUTE) if name is not None]
    names += [entity.field(name).attribute for name in (*access.reads, *access.filters)]
    return replace(action, attributes=tuple(dict.fromkeys(names)), specific=True)


def _write_actions(table: TableDesign, entity: EntityDesign, write: WritePattern) -> PatternActions:
    place = f"{entity.name} {write.title!r}"
    if entity.key is None or (entity.immutable and write.kind != "put"):
        return PatternActions(write.title, place, "write", ())
    uniques = () if table.foreign else tuple(field for field in entity.fields if field.unique)
    locked = any(field.lock for field in entity.fields)
    enclosing: Enclosing = "TransactWriteItems" if write.transactional else ""
    actions: list[RequiredAction] = []
    if write.kind == "update":
        actions += _update_actions(table, entity, write, enclosing)
    else:
        single = write.items == 1 or write.transactional or entity.immutable or bool(uniques) or locked
        verb = "PutItem" if write.kind == "put" else "DeleteItem"
        actions.append(_item_action(table, entity, verb if single else "BatchWriteItem", enclosing))
    if write.transactional:
        actions.append(_item_action(table, entity, "ConditionCheckItem", enclosing))
    if uniques and _changes_guards(table, entity, write):
        for leading in (
            key_patterns for field in uniques for key_patterns in guard_leading_keys(table, entity, field)
        ):
            for verb in ("PutItem", "DeleteItem"):
                actions.append(
                    RequiredAction(
                        verb, ResourceReference(table.name), leading, None, (), False, "TransactWriteItems"
                    )
                )
        actions.append(_item_action(table, entity, "GetItem"))
        if write.transactional:
            actions.append(_item_action(table, entity, "BatchGetItem"))
    restricted = (restrict_to_tenant(table, entity, write, action) for action in actions)
    return PatternActions(write.title, place, "write", tuple(dict.fromkeys(restricted)))


def _update_actions(
    table: TableDesign, entity: EntityDesign, write: WritePattern, enclosing: Enclosing
) -> Iterator[RequiredAction]:
    update = _item_action(table, entity, "UpdateItem", enclosing)
    yield replace(update, attributes=updatable_attributes(table, entity, write.rewrites))
    if table.foreign:
        return
    reads_first = _must_read_first(entity, write)
    if reads_first:
        yield _item_action(table, entity, "GetItem")
        if write.transactional:  # several items are read at once
            yield _item_action(table, entity, "BatchGetItem")
    creates = reads_first and write.creates
    if creates or entity.version > 1:  # an item that is created or upgraded is put whole
        yield _item_action(table, entity, "PutItem", enclosing)


def _must_read_first(entity: EntityDesign, write: WritePattern) -> bool:
    """Return whether an update changes an index key without giving all fields of that key."""
    changed = {*write.changes, *write.adds}
    key = entity.key
    known_fields = {*write.changes} - {*write.adds} | (set() if key is None else set(key.fields))
    return any(
        changed.intersection(key.fields)
        and not known_fields.issuperset(key.fields)
        and any(source.field is None for source in key.sources)
        for key in entity.keys
    )


def _changes_guards(table: TableDesign, entity: EntityDesign, write: WritePattern) -> bool:
    """Return whether a write may add or remove guard items of unique values."""
    if write.kind != "update":
        return True
    guard_fields = {name for field in entity.fields if field.unique for name in (field.name, *field.within)}
    guard_fields |= {field.name for field in entity.fields if field.attribute == table.settings.ttl}
    return bool(guard_fields.intersection((*write.changes, *write.adds)))


def consumer_actions(table: TableDesign, entity: EntityDesign, consumer: str) -> PatternActions:
    """Return the actions of a stream consumer that maintains an entity's items: reads, and writes alone or in transactions.

    It deletes nothing, unless the entity declares deletes.
    """
    if entity.key is None:
        return PatternActions(consumer, entity.name, "write", ())
    actions = ["GetItem", "BatchGetItem", "Query", "ConditionCheckItem", "PutItem"]
    actions += ["DeleteItem"] if any(write.kind == "delete" for write in entity.writes) else []
    required = [_item_action(table, entity, action) for action in actions]
    if not entity.immutable:
        required.append(
            replace(_item_action(table, entity, "UpdateItem"), attributes=updatable_attributes(table, entity))
        )
    return PatternActions(consumer, entity.name, "write", tuple(required))


def _need_actions(design: Design, need: Need, narrow: bool | None) -> Iterator[PatternActions]:
    """Yield the actions of a need that declares its route, for each table that it queries."""
    route = need.route
    if route is None:
        return
    for table in design.tables:
        members = [entity for entity in table.entities if entity.name in need.entities]
        has_index = route.index is None or any(index.name == route.index for index in table.indexes)
        if members and has_index:
            access = need.access if (table.foreign if narrow is None else narrow) else None
            actions = tuple(_route_actions(table, members, route, access))
            yield PatternActions(need.title, need.name, "read", actions)


def _route_actions(
    table: TableDesign, members: Iterable[EntityDesign], route: Route, access: AccessPattern | None
) -> Iterator[RequiredAction]:
    reference = _reference(table, route.index)
    index = None if route.index is None else table.index(route.index)
    if route.operation == "scan":
        yield RequiredAction("Scan", reference)
        return
    hashes = (table.settings.hash,) if index is None else index.hash
    constants = {condition.field: condition.value for condition in route.keys if condition.operator == "="}
    for entity in members:
        key = entity.key_on(route.index)
        leading = (ANY,) * len(hashes) if key is None else leading_keys(entity, key)
        tenant = None if key is None else tenant_leading_keys(entity, key)
        constant_values = [constants.get(name) for name in hashes]
        if any(value is not None for value in constant_values):
            leading = tuple(
                pattern if value is None else escape_pattern(str(next(iter(value.values()))))
                for pattern, value in zip(leading, constant_values, strict=True)
            )
            tenant = None
        yield _narrow_attributes(
            RequiredAction(_ROUTE_ACTIONS[route.operation], reference, leading, tenant),
            table,
            entity,
            index,
            access,
        )


def _item_action(
    table: TableDesign, entity: EntityDesign, action: str, enclosing: Enclosing = ""
) -> RequiredAction:
    assert entity.key is not None, "an entity of a table has a key"
    leading, tenant = leading_keys(entity, entity.key), tenant_leading_keys(entity, entity.key)
    return RequiredAction(action, ResourceReference(table.name), leading, tenant, enclosing=enclosing)


def _reference(table: TableDesign, index: str | None) -> ResourceReference:
    return ResourceReference(table.name) if index is None else ResourceReference(table.name, "index", index)
