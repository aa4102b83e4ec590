"""Turn proposals into a design: key templates, attributes, patterns, collections and views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tavola.design.solver.conditions import fits_key_attribute
from tavola.design.solver.names import (
    KeyWords,
    find_free_name,
    index_label,
    join_template,
    key_word,
    plural,
    snake,
)
from tavola.design.solver.proposals import EntityProposal, IndexKey, IndexProposal, KeyProposal, TableProposal
from tavola.design.solver.questions import SolverInput, SolverQuestion
from tavola.design.solver.shared_partitions import SharedPartitions, share_partitions
from tavola.keys import Template
from tavola.model import SHARD
from tavola.model.document import (
    AccessPattern,
    CollectionDesign,
    Design,
    EntityDesign,
    IndexDesign,
    KeyDesign,
    MemberDesign,
    PatternDesign,
    Shards,
    SourceDesign,
    TableDesign,
    TableSettings,
)
from tavola.model.sizes import declared_item_bytes, modelled_entry_bytes
from tavola.model.tables import KeyTag


@dataclass
class ViewRegistry:
    """The views of a design: existing ones, and new ones for questions that return part of an entity."""

    known: dict[str, EntityDesign]
    taken: set[str]
    used: dict[str, EntityDesign] = field(default_factory=dict)

    def view_name(self, entity: EntityDesign, question: SolverQuestion) -> str:
        """Return the name of the view with the fields that a question returns."""
        assert question.result_fields is not None
        for name, view in self.known.items():
            same_fields = {field.name for field in view.fields} == question.result_fields
            entity_fields = {(field.name, field.attribute, field.type) for field in entity.fields}
            if same_fields and all(
                (field.name, field.attribute, field.type) in entity_fields for field in view.fields
            ):
                self.used[name] = view
                return name
        name = find_free_name(f"{entity.name}{question.name}", self.taken | set(self.known))
        fields = tuple(
            replace(field, lock=False, unique=False, within=())
            for field in entity.fields
            if field.name in question.result_fields
        )
        view_design = EntityDesign(
            name, name, fields, description=f"Fields of {entity.name} that {question.title!r} returns."
        )
        self.known[name] = self.used[name] = view_design
        return name


def assemble_design(
    plans: Sequence[TableProposal], subject: SolverInput, views: Mapping[str, EntityDesign]
) -> Design:
    """Return the design that some table proposals describe."""
    taken = {*subject.entities, *(plan.label for plan in plans)}
    registry = ViewRegistry(
        {name: view for name, view in views.items() if name not in subject.entities}, taken
    )
    tables = tuple(assemble_table(plan, subject, registry) for plan in plans)
    return Design(tables, tuple(sorted(registry.used.values(), key=lambda view: view.name)))


def assemble_table(
    plan: TableProposal, subject: SolverInput, views: ViewRegistry, *, with_collections: bool = True
) -> TableDesign:
    """Return the table that a proposal describes; without collections if it has only some of their members."""
    return _Assembly(plan, subject, views).table(with_collections)


def default_settings(name: str) -> TableSettings:
    """Return the settings of a table that has no declaration."""
    return TableSettings(
        name, "pk", "sk", None, "_entity", "#", None, False, 35, None, "STANDARD", False, None, None
    )


class _Assembly:
    """One table, while it is assembled."""

    def __init__(self, plan: TableProposal, subject: SolverInput, views: ViewRegistry) -> None:
        self.plan = plan
        self.subject = subject
        self.views = views
        self.entities = {entity.entity: subject.entities[entity.entity] for entity in plan.entities}
        self.attributes = {field.attribute for entity in self.entities.values() for field in entity.fields}
        self.base = share_partitions(
            [
                (entity.entity, question)
                for entity in plan.entities
                for question in entity.served
                if question.has_several_entities
            ],
            {entity.entity for entity in plan.entities if not entity.base.sorts},
        )
        self.settings = self._settings()
        self.delimiter = self.settings.delimiter
        self.key_types: dict[str, KeyTag] = {}
        self.unsized: set[tuple[str, str]] = set()  # patterns whose declared item size does not fit the index
        self.index_designs: list[IndexDesign] = []

    def table(self, with_collections: bool) -> TableDesign:
        plan, home = self.plan, self.plan.home
        keys = self._base_keys()
        indexes = tuple(self._index(number, index) for number, index in enumerate(plan.indexes, 1))
        by_index = {
            index.name: self._index_keys(index, proposal)
            for index, proposal in zip(indexes, plan.indexes, strict=True)
        }
        entities = tuple(
            self._entity(entity, keys[entity.entity], by_index, indexes) for entity in plan.entities
        )
        collections = tuple(self._collections(keys, by_index, indexes)) if with_collections else ()
        return _resize_patterns(
            TableDesign(
                plan.label,
                self.settings,
                self.key_types,
                indexes,
                entities,
                collections,
                "" if home is None else home.description,
                () if home is None else home.consumers,
            ),
            self.unsized,
        )

    def _settings(self) -> TableSettings:
        plan, home = self.plan, self.plan.home
        settings = default_settings(plan.label) if home is None else home.settings
        if plan.native:
            only = plan.entities[0]
            names = [self.entities[only.entity].field(name).attribute for name in only.base.fields]
            return replace(settings, hash=names[0], range=names[1] if len(names) > 1 else None)
        hash_ = find_free_name(
            settings.hash if settings.hash not in self.attributes else "pk", self.attributes, "PK", "_pk"
        )
        ranged = (
            settings.range if settings.range is not None and settings.range not in self.attributes else "sk"
        )
        range_ = find_free_name(ranged, {*self.attributes, hash_}, "SK", "_sk")
        sorted_ = any(entity.base.sorts for entity in plan.entities) or self.base.groups
        return replace(settings, hash=hash_, range=range_ if sorted_ else None)

    # The table's own keys.

    def _base_keys(self) -> dict[str, KeyDesign]:
        settings, words = self.settings, KeyWords()
        keys: dict[str, KeyDesign] = {}
        partition_words: dict[int, str] = {}
        for proposal in self.plan.entities:
            entity, base = self.entities[proposal.entity], proposal.base
            if self.plan.native:
                sources = tuple(self._field_source(entity, name) for name in base.fields)
                keys[proposal.entity] = KeyDesign(None, sources[:1], sources[1:])
                continue
            group = self.base.group(proposal.entity)
            if group is None:
                word = words.take(key_word(proposal.entity))
            elif group not in partition_words:
                wish = "_".join(key_word(name) for name in base.partition) or key_word(proposal.entity)
                word = partition_words[group] = words.take(wish, f"{wish}_{key_word(proposal.entity)}")
            else:
                word = partition_words[group]
            shards = self.plan.base_shards.get(proposal.entity, 1)
            hash_ = self._template_source(
                settings.hash, join_template(self.delimiter, word, base.partition), shards
            )
            range_: tuple[SourceDesign, ...] = ()
            if settings.range is not None:
                literal = self.base.literal(proposal.entity, self.delimiter) or key_word(proposal.entity)
                range_ = (
                    self._template_source(settings.range, join_template(self.delimiter, literal, base.sorts)),
                )
            keys[proposal.entity] = KeyDesign(None, (hash_,), range_, shards=_shards(shards))
        return keys

    # Indexes.

    def _index(self, number: int, plan: IndexProposal) -> IndexDesign:
        first = plan.keys[0]
        questions = [question for index_key in plan.keys for question in index_key.questions]
        shared = len(plan.keys) > 1
        wish = f"gsi{number}" if shared else questions[0].name
        used = [index.label for index in self.index_designs]
        label = index_label(wish, used, f"{snake(wish)}_{snake(first.entity)}")
        if plan.native:
            entity = self.entities[first.entity]
            hash_ = tuple(self._field_source(entity, name).attribute for name in first.key.partition)
            range_ = tuple(self._field_source(entity, name).attribute for name in first.key.sorts)
            multi_attribute = len(hash_) > 1 or len(range_) > 1
            index_design = IndexDesign(label, label, False, hash_, range_, plan.projection, multi_attribute)
        else:
            letters = "LSI" if plan.local else "GSI"
            names = {
                f"{letters}{number}{half}": find_free_name(f"{letters}{number}{half}", self.attributes)
                for half in ("PK", "SK")
            }
            hash_ = (self.settings.hash,) if plan.local else (names[f"{letters}{number}PK"],)
            sorted_ = any(index_key.key.sorts for index_key in plan.keys) or any(
                question.has_several_entities for question in questions
            )
            range_ = (names[f"{letters}{number}SK"],) if sorted_ else ()
            if self._sorts_by_field(plan):
                range_ = (self._field_source(self.entities[first.entity], first.key.sorts[0]).attribute,)
            index_design = IndexDesign(label, label, plan.local, hash_, range_, plan.projection)
        self.index_designs.append(index_design)
        return index_design

    def _index_keys(self, index: IndexDesign, plan: IndexProposal) -> dict[str, KeyDesign]:
        words = KeyWords()
        shared = _share_index_partitions(plan)
        group_words: dict[int, str] = {}
        keys: dict[str, KeyDesign] = {}
        for index_key in plan.keys:
            entity, key = self.entities[index_key.entity], index_key.key
            if plan.native:
                hash_ = tuple(self._field_source(entity, name) for name in key.partition)
                range_ = tuple(self._field_source(entity, name) for name in key.sorts)
                shards = 1
            else:
                group = shared.group(index_key.entity)
                if group is not None and group in group_words:
                    word = group_words[group]
                else:
                    prefix_word = key_word(index_key.entity)
                    wish = "_".join(key_word(name) for name in key.partition) or prefix_word
                    word = words.take(wish, f"{prefix_word}_{wish}")
                    if group is not None:
                        group_words[group] = word
                shards = plan.shards.get(index_key.entity, 1)
                hash_ = (
                    (self._base_keys()[index_key.entity].hash[0],)
                    if plan.local
                    else (
                        self._template_source(
                            index.hash[0], join_template(self.delimiter, word, key.partition), shards
                        ),
                    )
                )
                range_ = ()
                if index.range:
                    literal = shared.literal(index_key.entity, self.delimiter)
                    if not key.sorts and not literal:
                        literal = key_word(index_key.entity)
                    if plan.local:
                        literal = key_word(index_key.entity)
                    range_ = (
                        (self._field_source(entity, key.sorts[0]),)
                        if self._sorts_by_field(plan)
                        else (
                            self._template_source(
                                index.range[0], join_template(self.delimiter, literal, key.sorts)
                            ),
                        )
                    )
            sparse = any(entity.field(name).nullable for name in key.fields)
            keys[index_key.entity] = KeyDesign(
                index.name, hash_, range_, sparse, key.members, _shards(shards)
            )
        return keys

    def _sorts_by_field(self, plan: IndexProposal) -> bool:
        """Return whether a local index of a table with native keys can be sorted by the items' own attribute."""
        index_key = plan.keys[0]
        if not (plan.local and self.plan.native and len(index_key.key.sorts) == 1) or index_key.key.members:
            return False
        return fits_key_attribute(self.entities[index_key.entity].field(index_key.key.sorts[0]))

    # Entities with their patterns.

    def _entity(
        self,
        plan: EntityProposal,
        key: KeyDesign,
        by_index: Mapping[str, Mapping[str, KeyDesign]],
        indexes: tuple[IndexDesign, ...],
    ) -> EntityDesign:
        entity = self.entities[plan.entity]
        bare = replace(entity, key=None, keys=(), primary=None, patterns=())
        gets = [q for q in plan.served if q.identifies and set(q.fixed[0]) == set(plan.base.fields)]
        primary_question = max(
            gets, key=lambda question: (question.name == "Key", question.access is not None), default=None
        )
        primary = PatternDesign(
            "Key",
            None,
            tuple(dict.fromkeys(name for source in key.sources for name in source.fields)),
            (),
            entity.name,
            False,
            None if primary_question is None else primary_question.access,
        )
        item_bytes = declared_item_bytes(replace(bare, primary=primary))
        patterns = []
        for question in plan.served:
            if question.has_several_entities or question is primary_question:
                continue
            patterns.append(self._table_pattern(entity, plan.base, question, item_bytes))
        keys = []
        for index, proposal in zip(indexes, self.plan.indexes, strict=True):
            index_key = proposal.key_of(plan.entity)
            if index_key is None:
                continue
            keys.append(by_index[index.name][plan.entity])
            own_questions = [
                question for question in index_key.questions if not question.has_several_entities
            ]
            patterns += [
                self._index_pattern(entity, index, proposal, index_key, question, item_bytes)
                for question in own_questions
            ]
            if (
                not own_questions
            ):  # a query class has to declare the key, although only the collection reads by it
                name = f"In{index_key.questions[0].name}"
                key_parts = (index_key.key.partition, index_key.key.sorts)
                patterns.append(PatternDesign(name, index.name, *key_parts, entity.name))
        order = {question.name: position for position, question in enumerate(self.subject.questions)}
        patterns.sort(key=lambda pattern: order.get(pattern.name, 0))
        return replace(bare, key=key, keys=tuple(keys), primary=primary, patterns=tuple(patterns))

    def _table_pattern(
        self, entity: EntityDesign, base: KeyProposal, question: SolverQuestion, item_bytes: int | None
    ) -> PatternDesign:
        access = question.access
        if access is not None and question.result_fields is not None:
            access = replace(access, item_bytes=item_bytes)
        result = self._result(entity, question, only_known=True)
        access = _without_reads(access, result, entity)
        name = question.name if question.name != "Key" else "ByKey"
        return PatternDesign(name, None, base.partition, base.sorts, result, False, access)

    def _index_pattern(
        self,
        entity: EntityDesign,
        index: IndexDesign,
        plan: IndexProposal,
        index_key: IndexKey,
        question: SolverQuestion,
        item_bytes: int | None,
    ) -> PatternDesign:
        hydrate = (entity.name, question.name) in plan.hydrated
        access = _fit_item_size(question.access, index, item_bytes, hydrate)
        if access is not None and access.item_bytes is None and question.access != access:
            self.unsized.add((entity.name, question.name))
        result = (
            entity.name if hydrate else self._result(entity, question, only_known=index.projection == "ALL")
        )
        access = _without_reads(access, result, entity)
        return PatternDesign(
            question.name, index.name, index_key.key.partition, index_key.key.sorts, result, hydrate, access
        )

    def _result(self, entity: EntityDesign, question: SolverQuestion, *, only_known: bool) -> str:
        if question.result_fields is None:
            return entity.name
        if only_known and not any(
            {field.name for field in view.fields} == question.result_fields
            for view in self.views.known.values()
        ):
            return entity.name
        return self.views.view_name(entity, question)

    # Collections.

    def _collections(
        self,
        keys: Mapping[str, KeyDesign],
        by_index: Mapping[str, Mapping[str, KeyDesign]],
        indexes: tuple[IndexDesign, ...],
    ) -> list[CollectionDesign]:
        collections: dict[str, CollectionDesign] = {}
        for entity in self.plan.entities:
            for question in entity.served:
                if question.has_several_entities and question.name not in collections:
                    collections[question.name] = self._collection(question, None, keys, self.base)
        for index, plan in zip(indexes, self.plan.indexes, strict=True):
            shared = _share_index_partitions(plan)
            for index_key in plan.keys:
                for question in index_key.shared_questions:
                    if question.name not in collections:
                        collections[question.name] = self._collection(
                            question, index.name, by_index[index.name], shared
                        )
        order = {question.name: position for position, question in enumerate(self.subject.questions)}
        return sorted(collections.values(), key=lambda collection: order[collection.name])

    def _collection(
        self,
        question: SolverQuestion,
        index: str | None,
        keys: Mapping[str, KeyDesign],
        shared: SharedPartitions,
    ) -> CollectionDesign:
        home = self.plan.home
        original = next((c for c in (home.collections if home else ()) if c.name == question.need), None)
        names = {} if original is None else {member.entity: member.name for member in original.members}
        members: list[MemberDesign] = []
        for name in question.entities:
            plan = self.plan.entity(name)
            many = index is not None or bool(plan.base.sorts)
            name_wish = names.get(name) or (plural(snake(name)) if many else snake(name))
            members.append(MemberDesign(find_free_name(name_wish, [m.name for m in members]), name, many))
        source = keys[question.entities[0]].hash[0]
        assert source.template is not None
        access = question.access
        return CollectionDesign(
            question.name,
            index,
            source.template,
            shared.prefix(question, self.delimiter),
            source.template.fields,
            tuple(members),
            access,
            "" if original is None else original.description,
        )

    # Sources.

    def _field_source(self, entity: EntityDesign, name: str) -> SourceDesign:
        field = entity.field(name)
        tag: KeyTag = field.tags[0]  # type: ignore[assignment]  # S, N or B: checked by fits_key_attribute
        self.key_types[field.attribute] = tag
        return SourceDesign(field.attribute, tag, field.name)

    def _template_source(self, attribute: str, text: str, shards: int = 1) -> SourceDesign:
        if shards > 1:
            text += f"{self.delimiter}{{{SHARD}:04}}"
        self.key_types[attribute] = "S"
        return SourceDesign(attribute, "S", None, Template.parse(text, self.delimiter))


