// QueryBar: builds a query from conditions or PartiQL, and shows its plan before it runs.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useQuery } from "../../app/queries";
import { useCommands } from "../../app/commands";
import { go, route } from "../../app/router";
import { keySources, templateText } from "../../entity_keys";
import type { QueryCondition, ItemQuery, TableDetail, TableSummary } from "../../generated/api";
import {
  Button,
  Checkbox,
  IconButton,
  Menu,
  Select,
  type Tag,
  TAG_NAMES,
  TextArea,
  TextInput,
  plainOptions,
  TAG_OPTIONS,
} from "../../parts";
import { type Language, LANGUAGES } from "./code_dialog";
import { attributesOf, seenType } from "./columns";
import {
  arity,
  conditionOf,
  type Draft,
  draftsOf,
  emptyDraft,
  type Operator,
  OPERATORS,
  pathOf,
  VALUE_TAGS,
  withOperator,
} from "./condition_drafts";
import { keyTypes } from "./keys";
import { QueryPlan } from "./query_plan";
import {
  parseConditions,
  currentQuery,
  reading,
  rows,
  start,
  statement,
  statementRequest,
  writeConditions,
} from "./state";

const SUGGESTIONS_MAX = 150;

interface Known {
  readonly table: TableSummary;
  readonly detail: TableDetail | null;
}

/** Return the type of an attribute's values: from the key, the design or the loaded rows. */
function typeOf(attribute: string, { table, detail }: Known): { tag: Tag; key: boolean } {
  const key = keyTypes(table).get(attribute);
  if (key) return { tag: key, key: true };
  for (const entity of detail?.entities ?? []) {
    const field = entity.fields.find((each) => each.attribute === attribute);
    const tag = field?.tags[0] as Tag | undefined;
    if (tag && VALUE_TAGS.includes(tag)) return { tag, key: false };
  }
  const seen = seenType(rows.value, attribute) as Tag | null;
  return { tag: seen && VALUE_TAGS.includes(seen) ? seen : "S", key: false };
}

/** Return the key templates of an attribute, as a placeholder. */
function hintOf(attribute: string, detail: TableDetail | null): string {
  const templates = (detail?.entities ?? []).flatMap((entity) =>
    keySources(entity)
      .filter((part) => part.attribute === attribute)
      .map(templateText),
  );
  return [...new Set(templates)].slice(0, 3).join("  or  ");
}

