// Node panel: what a node of the diagram is, in full: fields and writes, parts of a key, questions asked on an index.
import type { ComponentChildren } from "preact";
import { href } from "../../app/router";
import type { DesignPicture, LintFinding, TablePicture } from "../../generated/api";
import { bytes, Chip, Drawer, num } from "../../parts";
import { FindingRow } from "./finding";
import type { About } from "./state";

const CLOSED = "none"; // in the place of a finding's id

interface PanelProps {
  picture: DesignPicture;
  table: TablePicture;
  node: string;
  findings: readonly LintFinding[];
  about: About;
  production: boolean;
  open: string;
  onOpen: (finding: string) => void;
  onClose: () => void;
}

export function NodePanel(props: PanelProps) {
  const { table, node, findings } = props;
  const mine = findings.filter((each) => each.node === node);
  const told = described(props.picture, table, node);
  const alone = mine.length === 1; // there is nothing to choose, so it is open until somebody closes it
  return (
    <Drawer title={told.title} onClose={props.onClose}>
      <div class="stack wide">
        {mine.length ? (
          <section class="stack" aria-label="Findings">
            {mine.map((each) => (
              <FindingRow
                key={each.id}
                finding={each}
                about={props.about}
                production={props.production}
                open={props.open === each.id || (alone && props.open === "")}
                onOpen={(open) => props.onOpen(open ? each.id : alone ? CLOSED : "")}
              />
            ))}
          </section>
        ) : null}
        {told.body}
      </div>
    </Drawer>
  );
}

function described(
  picture: DesignPicture,
  table: TablePicture,
  node: string,
): { title: ComponentChildren; body: ComponentChildren } {
  const entity = table.entities.find((each) => each.id === node);
  if (entity) return { title: <Chip name={entity.name} />, body: <EntityDetail table={table} id={node} /> };
  const key = table.keys.find((each) => each.id === node);
  if (key) {
    const owner = table.entities.find((each) => each.id === key.entity)?.name ?? "";
    const index = table.indexes.find((each) => each.id === key.index);
    return {
      title: `${owner} in ${index?.kind === "table" ? table.name : (index?.name ?? "")}`,
      body: <KeyDetail table={table} id={node} />,
    };
  }
  const index = table.indexes.find((each) => each.id === node);
  if (index) return { title: index.name, body: <IndexDetail table={table} id={node} own={picture.own} /> };
  if (node === "design") return { title: "The design", body: <WholeDetail picture={picture} /> };
  if (node === table.id) return { title: table.name, body: <TableDetail table={table} /> };
  return {
    title: "Nothing is here",
    body: <p>The table has no node of this name; it may be another table's, or an older design's.</p>,
  };
}

/** What belongs to no table: questions without a query of their own, policies, entities without a key. */
function WholeDetail({ picture }: { picture: DesignPicture }) {
  return (
    <>
      <p class="muted small">{`${picture.tables.length} ${picture.tables.length === 1 ? "table" : "tables"}: ${picture.tables.map((each) => each.name).join(", ") || "none yet"}.`}</p>
      {picture.needs.length ? (
        <section class="stack tight">
          <h3>Questions without a query class</h3>
          <ul class="design-list">
            {picture.needs.map((need) => (
              <li key={need.name}>
                <span>{need.title}</span>
                <span class="muted small">
                  {need.entities.join(", ")}
                  {need.asked_with.length ? ` by ${need.asked_with.join(", ")}` : ""};{" "}
                  {need.route || "nobody says how it is asked"}
                </span>
              </li>
            ))}
          </ul>
        </section>
      ) : null}
      {picture.policies.length ? (
        <section class="stack tight">
          <h3>Policies</h3>
          <p>{picture.policies.join(", ")}</p>
        </section>
      ) : null}
      {picture.entities_without_table.length ? (
        <section class="stack tight">
          <h3>Entities without a table</h3>
          <p>{picture.entities_without_table.join(", ")}</p>
        </section>
      ) : null}
    </>
  );
}

