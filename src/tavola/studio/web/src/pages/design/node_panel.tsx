// NodePanel: the details of a node of the diagram: fields and writes, key templates, access patterns on an index.
import type { ComponentChildren } from "preact";
import { href } from "../../app/router";
import { templateText } from "../../entity_keys";
import type { DesignPicture, LocatedFinding, TablePicture } from "../../generated/api";
import { DataTable, Chip, Drawer } from "../../parts";
import { projectionText } from "./diagram";
import { FindingRow } from "./finding";
import type { DesignSource } from "./state";
import { formatBytes, formatCount, formatNumber } from "../../format";

const CLOSED = "none"; // instead of a finding's id

interface PanelProps {
  picture: DesignPicture;
  table: TablePicture;
  node: string;
  findings: readonly LocatedFinding[];
  source: DesignSource;
  production: boolean;
  open: string;
  onOpen: (finding: string) => void;
  onClose: () => void;
}

export function NodePanel(props: PanelProps) {
  const { table, node, findings } = props;
  const own = findings.filter((each) => each.node === node);
  const details = describeNode(props.picture, table, node);
  const isOnly = own.length === 1; // a single finding starts open
  return (
    <Drawer title={details.title} onClose={props.onClose}>
      <div class="stack wide">
        {own.length ? (
          <section class="stack" aria-label="Findings">
            {own.map((each) => (
              <FindingRow
                key={each.id}
                finding={each}
                source={props.source}
                production={props.production}
                open={props.open === each.id || (isOnly && props.open === "")}
                onOpen={(open) => props.onOpen(open ? each.id : isOnly ? CLOSED : "")}
              />
            ))}
          </section>
        ) : null}
        {details.body}
      </div>
    </Drawer>
  );
}

function describeNode(
  picture: DesignPicture,
  table: TablePicture,
  node: string,
): { title: ComponentChildren; body: ComponentChildren } {
  const entity = table.entities.find((each) => each.id === node);
  if (entity) return { title: <Chip name={entity.entity.name} />, body: <EntityDetail table={table} id={node} /> };
  const key = table.keys.find((each) => each.id === node);
  if (key) {
    const owner = table.entities.find((each) => each.id === key.entity)?.entity.name ?? "";
    const index = table.indexes.find((each) => each.id === key.index);
    return {
      title: `${owner} in ${index?.kind === "table" ? table.name : (index?.index.name ?? "")}`,
      body: <KeyDetail table={table} id={node} />,
    };
  }
  const index = table.indexes.find((each) => each.id === node);
  if (index) return { title: index.index.name, body: <IndexDetail table={table} id={node} own={picture.own} /> };
  if (node === "design") return { title: "The design", body: <DesignDetail picture={picture} /> };
  if (node === table.id) return { title: table.name, body: <TableDetail table={table} /> };
  return {
    title: "Not found",
    body: <p>This table has no such node. It may belong to another table or to an older version of the design.</p>,
  };
}