export function QueryBar({
  table,
  detail,
  onCode,
}: Known & { onCode: (query: ItemQuery, language: Language) => void }) {
  const written = route.value.params["q"] ?? "";
  const [drafts, setDrafts] = useState<readonly Draft[]>(() => draftsOf(parseConditions(written)));
  const [sql, setSql] = useState(statement.value);
  const [asSql, setAsSql] = useState(statement.value !== "");
  const first = useRef<HTMLInputElement>(null);
  const box = useRef<HTMLFormElement>(null);
  const known: Known = { table, detail };

  // The URL is the source: going back, or another tab or table, shows the query there.
  const place = JSON.stringify([table.name, written, statement.value]);
  useEffect(() => {
    setDrafts(draftsOf(parseConditions(written)));
    setSql(statement.value);
    setAsSql(statement.value !== "");
  }, [place]);

  const checked = drafts.map((draft) => {
    const own = typeOf(unquoted(draft.attribute), known);
    const tag = own.key ? own.tag : (draft.tag ?? own.tag);
    return { draft, tag, key: own.key, condition: conditionOf(draft, tag, own.key) };
  });
  const conditions = checked
    .map((each) => each.condition)
    .filter((each): each is QueryCondition => each !== null && typeof each !== "string");
  const numbers = new Map(
    checked
      .filter((each) => each.condition !== null && typeof each.condition !== "string")
      .map((each, at) => [each.draft.id, at]),
  );
  const incomplete = checked.some((each) => typeof each.condition === "string");
  const base = currentQuery.value;
  const drafted: ItemQuery | null = base ? { ...base, conditions } : null;
  // The plan of the running query is known; only an edited query needs one.
  const isCurrent =
    !asSql &&
    !incomplete &&
    statement.value === "" &&
    drafted !== null &&
    JSON.stringify(drafted) === JSON.stringify(base);
  const draftPlan = useQuery("POST /browse/plan", asSql || incomplete || isCurrent ? null : drafted, { delayMs: 200 });
  const sqlPlan = useQuery(
    "POST /browse/statement-plan",
    asSql && base && sql.trim() ? statementRequest(base, sql.trim()) : null,
    { delayMs: 400 },
  );
  const now = reading.value;
  const plan = isCurrent
    ? { data: now.plan, loading: now.plan === null && now.phase !== "idle", problem: null }
    : draftPlan;

  const names = useMemo(
    () =>
      [
        ...new Set([
          ...keyTypes(table).keys(),
          ...(detail?.entities ?? []).flatMap((entity) => entity.fields.map((field) => field.attribute)),
          ...attributesOf(rows.value, table, detail),
        ]),
      ].slice(0, SUGGESTIONS_MAX),
    [table, detail, rows.value],
  );

  const focusBar = () => {
    if (asSql) box.current?.querySelector("textarea")?.focus();
    else if (first.current) {
      first.current.focus();
      first.current.select();
    } else add();
  };
  const add = () => {
    // The first condition is on the partition key, so that only its value is missing.
    const part = drafts.length ? "attribute" : "values";
    setDrafts((before) => [...before, emptyDraft(before.length ? "" : pathOf(table.keys[0]?.name ?? ""))]);
    requestAnimationFrame(() => {
      const inputs = box.current?.querySelectorAll<HTMLInputElement>(`.data-condition .data-${part} input`);
      inputs?.[inputs.length - 1]?.focus();
    });
  };
  useCommands([
    { id: "data.query", title: "Focus the query bar", keys: "/", group: "Data", run: focusBar },
    { id: "data.run", title: "Run the query", keys: "mod+enter", group: "Data", always: true, run: () => run() },
  ]);

  const change = (id: number, to: (draft: Draft) => Draft) =>
    setDrafts((before) => before.map((each) => (each.id === id ? to(each) : each)));
  const run = () => {
    if (asSql) {
      if (sql.trim() === statement.value)
        void start({ confirmed: reading.value.phase !== "confirming" && rows.value.length > 0 });
      else go({ params: { sql: sql.trim(), q: null } });
      return;
    }
    if (incomplete) return;
    const text = writeConditions(conditions);
    if (text === written && statement.value === "")
      void start({ confirmed: reading.value.phase !== "confirming" && rows.value.length > 0 });
    else go({ params: { q: text, sql: null } });
  };
  const clear = () => {
    setDrafts([]);
    setAsSql(false);
    go({ params: { q: null, sql: null } });
  };
  const { desc, strong, here, index } = route.value.params;

  return (
    <form
      class="data-query"
      ref={box}
      aria-label="Query"
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      <datalist id="data-names">
        {(checked.length ? names : []).map((name) => (
          <option key={name} value={pathOf(name)} />
        ))}
      </datalist>
      {asSql ? (
        <TextArea
          label="PartiQL statement"
          hideLabel
          mono
          rows={3}
          value={sql}
          placeholder={`SELECT * FROM "${table.name}" WHERE ${table.keys[0]?.name ?? "pk"} = '…'`}
          onInput={setSql}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              run();
            }
          }}
        />
      ) : (
        checked.map(({ draft, tag, key, condition }, at) => (
          <ConditionRow
            key={draft.id}
            draft={draft}
            tag={tag}
            isKey={key}
            error={typeof condition === "string" ? condition : null}
            hint={hintOf(unquoted(draft.attribute), detail)}
            inputRef={at === 0 ? first : null}
            role={
              plan.data && !plan.loading && !incomplete
                ? (plan.data.conditions[numbers.get(draft.id) ?? -1]?.role ?? null)
                : null
            }
            onChange={(to) => change(draft.id, to)}
            onRemove={() => setDrafts((before) => before.filter((each) => each.id !== draft.id))}
          />
        ))
      )}
      <div class="row data-query-actions">
        {asSql ? null : (
          <Button small onClick={add}>
            + Add condition
          </Button>
        )}
        <Button small kind="primary" type="submit" disabled={!asSql && incomplete}>
          Run
        </Button>
        {conditions.length || written || statement.value || asSql ? (
          <Button small kind="quiet" onClick={clear}>
            Clear
          </Button>
        ) : null}
        {asSql ? null : (
          <>
            <Checkbox
              label="Consistent read"
              checked={strong === "yes"}
              onChange={(on) => go({ params: { strong: on ? "yes" : null } })}
            />
            <Checkbox
              label="Sort descending"
              checked={desc === "yes"}
              onChange={(on) => go({ params: { desc: on ? "yes" : null } })}
            />
            {index ? null : (
              <Checkbox
                label="Don't use indexes"
                checked={here === "yes"}
                onChange={(on) => go({ params: { here: on ? "yes" : null } })}
              />
            )}
          </>
        )}
        <span class="grow" />
        {asSql || !drafted ? null : (
          <Menu
            small
            kind="quiet"
            label="Copy as"
            items={LANGUAGES.map(([language, label]) => ({ label, run: () => onCode(drafted, language) }))}
          />
        )}
        <Button small kind="quiet" aria-pressed={asSql} onClick={() => setAsSql(!asSql)}>
          PartiQL
        </Button>
      </div>
      {asSql ? (
        sql.trim() ? (
          <QueryPlan plan={sqlPlan.data} loading={sqlPlan.loading} problem={sqlPlan.problem} incomplete={false} />
        ) : null
      ) : (
        <QueryPlan
          plan={plan.data}
          loading={plan.loading}
          problem={plan.problem}
          incomplete={incomplete}
          onSuggestion={(suggestion) => go({ params: { q: writeConditions(suggestion.conditions), sql: null } })}
        />
      )}
    </form>
  );
}