def _share_index_partitions(plan: IndexProposal) -> SharedPartitions:
    """Return how the entities of an index share its partitions."""
    questions = [
        (index_key.entity, question) for index_key in plan.keys for question in index_key.shared_questions
    ]
    return share_partitions(
        questions, {index_key.entity for index_key in plan.keys if not index_key.key.sorts}
    )


def _resize_patterns(table: TableDesign, unsized: set[tuple[str, str]]) -> TableDesign:
    """Return a table whose patterns in `unsized` have the size of their index entries as item size."""
    if not unsized:
        return table
    entities = []
    for entity in table.entities:
        patterns = []
        for pattern in entity.patterns:
            if (
                (entity.name, pattern.name) in unsized
                and pattern.index is not None
                and pattern.access is not None
            ):
                size = modelled_entry_bytes(table, entity, table.index(pattern.index))
                pattern = replace(pattern, access=replace(pattern.access, item_bytes=size))
            patterns.append(pattern)
        entities.append(replace(entity, patterns=tuple(patterns)))
    return replace(table, entities=tuple(entities))


def _shards(count: int) -> Shards | None:
    return Shards(count) if count > 1 else None


def _without_reads(access: AccessPattern | None, result: str, entity: EntityDesign) -> AccessPattern | None:
    """Return an access pattern without its list of fields if a view has them already."""
    return access if access is None or result == entity.name else replace(access, reads=())


def _fit_item_size(
    access: AccessPattern | None, index: IndexDesign, item_bytes: int | None, hydrate: bool
) -> AccessPattern | None:
    """Return an access pattern with the size of the index entries, where the declared size is that of whole items."""
    if access is None or access.item_bytes is None or item_bytes is None or hydrate:
        return access
    if index.projection == "ALL":
        return replace(access, item_bytes=item_bytes)
    return access if access.item_bytes < item_bytes else replace(access, item_bytes=None)
