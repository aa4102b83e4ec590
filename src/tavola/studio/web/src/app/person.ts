// Person: who is signed in, in a studio beside a server that verifies its callers.
import { signal } from "@preact/signals";
import { metaContent, setToken } from "./server";

/** The response of /api/sign-in. */
export interface Person {
  readonly name: string;
  readonly arn: string;
  readonly account: string;
  readonly key_id: string;
  readonly token: string;
}

/** Whether this studio has a sign-in. */
export const signsIn = metaContent("sign-in") === "yes";
export const person = signal<Person | null>(null);
/** Whether a session ended without a sign-out. */
export const sessionEnded = signal(false);

let lastArn = "";

/** Adopt the signed-in person. What the page holds of another person is removed by reloading it. */
export function adoptPerson(next: Person): void {
  if (lastArn && lastArn !== next.arn) {
    location.reload();
    return;
  }
  lastArn = next.arn;
  sessionEnded.value = false;
  setToken(next.token);
  person.value = next;
}

/** Show the sign-in page, because the session has ended. */
export function endPerson(ended: boolean): void {
  sessionEnded.value = ended && (person.value !== null || sessionEnded.value);
  person.value = null;
}
