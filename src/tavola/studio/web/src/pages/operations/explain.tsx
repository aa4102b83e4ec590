// Explain: may somebody do something, by which statement, and what was considered on the way.
import { useEffect, useState } from "preact/hooks";
import { call, problemOf } from "../../app/api";
import { useAsk } from "../../app/asking";
import { go, route } from "../../app/router";
import { session } from "../../app/session";
import type {
  ExplainRequest as Question,
  ExplainedAccess,
  Explanation,
  Principals,
  Problem,
} from "../../generated/api";
import {
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
} from "../../parts";
import { templateOf } from "./templates";

const MODES = [
  { value: "request", label: "A request" },
  { value: "action", label: "An action" },
];

export function Explain() {
  const known = useAsk("GET /access/principals", session.value?.directory ? {} : null);
  if (session.value && !session.value.directory) {
    return (
      <Empty title="There are no users and policies">
        Nothing was said about who may do what, so everybody may do everything. Make a file of them with{" "}
        <code>tavola iam init iam.json</code>, and start with it: <code>tavola studio --store FILE --iam iam.json</code>
        ; or, where callers shall be held to it, <code>tavola serve FILE --studio --auth strict --iam iam.json</code>.
      </Empty>
    );
  }
  if (known.problem) return <ProblemNotice problem={known.problem} again={known.again} />;
  if (!known.data) return <Spinner />;
  return <Form known={known.data} />;
}

interface Found {
  readonly busy: boolean;
  readonly found: Explanation | null;
  readonly problem: Problem | null;
}

function Form({ known }: { known: Principals }) {
  const { params } = route.value;
  const [who, setWho] = useState(principalOf(known, params["who"]));
  const [mode, setMode] = useState(params["mode"] ?? "request");
  const [operation, setOperation] = useState(params["eop"] ?? "GetItem");
  const [text, setText] = useState(params["request"] ?? templateOf("GetItem"));
  const [action, setAction] = useState(params["action"] ?? "dynamodb:GetItem");
  const [resource, setResource] = useState(params["resource"] ?? session.value?.tables[0]?.name ?? "");
  const [keys, setKeys] = useState(params["keys"] ?? "");
  const [address, setAddress] = useState(params["ip"] ?? "");
  const [secure, setSecure] = useState(params["tls"] !== "no");
  const [state, setState] = useState<Found>({ busy: false, found: null, problem: null });
  const [wrong, setWrong] = useState<string | null>(null);

  const ask = async () => {
    const question = questionOf();
    if (!question) return;
    go(
      {
        params: {
          who,
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
    setState((before) => ({ ...before, busy: true, problem: null }));
    try {
      setState({ busy: false, found: await call("POST /access/explain", question), problem: null });
    } catch (thrown) {
      setState({ busy: false, found: null, problem: problemOf(thrown) });
    }
  };
  const questionOf = (): Question | null => {
    const beside = { principal: who, source_ip: address || null, secure };
    if (mode === "action")
      return {
        ...beside,
        action,
        resource,
        keys: keys
          .split(",")
          .map((key) => key.trim())
          .filter(Boolean),
      };
    try {
      const request: unknown = JSON.parse(text);
      if (typeof request !== "object" || request === null || Array.isArray(request))
        throw new SyntaxError("a request is an object");
      setWrong(null);
      return { ...beside, operation, request: request as Record<string, unknown> };
    } catch (thrown) {
      setWrong(`This is no JSON: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
      return null;
    }
  };
  useEffect(() => {
    if (params["request"] || params["action"]) void ask(); // a link leads to the verdict, not to the form
  }, []);
  const choose = (name: string) => {
    if (text === templateOf(operation)) setText(templateOf(name));
    setOperation(name);
  };
  return (
    <Split
      side={
        <Panel title="Question">
          <form
            class="stack"
            onSubmit={(event) => {
              event.preventDefault();
              void ask();
            }}
          >
            <Select
              label="Who"
              value={who}
              options={known.principals.map((each) => ({
                value: each.arn,
                label: `${each.name} (${each.kind}${many(known) ? `, ${each.account}` : ""})`,
              }))}
              onChange={setWho}
            />
            <Segmented label="What is asked" options={MODES} value={mode} onChange={setMode} />
            {mode === "request" ? (
              <>
                <Select
                  label="Operation"
                  value={operation}
                  options={known.operations.map((name) => ({ value: name, label: name }))}
                  onChange={choose}
                />
                <TextArea
                  label="Request"
                  mono
                  rows={12}
                  value={text}
                  onInput={setText}
                  wrong={wrong}
                  hint="DynamoDB JSON. Keys, tags and policies of the tables are looked up."
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
                  hint="A table's name, an ARN, or *."
                />
                <TextInput
                  label="Partition-key values"
                  mono
                  value={keys}
                  onInput={setKeys}
                  hint="With commas between them."
                />
              </>
            )}
            <TextInput
              label="Comes from"
              value={address}
              onInput={setAddress}
              placeholder="an IP address, if policies ask"
            />
            <Checkbox label="By TLS" checked={secure} onChange={setSecure} />
            <div class="row">
              <Button kind="primary" type="submit" disabled={state.busy || !who}>
                Explain
              </Button>
              {state.busy ? <Spinner /> : null}
            </div>
          </form>
        </Panel>
      }
    >
      {known.warnings.length ? (
        <Notice tone="warning" title="Some policies name what is not there">
          <ul>
            {known.warnings.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </Notice>
      ) : null}
      {state.problem ? <ProblemNotice problem={state.problem} /> : null}
      {state.found ? (
        <Verdict found={state.found} />
      ) : state.problem ? null : (
        <Empty title="May they?">
          Choose somebody and say what they ask for: the verdict comes here, with the statement that decides it and
          every one that was considered.
        </Empty>
      )}
    </Split>
  );
}

/** Return the ARN of whom a link names; whom nobody knows is not silently another, but the first to choose from. */
function principalOf(known: Principals, named: string | undefined): string {
  const found = known.principals.find((each) => each.arn === named || each.name === named);
  return (found ?? known.principals[0])?.arn ?? "";
}

function many(known: Principals): boolean {
  return new Set(known.principals.map((each) => each.account)).size > 1;
}

function Verdict({ found }: { found: Explanation }) {
  return (
    <>
      <Notice
        tone={found.allowed ? "good" : "error"}
        title={found.accesses.length ? (found.allowed ? "Allowed" : "Denied") : "Nothing needs a permission"}
      >
        <code class="operations-arn">{found.principal}</code>
      </Notice>
      {found.accesses.map((access) => (
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
            <>{capital(access.reason)}.</>
          )}
        </p>
        {access.considered.length ? (
          <div class="scroll-x" tabIndex={0} role="region" aria-label={`Considered for ${access.action}`}>
            <table class="plain">
              <caption class="hidden-text">What was considered for {access.action}</caption>
              <thead>
                <tr>
                  <th scope="col">Effect</th>
                  <th scope="col">Statement</th>
                  <th scope="col">Kind</th>
                  <th scope="col">What became of it</th>
                </tr>
              </thead>
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
                        ? `its condition does not hold: ${each.condition ?? ""}`
                        : each.outcome}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : null}
      </div>
    </Panel>
  );
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