function EntityDetail({ table, id }: { table: TablePicture; id: string }) {
  const entity = table.entities.find((each) => each.id === id);
  if (!entity) return null;
  return (
    <>
      {entity.description ? <p>{entity.description}</p> : null}
      <p class="muted small">
        {entity.items === null ? "Nobody says how many there are" : `${num(entity.items)} items`}, about{" "}
        {bytes(entity.item_bytes)} each
        {entity.immutable ? "; never changed once written" : ""}.
      </p>
      <section class="stack tight">
        <h3>Fields</h3>
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Fields">
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Field</th>
                <th scope="col">Attribute</th>
                <th scope="col">Type</th>
                <th scope="col">To know</th>
              </tr>
            </thead>
            <tbody>
              {entity.fields.map((field) => (
                <tr key={field.name}>
                  <th scope="row" class="mono">
                    {field.name}
                  </th>
                  <td class="mono">{field.attribute}</td>
                  <td>{field.type}</td>
                  <td class="small">
                    {[
                      field.in_keys ? "in a key" : "",
                      ...field.marks,
                      field.nullable ? "may be absent" : "",
                      field.choices.length ? field.choices.join(" | ") : "",
                      field.description,
                    ]
                      .filter(Boolean)
                      .join("; ")}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      {entity.writes.length ? (
        <section class="stack tight">
          <h3>How it is written</h3>
          <ul class="design-list">
            {entity.writes.map((write) => (
              <li key={`${write.kind} ${write.title}`}>
                <span>{write.title}</span>
                <span class="muted small">
                  {write.kind}
                  {write.changes.length ? ` ${write.changes.join(", ")}` : ""}
                  {write.per_second === null ? "" : `, ${num(write.per_second)} a second`}
                </span>
              </li>
            ))}
          </ul>
        </section>
      ) : null}
    </>
  );
}

function KeyDetail({ table, id }: { table: TablePicture; id: string }) {
  const key = table.keys.find((each) => each.id === id);
  if (!key) return null;
  return (
    <>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Attributes of the key">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Attribute</th>
              <th scope="col">Type</th>
              <th scope="col">Made of</th>
            </tr>
          </thead>
          <tbody>
            {[...key.hash, ...key.range].map((source) => (
              <tr key={source.attribute}>
                <th scope="row" class="mono">
                  {source.attribute}
                </th>
                <td>{source.type}</td>
                <td class="mono">{source.template}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {key.members.length ? <p>In it are items where {key.members.join(" and ")}.</p> : null}
      {key.sparse ? <p>An item that lacks a part of the key is not in it.</p> : null}
      {key.shards ? <p>Spread over shards: {key.shards}.</p> : null}
    </>
  );
}

/** Return the id under which the page of access patterns has one that the picture names. */
function patternOf(table: string, id: string): string {
  return id.startsWith("need:") ? `${table}/${id.slice(5)}` : id.slice("pattern:".length);
}

function IndexDetail({ table, id, own }: { table: TablePicture; id: string; own: boolean }) {
  const index = table.indexes.find((each) => each.id === id);
  if (!index) return null;
  const members = table.keys
    .filter((each) => each.index === id)
    .map((each) => table.entities.find((entity) => entity.id === each.entity)?.name ?? "");
  return (
    <>
      <dl class="design-facts">
        {index.kind === "table" || index.label === index.name ? null : (
          <>
            <dt>In the design</dt>
            <dd class="mono">{index.label}</dd>
          </>
        )}
        <dt>Partition key</dt>
        <dd class="mono">{index.hash.join(", ")}</dd>
        <dt>Sort key</dt>
        <dd class="mono">{index.range.join(", ") || "none"}</dd>
        <dt>Holds</dt>
        <dd>{index.projected.length ? index.projected.join(", ") : index.projection}</dd>
        <dt>Members</dt>
        <dd class="row tight">
          {members.length ? members.map((name) => <Chip key={name} name={name} />) : "no entity"}
        </dd>
      </dl>
      <section class="stack tight">
        <h3>Asked by</h3>
        {index.patterns.length ? (
          <ul class="design-list">
            {index.patterns.map((pattern) => (
              <li key={pattern.id}>
                {own ? (
                  <a
                    href={href({
                      page: "patterns",
                      table: table.name,
                      params: { pattern: patternOf(table.name, pattern.id) },
                    })}
                  >
                    {pattern.title}
                  </a>
                ) : (
                  <span>{pattern.title}</span>
                )}
                <span class="muted small">
                  {pattern.entity}
                  {pattern.asked_with.length ? ` by ${pattern.asked_with.join(", ")}` : ""}
                  {pattern.then.length ? `, then ${pattern.then.join(", ")}` : ""}
                  {pattern.per_second === null ? "" : `; ${num(pattern.per_second)} a second`}
                  {pattern.consistent ? "; consistent" : ""}
                  {pattern.hydrate ? "; items are fetched" : ""}
                </span>
              </li>
            ))}
          </ul>
        ) : (
          <p class="muted">No access pattern is asked on it.</p>
        )}
      </section>
    </>
  );
}

export function TableDetail({ table }: { table: TablePicture }) {
  return (
    <>
      {table.description ? <p>{table.description}</p> : null}
      <dl class="design-facts">
        {table.settings.map((each) => [
          <dt key={`${each.name}-name`}>{each.name}</dt>,
          <dd key={each.name}>{each.value}</dd>,
        ])}
      </dl>
      {table.consumers.length ? (
        <section class="stack tight">
          <h3>What reads its stream</h3>
          <ul class="design-list">
            {table.consumers.map((each) => (
              <li key={each.id}>
                <span>{each.name}</span>
                <span class="muted small">
                  {each.events.length ? each.events.join(", ") : "every record"}
                  {each.writes.length ? `; writes ${each.writes.join(", ")}` : ""}
                  {each.failures ? `; what fails goes to ${each.failures}` : ""}
                </span>
              </li>
            ))}
          </ul>
        </section>
      ) : null}
    </>
  );
}
