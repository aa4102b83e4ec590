// CodeDialog: a query or an item as code to copy.
import { useState } from "preact/hooks";
import { type Query, useQuery } from "../../app/queries";
import type { ItemQuery, Item, ItemCode, QueryCode } from "../../generated/api";
import { Code, Dialog, Loaded, Segmented } from "../../parts";

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

export function QueryCodeDialog(props: { query: ItemQuery; language: Language; onClose: () => void }) {
  const code = useQuery("POST /browse/code", props.query);
  const missing =
    "No access pattern in the design matches this query, so there is no Tavola client code for it. Use boto3.";
  return <CodeDialog title="Query as code" languages={LANGUAGES} code={code} missing={missing} {...props} />;
}

interface ItemCodeDialogProps {
  table: string;
  itemKey: Item;
  asOf: string;
  language: ItemLanguage;
  onClose: () => void;
}

export function ItemCodeDialog({ table, itemKey, asOf, ...rest }: ItemCodeDialogProps) {
  const code = useQuery("POST /browse/item-code", { table, key: itemKey, as_of: asOf || null });
  const missing = "No entity in the design has this key.";
  return <CodeDialog title="Item as code" languages={ITEM_LANGUAGES} code={code} missing={missing} {...rest} />;
}

interface CodeDialogProps<L extends string> {
  title: string;
  languages: readonly (readonly [L, string])[];
  language: L;
  code: Query<Readonly<Record<L, string | null>>>;
  /** Shown for a language that has no code. */
  missing: string;
  onClose: () => void;
}

function CodeDialog<L extends string>({ title, languages, language, code, missing, onClose }: CodeDialogProps<L>) {
  const [chosen, choose] = useState<L>(language);
  return (
    <Dialog title={title} wide onClose={onClose}>
      <div class="stack">
        <div class="data-code-languages">
          <Segmented
            label="Language"
            options={languages.map(([value, label]) => ({ value, label }))}
            value={chosen}
            onChange={(value) => choose(value as L)}
          />
        </div>
        <Loaded query={code}>
          {(texts) =>
            texts[chosen] === null ? <p class="muted">{missing}</p> : <Code text={texts[chosen]} label={chosen} />
          }
        </Loaded>
        {chosen === "json" ? (
          <p class="small muted">
            Plain JSON keeps every digit but does not distinguish a set from a list or binary from a string. DynamoDB
            JSON does.
          </p>
        ) : null}
      </div>
    </Dialog>
  );
}
