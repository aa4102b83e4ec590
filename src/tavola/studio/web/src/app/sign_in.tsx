// SignIn: the page before all others, in a studio beside a server that verifies its callers.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button, Notice, ProblemNotice, Spinner, TextInput } from "../parts";
import icon from "../styles/icon.svg";
import { ApiProblem, problemOf, sendToStudio } from "./api";
import { adoptPerson, endPerson, type Person, person, sessionEnded, signsIn } from "./person";
import { useAction } from "./queries";
import { pageToken, token, url } from "./server";

/** Load the person who is signed in; show the sign-in page if no session is open. */
export async function loadPerson(): Promise<void> {
  const response = await sendToStudio(url("/api/sign-in"), { cache: "no-store" });
  adoptPerson((await response.json()) as Person);
}

async function signIn(key_id: string, secret: string, session_token: string): Promise<void> {
  const response = await sendToStudio(url("/api/sign-in"), {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Tavola-Token": pageToken },
    body: JSON.stringify({ key_id: key_id.trim(), secret: secret.trim(), session_token: session_token.trim() }),
  });
  adoptPerson((await response.json()) as Person);
}

/** End the session, and show the sign-in page. */
export async function signOut(): Promise<void> {
  await sendToStudio(url("/api/sign-out"), { method: "POST", headers: { "X-Tavola-Token": token() } });
  endPerson(false);
}

/** The studio once a person is signed in; the studio at once if it has no sign-in. */
export function Gate({ children }: { children: ComponentChildren }) {
  const [problem, setProblem] = useState<unknown>(null);
  const [loaded, setLoaded] = useState(!signsIn);
  useEffect(() => {
    if (!signsIn) return;
    const load = () =>
      loadPerson().then(
        () => setProblem(null),
        (thrown: unknown) => {
          const isSignedOut = thrown instanceof ApiProblem && thrown.problem.code === "sign-in-required";
          setProblem(isSignedOut ? null : thrown);
        },
      );
    // Another tab may have signed out, or signed in another person.
    const onVisible = () => void (document.hidden || !person.value || load());
    void load().then(() => setLoaded(true));
    document.addEventListener("visibilitychange", onVisible);
    return () => document.removeEventListener("visibilitychange", onVisible);
  }, []);
  if (!loaded) return <Spinner />;
  if (!signsIn || person.value) return <>{children}</>;
  return <SignInPage problem={problem} />;
}

function SignInPage({ problem }: { problem: unknown }) {
  const [keyId, setKeyId] = useState("");
  const [secret, setSecret] = useState("");
  const [sessionToken, setSessionToken] = useState("");
  const [missing, setMissing] = useState(false);
  const attempt = useAction();
  useEffect(() => {
    document.title = "Sign in · Tavola Studio";
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    const isIncomplete = !keyId.trim() || !secret.trim();
    setMissing(isIncomplete);
    if (!isIncomplete) void attempt.run(() => signIn(keyId, secret, sessionToken));
  };
  return (
    <main class="sign-in">
      <form class="sign-in-card" noValidate onSubmit={submit} aria-labelledby="sign-in-title">
        <img src={icon} alt="" width={36} height={36} />
        <h1 id="sign-in-title">Sign in to Tavola Studio</h1>
        <p class="muted">
          This server verifies its callers. Sign in with the access key of a user or role; the studio then acts with its
          permissions.
        </p>
        {sessionEnded.value ? (
          <Notice tone="warning" title="Your session has ended">
            Sign in again. The page that you were on opens afterwards.
          </Notice>
        ) : null}
        <ProblemNotice problem={attempt.problem ?? (problem ? problemOf(problem) : null)} />
        <TextInput
          label="Access key ID"
          name="username"
          autocomplete="username"
          mono
          required
          inputRef={focusFirst}
          value={keyId}
          onInput={setKeyId}
          error={missing && !keyId.trim() ? "Enter the access key ID." : null}
        />
        <TextInput
          label="Secret access key"
          name="password"
          type="password"
          autocomplete="current-password"
          mono
          required
          value={secret}
          onInput={setSecret}
          error={missing && !secret.trim() ? "Enter the secret access key." : null}
        />
        <details>
          <summary>Temporary credentials</summary>
          <TextInput
            label="Session token"
            type="password"
            mono
            value={sessionToken}
            onInput={setSessionToken}
            hint="Only for the credentials of an assumed role."
          />
        </details>
        <Button kind="primary" type="submit" disabled={attempt.busy}>
          {attempt.busy ? "Signing in…" : "Sign in"}
        </Button>
        <p class="muted small">
          An administrator creates keys with <code>tavola iam add-key</code>.
        </p>
      </form>
    </main>
  );
}

function focusFirst(input: HTMLInputElement | null): void {
  if (input && document.activeElement === document.body) input.focus();
}

/** The person at the foot of the navigation, with the way out; or that this studio has no sign-in. */
export function PersonNote({ isLocal }: { isLocal: boolean }) {
  const leaving = useAction();
  const current = person.value;
  if (!signsIn) {
    return (
      <p class="shell-person muted small">
        No sign-in: any page or program that can open this address has{" "}
        {isLocal ? "full access to these tables." : "the access of the credentials that the studio was started with."}
      </p>
    );
  }
  if (!current) return null;
  return (
    <div class="shell-person small">
      <ProblemNotice problem={leaving.problem} />
      <span title={`${current.arn}, access key ${current.key_id}`}>
        <span class="muted">Signed in as</span> <strong class="cut">{current.name}</strong>
        <span class="muted cut">account {current.account}</span>
      </span>
      <Button small disabled={leaving.busy} onClick={() => void leaving.run(signOut)}>
        Sign out
      </Button>
    </div>
  );
}
