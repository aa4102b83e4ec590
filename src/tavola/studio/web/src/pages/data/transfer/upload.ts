// Upload: sends a file piece by piece. The server says how much it consumed, and the next piece starts there.
import { ApiProblem, call } from "../../../app/api";
import type { ImportCheck, ImportColumn, ImportedPiece, ImportPieceRequest } from "../../../generated/api";

const READ_BYTES = 1024 * 1024;
const WRITE_CHARACTERS = 256 * 1024; // smaller pieces when writing, for visible progress and a quick stop

export type Format = NonNullable<ImportPieceRequest["form"]>;
export type Choice = {
  readonly table: string;
  readonly form: Format;
  readonly columns: readonly ImportColumn[];
  readonly mode: NonNullable<ImportPieceRequest["mode"]>;
};

/** Reads a file, or pasted text, as it is needed. */
class Reader {
  private readonly blob: Blob;
  private decoder: TextDecoder | null = null;
  private at = 0;
  text = "";
  /** Bytes read and decoded so far. */
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

  /** Read until `text` has this many characters, or to the end. */
  async fill(wanted: number): Promise<void> {
    while (this.text.length < wanted && !this.ended) {
      const piece = new Uint8Array(await this.blob.slice(this.at, this.at + READ_BYTES).arrayBuffer());
      this.decoder ??= decoderOf(piece);
      const next = Math.min(this.blob.size, this.at + READ_BYTES);
      this.text += decodePiece(this.decoder, piece, next < this.blob.size);
      this.at = next;
    }
  }
}

/** Return the decoder for a file: UTF-8, or UTF-16 if it has that byte order mark. */
function decoderOf(first: Uint8Array): TextDecoder {
  const mark = (first[0] ?? 0) * 256 + (first[1] ?? 0);
  const encoding = mark === 0xfffe ? "utf-16le" : mark === 0xfeff ? "utf-16be" : "utf-8";
  return new TextDecoder(encoding, { ignoreBOM: true, fatal: true });
}

function decodePiece(decoder: TextDecoder, piece: Uint8Array, more: boolean): string {
  try {
    return decoder.decode(piece, { stream: more });
  } catch {
    // Decoding anyway would replace every invalid byte by another character.
    throw new ApiProblem({
      code: "file-encoding",
      title: "The file is not UTF-8",
      detail: `It contains bytes that are not valid ${decoder.encoding.toUpperCase()}, so importing it would change its text.`,
      remedy: "Save it as UTF-8 (“CSV UTF-8” in spreadsheets) and choose it again.",
      status: 0,
    });
  }
}

/** Progress in bytes, approximately. */
export interface UploadProgress {
  readonly done: number;
  readonly size: number;
}

/** Sends a file. After a failure it continues with the piece that failed. */
export class Upload<T extends ImportCheck | ImportedPiece> {
  private readonly reader: Reader;
  private readonly characters: number;
  private readonly send: (piece: ImportPieceRequest) => Promise<T>;
  private choice: Choice;
  private line = 1;
  private state = "";
  private wanted: number;
  /** Whether the whole file was sent and processed. */
  ended = false;

  constructor(file: Blob, choice: Choice, characters: number, send: (piece: ImportPieceRequest) => Promise<T>) {
    this.reader = new Reader(file);
    this.choice = choice;
    this.characters = characters;
    this.wanted = characters;
    this.send = send;
  }

  /** Send the next piece and return the response. */
  async next(): Promise<{ answer: T; progress: UploadProgress }> {
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
    // A record longer than the piece: send twice as much.
    this.wanted = answer.consumed ? this.characters : this.wanted * 2;
    this.ended = last;
    return { answer, progress: { done: reader.read - reader.text.length, size: reader.size } };
  }
}

/** Return where to cut a text, never between the two halves of a surrogate pair. */
function boundary(text: string, wanted: number): number {
  if (text.length <= wanted) return text.length;
  const code = text.charCodeAt(wanted - 1);
  return code >= 0xd800 && code < 0xdc00 ? wanted - 1 : wanted;
}

/** Check the records of a file without writing. */
export function checkUpload(file: Blob, choice: Choice, signal: AbortSignal): Upload<ImportCheck> {
  return new Upload(file, choice, READ_BYTES, (piece) => call("POST /import/check", piece, { signal }));
}

/** Write the records of a file. A piece that was sent is never aborted, so that its result is known. */
export function writeUpload(file: Blob, choice: Choice): Upload<ImportedPiece> {
  return new Upload(file, choice, WRITE_CHARACTERS, (piece) => call("POST /import/run", piece));
}
