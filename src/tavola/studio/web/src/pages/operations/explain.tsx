// Explain: whether a principal may make a request, which statement decides it, and which others were considered.
import { useEffect, useState } from "preact/hooks";
import { call } from "../../app/api";
import { useQuery, useAction } from "../../app/queries";
import { go, route } from "../../app/router";
import { session } from "../../app/session";
import type { ExplainRequest, ExplainedAccess, AccessExplanation, PrincipalList } from "../../generated/api";
import {
  DataTable,
  Badge,
  Button,
  Checkbox,
  Empty,
  Notice,
  Panel,
  ProblemNotice,
  Segmented,
  Select,
  Spinner,
  Split,
  TextArea,
  TextInput,
  plainOptions,
  Loaded,
} from "../../parts";
import { templateOf } from "./request_templates";

const MODES = [
  { value: "request", label: "Request" },
  { value: "action", label: "Action" },
];
const OUTCOMES: Readonly<Record<string, string>> = {
  "another action": "action does not match",
  "another resource": "resource does not match",
  "another principal": "principal does not match",
};

export function Explain() {
  const principals = useQuery("GET /access/principals", session.value?.directory ? {} : null);
  if (session.value && !session.value.directory) {
    return (
      <Empty title="No users or policies">
        No IAM file is loaded, so all requests are allowed. Create one with <code>tavola iam init iam.json</code> and
        start the studio with it: <code>tavola studio --store FILE --iam iam.json</code>. To enforce it for callers, run{" "}
        <code>tavola serve FILE --studio --auth strict --iam iam.json</code>.
      </Empty>
    );
  }
  return <Loaded query={principals}>{(data) => <Form known={data} />}</Loaded>;
}

