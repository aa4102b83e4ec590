"""Write proposals as a design: templates, attributes, patterns, collections and views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tavola.design.solver.candidates import EntityProposal, IndexKey, KeyProposal
from tavola.design.solver.collecting import SharedPartitions, share_partitions
from tavola.design.solver.conditions import fits_key_attribute
from tavola.design.solver.plans import IndexProposal, TableProposal
from tavola.design.solver.questions import SolverInput, SolverQuestion
from tavola.design.solver.wording import (
    KeyWords,
    find_free_name,
    index_label,
    join_template,
    key_word,
    plural,
    snake,
)
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
from tavola.model.key_types import KeyTag
from tavola.model.sizes import declared_item_bytes, modelled_entry_bytes


@dataclass
class ViewRegistry:
    """The views of a design: existing ones, and those made for questions that return part of an entity."""

    known: dict[str, EntityDesign]
    taken: set[str]
    used: dict[str, EntityDesign] = field(default_factory=dict)

    def of(self, entity: EntityDesign, question: SolverQuestion) -> str:
        """Return the name of the view with the fields that a question returns."""
        assert question.wanted is not None
        for name, view in self.known.items():
            same = {found.name for found in view.fields} == question.wanted
            own = {(found.name, found.attribute, found.type) for found in entity.fields}
            if same and all((found.name, found.attribute, found.type) in own for found in view.fields):
                self.used[name] = view
                return name
        name = find_free_name(f"{entity.name}{question.name}", self.taken | set(self.known))
        fields = tuple(
            replace(found, lock=False, unique=False, within=())
            for found in entity.fields
            if found.name in question.wanted
        )
        told = EntityDesign(
            name, name, fields, description=f"What {question.title!r} tells of {entity.name}."
        )
        self.known[name] = self.used[name] = told
        return name


def assemble_design(
    plans: Sequence[TableProposal], subject: SolverInput, views: Mapping[str, EntityDesign]
) -> Design:
    """Return the design of some table proposals."""
    taken = {*subject.entities, *(plan.label for plan in plans)}
    book = ViewRegistry({name: view for name, view in views.items() if name not in subject.entities}, taken)
    tables = tuple(assemble_table(plan, subject, book) for plan in plans)
    return Design(tables, tuple(sorted(book.used.values(), key=lambda view: view.name)))


def assemble_table(
    plan: TableProposal, subject: SolverInput, views: ViewRegistry, *, collections: bool = True
) -> TableDesign:
    """Return the table of a proposal; without collections where it has only some of their members."""
    return _Assembly(plan, subject, views).table(collections)


def default_settings(name: str) -> TableSettings:
    """Return the settings of a table that has no declaration."""
    return TableSettings(
        name, "pk", "sk", None, "_entity", "#", None, False, 35, None, "STANDARD", False, None, None
    )


class _Assembly:
    """One table being written down."""

    def __init__(self, plan: TableProposal, subject: SolverInput, views: ViewRegistry) -> None:
        self.plan = plan
        self.subject = subject
        self.views = views
        self.entities = {each.entity: subject.entities[each.entity] for each in plan.entities}
        self.attributes = {found.attribute for entity in self.entities.values() for found in entity.fields}
        self.base = share_partitions(
            [
                (each.entity, question)
                for each in plan.entities
                for question in each.served
                if question.several
            ],
            {each.entity for each in plan.entities if not each.base.sorts},
        )
        self.settings = self._settings()
        self.delimiter = self.settings.delimiter
        self.key_types: dict[str, KeyTag] = {}
        self.unsized: set[tuple[str, str]] = set()  # patterns whose items are other than was said
        self.named: list[IndexDesign] = []

    def table(self, collections: bool) -> TableDesign:
        plan, home = self.plan, self.plan.home
        keys = self._base_keys()
        indexes = tuple(self._index(number, index) for number, index in enumerate(plan.indexes, 1))
        by_index = {
            index.name: self._index_keys(index, told)
            for index, told in zip(indexes, plan.indexes, strict=True)
        }
        entities = tuple(self._entity(each, keys[each.entity], by_index, indexes) for each in plan.entities)
        together = tuple(self._collections(keys, by_index, indexes)) if collections else ()
        return _sized(
            TableDesign(
                plan.label,
                self.settings,
                self.key_types,
                indexes,
                entities,
                together,
                "" if home is None else home.description,
                () if home is None else home.consumers,
            ),
            self.unsized,
        )

    def _settings(self) -> TableSettings:
        plan, home = self.plan, self.plan.home
        told = default_settings(plan.label) if home is None else home.settings
        if plan.plain:
            only = plan.entities[0]
            names = [self.entities[only.entity].field(name).attribute for name in only.base.fields]
            return replace(told, hash=names[0], range=names[1] if len(names) > 1 else None)
        hash_ = find_free_name(
            told.hash if told.hash not in self.attributes else "pk", self.attributes, "PK", "_pk"
        )
        ranged = told.range if told.range is not None and told.range not in self.attributes else "sk"
        range_ = find_free_name(ranged, {*self.attributes, hash_}, "SK", "_sk")
        sorted_ = any(each.base.sorts for each in plan.entities) or self.base.groups
        return replace(told, hash=hash_, range=range_ if sorted_ else None)

    # The table's own keys.

    def _base_keys(self) -> dict[str, KeyDesign]:
        settings, words = self.settings, KeyWords()
        told: dict[str, KeyDesign] = {}
        partition_words: dict[int, str] = {}
        for each in self.plan.entities:
            entity, base = self.entities[each.entity], each.base
            if self.plan.plain:
                sources = tuple(self._own(entity, name) for name in base.fields)
                told[each.entity] = KeyDesign(None, sources[:1], sources[1:])
                continue
            group = self.base.group(each.entity)
            if group is None:
                word = words.take(key_word(each.entity))
            elif group not in partition_words:
                wish = "_".join(key_word(name) for name in base.partition) or key_word(each.entity)
                word = partition_words[group] = words.take(wish, f"{wish}_{key_word(each.entity)}")
            else:
                word = partition_words[group]
            shards = self.plan.base_shards.get(each.entity, 1)
            hash_ = self._made(settings.hash, join_template(self.delimiter, word, base.partition), shards)
            range_: tuple[SourceDesign, ...] = ()
            if settings.range is not None:
                literal = self.base.literal(each.entity, self.delimiter) or key_word(each.entity)
                range_ = (self._made(settings.range, join_template(self.delimiter, literal, base.sorts)),)
            told[each.entity] = KeyDesign(None, (hash_,), range_, shards=_shards(shards))
        return told

    # Indexes.

    def _index(self, number: int, plan: IndexProposal) -> IndexDesign:
        first = plan.blocks[0]
        questions = [question for block in plan.blocks for question in block.questions]
        shared = len(plan.blocks) > 1
        wish = f"gsi{number}" if shared else questions[0].name
        used = [index.label for index in self.named]
        label = index_label(wish, used, f"{snake(wish)}_{snake(first.entity)}")
        if plan.native:
            entity = self.entities[first.entity]
            hash_ = tuple(self._own(entity, name).attribute for name in first.key.partition)
            range_ = tuple(self._own(entity, name).attribute for name in first.key.sorts)
            many = len(hash_) > 1 or len(range_) > 1
            found = IndexDesign(label, label, False, hash_, range_, plan.projection, many)
        else:
            letters = "LSI" if plan.local else "GSI"
            names = {
                f"{letters}{number}{half}": find_free_name(f"{letters}{number}{half}", self.attributes)
                for half in ("PK", "SK")
            }
            hash_ = (self.settings.hash,) if plan.local else (names[f"{letters}{number}PK"],)
            sorted_ = any(block.key.sorts for block in plan.blocks) or any(
                question.several for question in questions
            )
            range_ = (names[f"{letters}{number}SK"],) if sorted_ else ()
            if self._own_order(plan):
                range_ = (self._own(self.entities[first.entity], first.key.sorts[0]).attribute,)
            found = IndexDesign(label, label, plan.local, hash_, range_, plan.projection)
        self.named.append(found)
        return found

    def _index_keys(self, index: IndexDesign, plan: IndexProposal) -> dict[str, KeyDesign]:
        words = KeyWords()
        shared = _shared(plan)
        group_words: dict[int, str] = {}
        told: dict[str, KeyDesign] = {}
        for block in plan.blocks:
            entity, key = self.entities[block.entity], block.key
            if plan.native:
                hash_ = tuple(self._own(entity, name) for name in key.partition)
                range_ = tuple(self._own(entity, name) for name in key.sorts)
                shards = 1
            else:
                group = shared.group(block.entity)
                if group is not None and group in group_words:
                    word = group_words[group]
                else:
                    own = key_word(block.entity)
                    wish = "_".join(key_word(name) for name in key.partition) or own
                    word = words.take(wish, f"{own}_{wish}")
                    if group is not None:
                        group_words[group] = word
                shards = plan.shards.get(block.entity, 1)
                hash_ = (
                    (self._source_of_base(block.entity),)
                    if plan.local
                    else (
                        self._made(index.hash[0], join_template(self.delimiter, word, key.partition), shards),
                    )
                )
                range_ = ()
                if index.range:
                    literal = shared.literal(block.entity, self.delimiter)
                    if not key.sorts and not literal:
                        literal = key_word(block.entity)
                    if plan.local:
                        literal = key_word(block.entity)
                    range_ = (
                        (self._own(entity, key.sorts[0]),)
                        if self._own_order(plan)
                        else (self._made(index.range[0], join_template(self.delimiter, literal, key.sorts)),)
                    )
            sparse = any(entity.field(name).nullable for name in key.fields)
            told[block.entity] = KeyDesign(index.name, hash_, range_, sparse, key.members, _shards(shards))
        return told

    def _own_order(self, plan: IndexProposal) -> bool:
        """Tell whether a local index of a plain table can be sorted by the items' own attribute."""
        block = plan.blocks[0]
        if not (plan.local and self.plan.plain and len(block.key.sorts) == 1) or block.key.members:
            return False
        return fits_key_attribute(self.entities[block.entity].field(block.key.sorts[0]))

    def _source_of_base(self, entity: str) -> SourceDesign:
        return self._base_keys()[entity].hash[0]

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
        getting = [q for q in plan.served if q.identifies and set(q.fixed[0]) == set(plan.base.fields)]
        named = max(
            getting, key=lambda question: (question.name == "Key", question.access is not None), default=None
        )
        primary = PatternDesign(
            "Key", None, _fields_of(key), (), entity.name, False, None if named is None else named.access
        )
        whole = declared_item_bytes(replace(bare, primary=primary))
        patterns = []
        for question in plan.served:
            if question.several or question is named:
                continue
            patterns.append(self._table_pattern(entity, plan.base, question, whole))
        keys = []
        for index, told in zip(indexes, self.plan.indexes, strict=True):
            block = told.block(plan.entity)
            if block is None:
                continue
            keys.append(by_index[index.name][plan.entity])
            own = [question for question in block.questions if not question.several]
            patterns += [self._index_pattern(entity, index, told, block, question, whole) for question in own]
            if not own:  # its key there is said by a query, which only the collection asks
                name = f"In{block.questions[0].name}"
                key_parts = (block.key.partition, block.key.sorts)
                patterns.append(PatternDesign(name, index.name, *key_parts, entity.name))
        order = {question.name: at for at, question in enumerate(self.subject.questions)}
        patterns.sort(key=lambda pattern: order.get(pattern.name, 0))
        return replace(bare, key=key, keys=tuple(keys), primary=primary, patterns=tuple(patterns))

    def _table_pattern(
        self, entity: EntityDesign, base: KeyProposal, question: SolverQuestion, whole: int | None
    ) -> PatternDesign:
        access = question.access
        if access is not None and question.wanted is not None:
            access = replace(access, item_bytes=whole)
        result = self._result(entity, question, only_known=True)
        access = _asked(access, result, entity)
        name = question.name if question.name != "Key" else "ByKey"
        return PatternDesign(name, None, base.partition, base.sorts, result, False, access)

    def _index_pattern(
        self,
        entity: EntityDesign,
        index: IndexDesign,
        plan: IndexProposal,
        block: IndexKey,
        question: SolverQuestion,
        whole: int | None,
    ) -> PatternDesign:
        hydrate = (entity.name, question.name) in plan.hydrated
        access = _fitted(question.access, index, whole, hydrate)
        if access is not None and access.item_bytes is None and question.access != access:
            self.unsized.add((entity.name, question.name))
        result = (
            entity.name if hydrate else self._result(entity, question, only_known=index.projection == "ALL")
        )
        access = _asked(access, result, entity)
        return PatternDesign(
            question.name, index.name, block.key.partition, block.key.sorts, result, hydrate, access
        )

    def _result(self, entity: EntityDesign, question: SolverQuestion, *, only_known: bool) -> str:
        if question.wanted is None:
            return entity.name
        if only_known and not any(
            {found.name for found in view.fields} == question.wanted for view in self.views.known.values()
        ):
            return entity.name
        return self.views.of(entity, question)

    # Collections.

    def _collections(
        self,
        keys: Mapping[str, KeyDesign],
        by_index: Mapping[str, Mapping[str, KeyDesign]],
        indexes: tuple[IndexDesign, ...],
    ) -> list[CollectionDesign]:
        told: dict[str, CollectionDesign] = {}
        for each in self.plan.entities:
            for question in each.served:
                if question.several and question.name not in told:
                    told[question.name] = self._collection(question, None, keys, self.base)
        for index, plan in zip(indexes, self.plan.indexes, strict=True):
            shared = _shared(plan)
            for block in plan.blocks:
                for question in block.together:
                    if question.name not in told:
                        told[question.name] = self._collection(
                            question, index.name, by_index[index.name], shared
                        )
        order = {question.name: at for at, question in enumerate(self.subject.questions)}
        return sorted(told.values(), key=lambda each: order[each.name])

    def _collection(
        self,
        question: SolverQuestion,
        index: str | None,
        keys: Mapping[str, KeyDesign],
        shared: SharedPartitions,
    ) -> CollectionDesign:
        home = self.plan.home
        former = next((c for c in (home.collections if home else ()) if c.name == question.need), None)
        names = {} if former is None else {member.entity: member.name for member in former.members}
        members: list[MemberDesign] = []
        for name in question.entities:
            plan = self.plan.entity(name)
            many = index is not None or bool(plan.base.sorts)
            wish = names.get(name) or (plural(snake(name)) if many else snake(name))
            members.append(MemberDesign(find_free_name(wish, [m.name for m in members]), name, many))
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
            "" if former is None else former.description,
        )

    # Sources.

    def _own(self, entity: EntityDesign, name: str) -> SourceDesign:
        found = entity.field(name)
        tag: KeyTag = found.tags[0]  # type: ignore[assignment]  # one of S, N and B, or it were no plain key
        self.key_types[found.attribute] = tag
        return SourceDesign(found.attribute, tag, found.name)

    def _made(self, attribute: str, text: str, shards: int = 1) -> SourceDesign:
        if shards > 1:
            text += f"{self.delimiter}{{{SHARD}:04}}"
        self.key_types[attribute] = "S"
        return SourceDesign(attribute, "S", None, Template.parse(text, self.delimiter))


