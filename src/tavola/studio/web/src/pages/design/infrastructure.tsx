// Infrastructure: the design as files of other tools, as the command line writes them.
import { useState } from "preact/hooks";
import { useQuery } from "../../app/queries";
import { useParam } from "../../app/router";
import type { InfrastructureRequest, InfrastructureFiles } from "../../generated/api";
import {
  Button,
  Checkbox,
  Code,
  Copy,
  download,
  Notice,
  Panel,
  ProblemNotice,
  Select,
  Spinner,
  Tabs,
  TextInput,
} from "../../parts";
import type { DesignSource } from "./state";

const FORMATS = [
  { value: "terraform", label: "Terraform" },
  { value: "cloudformation", label: "CloudFormation (YAML)" },
  { value: "cloudformation-json", label: "CloudFormation (JSON)" },
  { value: "cdk", label: "CDK (Python)" },
  { value: "policies", label: "IAM policies" },
  { value: "workbench", label: "NoSQL Workbench" },
  { value: "onetable", label: "OneTable" },
  { value: "document", label: "Design document" },
];
const WITH_OPTIONS = ["terraform", "cloudformation", "cloudformation-json", "cdk"];

export function Infrastructure({ source }: { source: DesignSource }) {
  const [form, setForm] = useParam("form", "terraform");
  const [alarms, setAlarms] = useParam("alarms", "yes");
  const [policies, setPolicies] = useParam("policies", "yes");
  const [endpoint, setEndpoint] = useParam("endpoint", "no");
  const [key, setKey] = useParam("key");
  const format = FORMATS.some((each) => each.value === form) ? form : "terraform";
  const query = useQuery(
    "POST /design/infrastructure",
    {
      ...source,
      form: format as InfrastructureRequest["form"],
      alarms: alarms === "yes",
      policies: policies === "yes",
      endpoint: endpoint === "yes",
      key: key || null,
    },
    { delayMs: 250 },
  );
  const answer = query.data?.form === format ? query.data : null;
  return (
    <div class="stack">
      <div class="row design-filters">
        <Select label="Format" value={format} onChange={setForm} options={FORMATS} />
        {WITH_OPTIONS.includes(format) ? (
          <>
            <TextInput
              label="KMS key"
              value={key}
              onInput={(value) => setKey(value, true)}
              placeholder="none, new, or an ARN"
            />
            <span class="row design-checks">
              <Checkbox label="Alarms" checked={alarms === "yes"} onChange={(on) => setAlarms(on ? "yes" : "no")} />
              <Checkbox
                label="Policies"
                checked={policies === "yes"}
                onChange={(on) => setPolicies(on ? "yes" : "no")}
              />
              <Checkbox
                label="VPC endpoint"
                checked={endpoint === "yes"}
                onChange={(on) => setEndpoint(on ? "yes" : "no")}
              />
            </span>
          </>
        ) : null}
      </div>
      <ProblemNotice problem={query.problem} retry={query.retry} />
      {!answer && !query.problem ? <Spinner /> : null}
      {answer && !query.problem ? <Files answer={answer} /> : null}
    </div>
  );
}

function Files({ answer }: { answer: InfrastructureFiles }) {
  const [name, setName] = useState("");
  const file = answer.files.find((each) => each.name === name) ?? answer.files[0];
  if (!file) return <p class="muted">Nothing to generate.</p>;
  return (
    <>
      <Panel
        title={answer.files.length === 1 ? file.name : `${answer.files.length} files`}
        actions={
          <>
            <Button small onClick={() => download(file.name, file.text)}>
              Download {file.name}
            </Button>
            {answer.files.length > 1 ? (
              <Button
                small
                onClick={() => {
                  for (const each of answer.files) download(each.name, each.text);
                }}
              >
                {" "}
                Download all{" "}
              </Button>
            ) : null}
          </>
        }
        flush
      >
        {answer.files.length > 1 ? (
          <Tabs
            label="Files"
            value={file.name}
            onChange={setName}
            tabs={answer.files.map((each) => ({ value: each.name, label: each.name }))}
            panel="design-file"
          />
        ) : null}
        <div id="design-file" class="design-file" {...(answer.files.length > 1 ? { role: "tabpanel" } : {})}>
          <Code text={file.text} label={file.name} />
        </div>
      </Panel>
      <p class="row small muted">
        On the command line: <code>{answer.command}</code> <Copy text={answer.command} />
      </p>
      {answer.notes.length ? (
        <Notice title="Notes">
          <ul class="stack tight">
            {answer.notes.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </Notice>
      ) : null}
    </>
  );
}