/** What belongs to no table: declared needs, policies, entities without a table. */
function DesignDetail({ picture }: { picture: DesignPicture }) {
  return (
    <>
      <p class="muted small">{`${formatCount(picture.tables.length, "table")}: ${picture.tables.map((each) => each.name).join(", ") || "none yet"}.`}</p>
      {picture.needs.length ? (
        <section class="stack tight">
          <h3>Declared needs without a query class</h3>
          <ul class="design-list">
            {picture.needs.map((need) => (
              <li key={need.name}>
                <span>{need.access?.title ?? need.name}</span>
                <span class="muted small">
                  {need.entities.join(", ")}
                  {need.where.length ? ` by ${need.where.map((each) => each.field).join(", ")}` : ""};{" "}
                  {need.route ? `${need.route.operation} ${need.route.index ?? ""}` : "no route declared"}
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
  const picture = table.entities.find((each) => each.id === id);
  if (!picture) return null;
  const { entity } = picture;
  return (
    <>
      {entity.description ? <p>{entity.description}</p> : null}
      <p class="muted small">
        {entity.items === null ? "Item count not declared" : `${formatNumber(entity.items)} items`}, about{" "}
        {formatBytes(picture.item_bytes)} each
        {entity.immutable ? "; immutable" : ""}.
      </p>
      <section class="stack tight">
        <h3>Fields</h3>
        <DataTable label="Fields" columns={["Field", "Attribute", "Type", "Notes"]}>
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
                    picture.key_fields.includes(field.name) ? "in a key" : "",
                    field.lock ? "version number" : "",
                    ...(["unique", "tenant"] as const).filter((mark) => field[mark]),
                    field.nullable ? "optional" : "",
                    field.choices?.join(" | ") ?? "",
                    field.description,
                  ]
                    .filter(Boolean)
                    .join("; ")}
                </td>
              </tr>
            ))}
          </tbody>
        </DataTable>
      </section>
      {entity.writes.length ? (
        <section class="stack tight">
          <h3>Writes</h3>
          <ul class="design-list">
            {entity.writes.map((write) => (
              <li key={`${write.kind} ${write.title}`}>
                <span>{write.title}</span>
                <span class="muted small">
                  {write.kind}
                  {` ${[...write.changes, ...write.adds].join(", ")}`.trimEnd()}
                  {write.per_second === null ? "" : `, ${formatNumber(write.per_second)} per second`}
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
      <DataTable label="Attributes of the key" columns={["Attribute", "Type", "Template"]}>
        <tbody>
          {[...key.key.hash, ...key.key.range].map((source) => (
            <tr key={source.attribute}>
              <th scope="row" class="mono">
                {source.attribute}
              </th>
              <td>{source.tag}</td>
              <td class="mono">{templateText(source)}</td>
            </tr>
          ))}
        </tbody>
      </DataTable>
      {key.members.length ? <p>Contains items where {key.members.join(" and ")}.</p> : null}
      {key.key.sparse ? <p>Sparse: items without all key attributes are not included.</p> : null}
      {key.shards ? <p>Sharding: {key.shards}.</p> : null}
    </>
  );
}

/** Return the id of a pattern on the access patterns page. */
function patternOf(table: string, id: string): string {
  return id.startsWith("need:") ? `${table}/${id.slice(5)}` : id.slice("pattern:".length);
}

function IndexDetail({ table, id, own }: { table: TablePicture; id: string; own: boolean }) {
  const picture = table.indexes.find((each) => each.id === id);
  if (!picture) return null;
  const { index } = picture;
  const members = table.keys
    .filter((each) => each.index === id)
    .map((each) => table.entities.find(({ id }) => id === each.entity)?.entity.name ?? "");
  return (
    <>
      <dl class="design-facts">
        {picture.kind === "table" || index.label === index.name ? null : (
          <>
            <dt>Name in the design</dt>
            <dd class="mono">{index.label}</dd>
          </>
        )}
        <dt>Partition key</dt>
        <dd class="mono">{index.hash.join(", ")}</dd>
        <dt>Sort key</dt>
        <dd class="mono">{index.range.join(", ") || "none"}</dd>
        <dt>Projection</dt>
        <dd>{typeof index.projection === "string" ? projectionText(index) : index.projection.join(", ")}</dd>
        <dt>Entities</dt>
        <dd class="row tight">{members.length ? members.map((name) => <Chip key={name} name={name} />) : "none"}</dd>
      </dl>
      <section class="stack tight">
        <h3>Access patterns</h3>
        {picture.patterns.length ? (
          <ul class="design-list">
            {picture.patterns.map((pattern) => (
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
                  {pattern.parameters.length ? ` by ${pattern.parameters.join(", ")}` : ""}
                  {pattern.then.length ? `, then ${pattern.then.join(", ")}` : ""}
                  {pattern.per_second === null ? "" : `; ${formatNumber(pattern.per_second)} per second`}
                  {pattern.consistent ? "; consistent" : ""}
                  {pattern.hydrate ? "; fetches full items" : ""}
                </span>
              </li>
            ))}
          </ul>
        ) : (
          <p class="muted">No access pattern uses this index.</p>
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
        {table.settings.map(([name, value]) => [<dt key={`${name}-name`}>{name}</dt>, <dd key={name}>{value}</dd>])}
      </dl>
      {table.consumers.length ? (
        <section class="stack tight">
          <h3>Stream consumers</h3>
          <ul class="design-list">
            {table.consumers.map((each) => (
              <li key={each.name}>
                <span>{each.name}</span>
                <span class="muted small">
                  {each.events.length ? each.events.join(", ") : "all records"}
                  {each.writes.length ? `; writes ${each.writes.join(", ")}` : ""}
                  {each.failures ? `; failed batches go to ${each.failures.toUpperCase()}` : ""}
                </span>
              </li>
            ))}
          </ul>
        </section>
      ) : null}
    </>
  );
}