/** Return the attribute name of a path, without its quotes. */
function unquoted(path: string): string {
  const found = /^"((?:[^"]|"")*)"$/.exec(path.trim());
  return found ? (found[1] ?? "").replaceAll('""', '"') : path.trim();
}

const ROLES = { key: "key", filter: "filter", studio: "filtered here" } as const;
const ROLE_TITLES = {
  key: "Part of the key condition: determines which items are read",
  filter: "A filter: items that don't match are still read and billed",
  studio: "DynamoDB can't filter a Query on a key attribute, so the studio filters the result",
} as const;

interface ConditionRowProps {
  draft: Draft;
  tag: Tag;
  isKey: boolean;
  error: string | null;
  hint: string;
  role: keyof typeof ROLES | null;
  inputRef: { current: HTMLInputElement | null } | null;
  onChange: (to: (draft: Draft) => Draft) => void;
  onRemove: () => void;
}

function ConditionRow({ draft, tag, isKey, error, hint, role, inputRef, onChange, onRemove }: ConditionRowProps) {
  const count = arity(draft.operator);
  const sized = draft.operator.startsWith("size ");
  const setText = (at: number, text: string) =>
    onChange((before) => ({ ...before, texts: before.texts.map((each, number) => (number === at ? text : each)) }));
  const name = draft.attribute || "condition";
  return (
    <div class="data-condition" role="group" aria-label={`Condition on ${name}`}>
      <div class="data-attribute">
        <TextInput
          label="Attribute"
          hideLabel
          mono
          list="data-names"
          placeholder="attribute"
          value={draft.attribute}
          {...(inputRef ? { inputRef } : {})}
          onInput={(attribute) => onChange((before) => ({ ...before, attribute }))}
        />
      </div>
      <Select
        label={`Operator of ${name}`}
        hideLabel
        class="data-operator"
        value={draft.operator}
        options={OPERATORS.map(([value, label]) => ({ value, label }))}
        onChange={(value) => onChange((before) => withOperator(before, value as Operator))}
      />
      {count === 0 ? (
        <span class="data-values" />
      ) : (
        <div class="data-values">
          {draft.operator === "type" ? (
            <Select
              label={`Type of ${name}`}
              hideLabel
              value={draft.texts[0] ?? "S"}
              options={TAG_OPTIONS}
              onChange={(value) => setText(0, value)}
            />
          ) : tag === "BOOL" && !sized ? (
            <Select
              label={`Value of ${name}`}
              hideLabel
              value={draft.texts[0] === "true" ? "true" : "false"}
              options={plainOptions(["true", "false"])}
              onChange={(value) => setText(0, value)}
            />
          ) : tag === "NULL" && !sized ? null : (
            draft.texts.map((text, at) => (
              <TextInput
                key={at}
                label={`Value${draft.texts.length > 1 ? ` ${at + 1}` : ""} of ${name}`}
                hideLabel
                mono
                value={text}
                error={at === 0 ? error : null}
                inputMode={tag === "N" || sized ? "decimal" : "text"}
                placeholder={sized ? "bytes or elements" : isKey && hint ? hint : `${TAG_NAMES[tag]}`}
                onInput={(value) => setText(at, value)}
              />
            ))
          )}
          {count < 0 ? (
            <>
              <IconButton
                small
                label="Add value"
                onClick={() => onChange((before) => ({ ...before, texts: [...before.texts, ""] }))}
              >
                +
              </IconButton>
              {draft.texts.length > 1 ? (
                <IconButton
                  small
                  label="Remove value"
                  onClick={() => onChange((before) => ({ ...before, texts: before.texts.slice(0, -1) }))}
                >
                  −
                </IconButton>
              ) : null}
            </>
          ) : null}
        </div>
      )}
      {count === 0 || draft.operator === "type" || sized ? (
        <span class="data-type" />
      ) : isKey ? (
        <span class="data-type muted small" title="Type of the key attribute">
          {TAG_NAMES[tag]}
        </span>
      ) : (
        <Select
          label={`Type of the value of ${name}`}
          hideLabel
          class="data-type"
          value={tag}
          options={VALUE_TAGS.map((value) => ({ value, label: TAG_NAMES[value] }))}
          onChange={(value) => onChange((before) => ({ ...before, tag: value as Tag }))}
        />
      )}
      <span class={`data-role small ${role ?? ""}`} title={role ? ROLE_TITLES[role] : undefined}>
        {role ? ROLES[role] : ""}
      </span>
      <IconButton small kind="quiet" label={`Remove condition on ${name}`} onClick={onRemove}>
        ✕
      </IconButton>
    </div>
  );
}