function Form({ known }: { known: PrincipalList }) {
  const { params } = route.value;
  const [principal, setPrincipal] = useState(principalOf(known, params["who"]));
  const [mode, setMode] = useState(params["mode"] ?? "request");
  const [operation, setOperation] = useState(params["eop"] ?? "GetItem");
  const [text, setText] = useState(params["request"] ?? templateOf("GetItem"));
  const [action, setAction] = useState(params["action"] ?? "dynamodb:GetItem");
  const [resource, setResource] = useState(params["resource"] ?? session.value?.tables[0]?.name ?? "");
  const [keys, setKeys] = useState(params["keys"] ?? "");
  const [address, setAddress] = useState(params["ip"] ?? "");
  const [secure, setSecure] = useState(params["tls"] !== "no");
  const [explanation, setExplanation] = useState<AccessExplanation | null>(null);
  const checking = useAction();
  const [error, setError] = useState<string | null>(null);

  const check = () => {
    const request = checkRequest();
    if (!request) return;
    go(
      {
        params: {
          who: principal,
          mode: mode === "request" ? null : mode,
          ...(mode === "request"
            ? { eop: operation, request: text, action: null, resource: null, keys: null }
            : { action, resource, keys, eop: null, request: null }),
          ip: address,
          tls: secure ? null : "no",
        },
      },
      { replace: true },
    );
    void checking.run(async () => {
      setExplanation(null);
      setExplanation(await call("POST /access/explain", request));
    });
  };
  const checkRequest = (): ExplainRequest | null => {
    const common = { principal, source_ip: address || null, secure };
    if (mode === "action")
      return {
        ...common,
        action,
        resource,
        keys: keys
          .split(",")
          .map((key) => key.trim())
          .filter(Boolean),
      };
    try {
      const parsed: unknown = JSON.parse(text);
      if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
        throw new SyntaxError("a request must be an object");
      setError(null);
      return { ...common, operation, request: parsed as Record<string, unknown> };
    } catch (thrown) {
      setError(`Invalid JSON: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
      return null;
    }
  };
  useEffect(() => {
    if (params["request"] || params["action"]) void check(); // a link shows the decision, not only the form
  }, []);
  const choose = (name: string) => {
    if (text === templateOf(operation)) setText(templateOf(name));
    setOperation(name);
  };
  return (
    <Split
      side={
        <Panel title="Access check">
          <form
            class="stack"
            onSubmit={(event) => {
              event.preventDefault();
              void check();
            }}
          >
            <Select
              label="Principal"
              value={principal}
              options={known.principals.map(({ principal: { arn, name, kind, account } }) => ({
                value: arn,
                label: `${name} (${kind === "session" ? "role" : kind}${hasManyAccounts(known) ? `, ${account}` : ""})`,
              }))}
              onChange={setPrincipal}
            />
            <Segmented label="Check" options={MODES} value={mode} onChange={setMode} />
            {mode === "request" ? (
              <>
                <Select
                  label="Operation"
                  value={operation}
                  options={plainOptions(known.operations)}
                  onChange={choose}
                />
                <TextArea
                  label="Request"
                  mono
                  rows={12}
                  value={text}
                  onInput={setText}
                  error={error}
                  hint="DynamoDB JSON. The keys, tags and policies of the tables are looked up."
                />
              </>
            ) : (
              <>
                <TextInput label="Action" mono value={action} onInput={setAction} list="operations-actions" />
                <datalist id="operations-actions">
                  {known.actions.map((name) => (
                    <option key={name} value={name} />
                  ))}
                </datalist>
                <TextInput
                  label="Resource"
                  mono
                  value={resource}
                  onInput={setResource}
                  hint="A table name, an ARN or *."
                />
                <TextInput label="Partition-key values" mono value={keys} onInput={setKeys} hint="Comma-separated." />
              </>
            )}
            <TextInput label="Source IP" value={address} onInput={setAddress} placeholder="if policies check it" />
            <Checkbox label="Over TLS" checked={secure} onChange={setSecure} />
            <div class="row">
              <Button kind="primary" type="submit" disabled={checking.busy || !principal}>
                Check access
              </Button>
              {checking.busy ? <Spinner /> : null}
            </div>
          </form>
        </Panel>
      }
    >
      {known.warnings.length ? (
        <Notice tone="warning" title="Some policies name resources that don't exist">
          <ul>
            {known.warnings.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </Notice>
      ) : null}
      <ProblemNotice problem={checking.problem} />
      {explanation ? (
        <Decision explanation={explanation} />
      ) : checking.problem ? null : (
        <Empty title="No check run yet">
          Choose a principal and a request. The decision appears here with the statement that decides it and every
          statement considered.
        </Empty>
      )}
    </Split>
  );
}

/** Return the ARN of the principal in the URL, or of the first one. */
function principalOf(known: PrincipalList, named: string | undefined): string {
  const principals = known.principals.map((each) => each.principal);
  const found = principals.find((each) => each.arn === named || each.name === named);
  return (found ?? principals[0])?.arn ?? "";
}

function hasManyAccounts(known: PrincipalList): boolean {
  return new Set(known.principals.map((each) => each.principal.account)).size > 1;
}

function Decision({ explanation }: { explanation: AccessExplanation }) {
  return (
    <>
      <Notice
        tone={explanation.allowed ? "good" : "error"}
        title={explanation.accesses.length ? (explanation.allowed ? "Allowed" : "Denied") : "No permission needed"}
      >
        <code class="operations-arn">{explanation.principal}</code>
      </Notice>
      {explanation.accesses.map((access) => (
        <Access key={`${access.action} ${access.resource}`} access={access} />
      ))}
    </>
  );
}

function Access({ access }: { access: ExplainedAccess }) {
  const by = access.decided_by;
  return (
    <Panel
      title={
        <>
          <Badge tone={access.allowed ? "good" : "bad"}>{access.allowed ? "allowed" : "denied"}</Badge> {access.action}
        </>
      }
    >
      <div class="stack">
        <p class="small muted operations-arn">on {access.resource}</p>
        <p>
          {by ? (
            <>
              Decided by <strong>{by.policy}</strong>, {by.statement}
              {by.sid ? ` (${by.sid})` : ""}: <strong>{by.effect}</strong>.
            </>
          ) : (
            <>{capitalize(access.reason)}.</>
          )}
        </p>
        {access.considered.length ? (
          <DataTable label={`Considered for ${access.action}`} columns={["Effect", "Statement", "Kind", "Result"]}>
            <tbody>
              {access.considered.map((each, at) => (
                <tr key={at} class={each.outcome === "decided" ? "operations-decided" : ""}>
                  <td>
                    <Badge tone={each.effect === "Deny" ? "bad" : "good"}>{each.effect}</Badge>
                  </td>
                  <td>
                    {each.policy}, {each.statement}
                    {each.sid ? ` (${each.sid})` : ""}
                  </td>
                  <td class="muted">{each.source}</td>
                  <td>
                    {each.outcome === "condition"
                      ? `condition not met: ${each.condition ?? ""}`
                      : (OUTCOMES[each.outcome] ?? each.outcome)}
                  </td>
                </tr>
              ))}
            </tbody>
          </DataTable>
        ) : null}
      </div>
    </Panel>
  );
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
