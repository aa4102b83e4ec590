// Pieces: a file sent a piece at a time; the server says how far it came, and the next piece begins there.
import { ApiProblem, call } from "../../../app/api";
import type { ImportCheck, ImportColumn, ImportResult, ImportPieceRequest } from "../../../generated/api";

const READ_BYTES = 1024 * 1024;
const WRITE_CHARACTERS = 256 * 1024; // smaller pieces when writing, so that progress is seen and Stop is soon

export type Form = NonNullable<ImportPieceRequest["form"]>;
export type Choice = {
  readonly table: string;
  readonly form: Form;
  readonly columns: readonly ImportColumn[];
  readonly mode: NonNullable<ImportPieceRequest["mode"]>;
};

/** A file, or a text that was pasted, read as it is needed. */
class Reader {
  private readonly blob: Blob;
  private decoder: TextDecoder | null = null;
  private at = 0;
  text = "";
  /** Bytes that are read and decoded. */
  get read(): number {
    return this.at;
  }
  get size(): number {
    return this.blob.size;
  }
  get ended(): boolean {
    return this.at >= this.blob.size;
  }

  constructor(blob: Blob) {
    this.blob = blob;
  }

  /** Read on until there are so many characters, or the end. */
  async fill(wanted: number): Promise<void> {
    while (this.text.length < wanted && !this.ended) {
      const piece = new Uint8Array(await this.blob.slice(this.at, this.at + READ_BYTES).arrayBuffer());
      this.decoder ??= decoderOf(piece);
      const next = Math.min(this.blob.size, this.at + READ_BYTES);
      this.text += decoded(this.decoder, piece, next < this.blob.size);
      this.at = next;
    }
  }
}

/** Return what reads a file that begins so: UTF-8, or UTF-16 where the file says that it is. */
function decoderOf(first: Uint8Array): TextDecoder {
  const mark = (first[0] ?? 0) * 256 + (first[1] ?? 0);
  const encoding = mark === 0xfffe ? "utf-16le" : mark === 0xfeff ? "utf-16be" : "utf-8";
  return new TextDecoder(encoding, { ignoreBOM: true, fatal: true });
}

function decoded(decoder: TextDecoder, piece: Uint8Array, more: boolean): string {
  try {
    return decoder.decode(piece, { stream: more });
  } catch {
    // Read all the same, every letter that is none would be written as another.
    throw new ApiProblem({
      code: "file-encoding",
      title: "The file is not written in UTF-8",
      detail: `There are bytes in it that are no character of ${decoder.encoding.toUpperCase()}, so its texts would be changed by reading them.`,
      remedy: "Save it as UTF-8 (a spreadsheet calls it “CSV UTF-8”), and choose it again.",
      status: 0,
    });
  }
}

/** How far a file has come, in bytes of it, about. */
export interface Reach {
  readonly done: number;
  readonly size: number;
}

/** A file on its way to the server. After a failure it goes on with the piece that failed. */
export class Sending<T extends ImportCheck | ImportResult> {
  private readonly reader: Reader;
  private readonly characters: number;
  private readonly send: (piece: ImportPieceRequest) => Promise<T>;
  private choice: Choice;
  private line = 1;
  private state = "";
  private wanted: number;
  /** Whether all of it was sent and answered. */
  ended = false;

  constructor(file: Blob, choice: Choice, characters: number, send: (piece: ImportPieceRequest) => Promise<T>) {
    this.reader = new Reader(file);
    this.choice = choice;
    this.characters = characters;
    this.wanted = characters;
    this.send = send;
  }

  /** Send the next piece, and return what is told of it. */
  async next(): Promise<{ answer: T; reach: Reach }> {
    const reader = this.reader;
    await reader.fill(this.wanted);
    const cut = boundary(reader.text, this.wanted);
    const last = reader.ended && cut === reader.text.length;
    const answer = await this.send({
      ...this.choice,
      text: reader.text.slice(0, cut),
      line: this.line,
      state: this.state,
      last,
    });
    this.choice = { ...this.choice, form: answer.form, columns: answer.columns };
    this.line = answer.line;
    this.state = answer.state;
    reader.text = reader.text.slice(answer.consumed);
    // A record that is longer than the piece: the next piece is.
    this.wanted = answer.consumed ? this.characters : this.wanted * 2;
    this.ended = last;
    return { answer, reach: { done: reader.read - reader.text.length, size: reader.size } };
  }
}

/** Return where a text is cut, never between the two halves of one character. */
function boundary(text: string, wanted: number): number {
  if (text.length <= wanted) return text.length;
  const code = text.charCodeAt(wanted - 1);
  return code >= 0xd800 && code < 0xdc00 ? wanted - 1 : wanted;
}

/** Look at a file's records; nothing is written. */
export function looking(file: Blob, choice: Choice, signal: AbortSignal): Sending<ImportCheck> {
  return new Sending(file, choice, READ_BYTES, (piece) => call("POST /import/check", piece, { signal }));
}

/** Write a file's records. A piece that is on its way is never given up: what became of it is told. */
export function loading(file: Blob, choice: Choice): Sending<ImportResult> {
  return new Sending(file, choice, WRITE_CHARACTERS, (piece) => call("POST /import/run", piece));
}