def _shared(plan: IndexProposal) -> SharedPartitions:
    """Return how the entities of an index lie together."""
    told = [(block.entity, question) for block in plan.blocks for question in block.together]
    return share_partitions(told, {block.entity for block in plan.blocks if not block.key.sorts})


def _sized(table: TableDesign, unsized: set[tuple[str, str]]) -> TableDesign:
    """Return a table in which patterns that read less than was said of their items say what they read."""
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


def _fields_of(key: KeyDesign) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for source in key.sources for name in source.fields))


def _shards(count: int) -> Shards | None:
    return Shards(count) if count > 1 else None


def _asked(access: AccessPattern | None, result: str, entity: EntityDesign) -> AccessPattern | None:
    """Return an access pattern without what its view says: which fields are read."""
    return access if access is None or result == entity.name else replace(access, reads=())


def _fitted(
    access: AccessPattern | None, index: IndexDesign, whole: int | None, hydrate: bool
) -> AccessPattern | None:
    """Return an access pattern with the size that an index's entries have: what is said of an item is not theirs."""
    if access is None or access.item_bytes is None or whole is None or hydrate:
        return access
    if index.projection == "ALL":
        return replace(access, item_bytes=whole)
    return access if access.item_bytes < whole else replace(access, item_bytes=None)
