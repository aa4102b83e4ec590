// Infrastructure: the design as the files of other tools, the same that the command line writes.
import { useState } from "preact/hooks";
import { useAsk } from "../../app/asking";
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
import type { About } from "./state";

const FORMS = [
  { value: "terraform", label: "Terraform" },
  { value: "cloudformation", label: "CloudFormation, YAML" },
  { value: "cloudformation-json", label: "CloudFormation, JSON" },
  { value: "cdk", label: "CDK in Python" },
  { value: "policies", label: "IAM policies" },
  { value: "workbench", label: "NoSQL Workbench" },
  { value: "onetable", label: "OneTable" },
  { value: "document", label: "Design document" },
];
const PLANNED = ["terraform", "cloudformation", "cloudformation-json", "cdk"];

export function Infrastructure({ about }: { about: About }) {
  const [form, setForm] = useParam("form", "terraform");
  const [alarms, setAlarms] = useParam("alarms", "yes");
  const [policies, setPolicies] = useParam("policies", "yes");
  const [endpoint, setEndpoint] = useParam("endpoint", "no");
  const [key, setKey] = useParam("key");
  const known = FORMS.some((each) => each.value === form) ? form : "terraform";
  const asked = useAsk(
    "POST /design/infrastructure",
    {
      ...about,
      form: known as InfrastructureRequest["form"],
      alarms: alarms === "yes",
      policies: policies === "yes",
      endpoint: endpoint === "yes",
      key: key || null,
    },
    { delay: 250 },
  );
  const answer = asked.data?.form === known ? asked.data : null;
  return (
    <div class="stack">
      <div class="row design-filters">
        <Select label="For" value={known} onChange={setForm} options={FORMS} />
        {PLANNED.includes(known) ? (
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
      {asked.problem ? <ProblemNotice problem={asked.problem} again={asked.again} /> : null}
      {!answer && !asked.problem ? <Spinner /> : null}
      {answer && !asked.problem ? <Files answer={answer} /> : null}
    </div>
  );
}

function Files({ answer }: { answer: InfrastructureFiles }) {
  const [name, setName] = useState("");
  const file = answer.files.find((each) => each.name === name) ?? answer.files[0];
  if (!file) return <p class="muted">There is nothing to write.</p>;
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
                All files
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
        The same on the command line: <code>{answer.command}</code> <Copy text={answer.command} />
      </p>
      {answer.notes.length ? (
        <Notice title="To know">
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
