// CodeDialog: a question or an item as code to take away.
import { useState } from "preact/hooks";
import { useAsk } from "../../app/asking";
import type { ItemQuery, Item, ItemCode, QueryCode } from "../../generated/api";
import { Code, Dialog, ProblemNotice, Segmented, Spinner } from "../../parts";

export type Language = keyof QueryCode;
export type ItemLanguage = keyof ItemCode;

export const LANGUAGES: readonly (readonly [Language, string])[] = [
  ["boto3", "boto3"],
  ["cli", "AWS CLI"],
  ["tavola", "Tavola"],
  ["typescript", "TypeScript"],
  ["test", "pytest"],
];

export const ITEM_LANGUAGES: readonly (readonly [ItemLanguage, string])[] = [
  ["json", "JSON"],
  ["dynamodb_json", "DynamoDB JSON"],
  ["boto3", "boto3"],
  ["cli", "AWS CLI"],
  ["tavola", "Tavola"],
  ["typescript", "TypeScript"],
];

const options = (languages: readonly (readonly [string, string])[]) =>
  languages.map(([value, label]) => ({ value, label }));

export function QuestionCodeDialog({
  asked,
  language,
  onClose,
}: {
  asked: ItemQuery;
  language: Language;
  onClose: () => void;
}) {
  const [chosen, choose] = useState<Language>(language);
  const { data, problem, again } = useAsk("POST /browse/code", asked);
  return (
    <Dialog title="The question as code" wide onClose={onClose}>
      <div class="stack">
        <div class="data-code-languages">
          <Segmented
            label="Language"
            options={options(LANGUAGES)}
            value={chosen}
            onChange={(value) => choose(value as Language)}
          />
        </div>
        {problem ? (
          <ProblemNotice problem={problem} again={again} />
        ) : data ? (
          <Told
            text={data[chosen]}
            language={chosen}
            absent="No access pattern of the design asks this, so there is no code of Tavola's client for it. boto3 asks it."
          />
        ) : (
          <Spinner />
        )}
      </div>
    </Dialog>
  );
}

export function ItemCodeDialog({
  table,
  itemKey,
  asOf,
  language,
  onClose,
}: {
  table: string;
  itemKey: Item;
  asOf: string;
  language: ItemLanguage;
  onClose: () => void;
}) {
  const [chosen, choose] = useState<ItemLanguage>(language);
  const { data, problem, again } = useAsk("POST /browse/item-code", { table, key: itemKey, as_of: asOf || null });
  return (
    <Dialog title="The item as code" wide onClose={onClose}>
      <div class="stack">
        <div class="data-code-languages">
          <Segmented
            label="Language"
            options={options(ITEM_LANGUAGES)}
            value={chosen}
            onChange={(value) => choose(value as ItemLanguage)}
          />
        </div>
        {problem ? (
          <ProblemNotice problem={problem} again={again} />
        ) : data ? (
          <Told text={data[chosen]} language={chosen} absent="No entity of the design has such a key." />
        ) : (
          <Spinner />
        )}
        {chosen === "json" ? (
          <p class="small muted">
            Plain JSON keeps every digit; it does not tell a set from a list nor binary from text. DynamoDB JSON does.
          </p>
        ) : null}
      </div>
    </Dialog>
  );
}

function Told({ text, language, absent }: { text: string | null; language: string; absent: string }) {
  return text === null ? <p class="muted">{absent}</p> : <Code text={text} label={language} />;
}
