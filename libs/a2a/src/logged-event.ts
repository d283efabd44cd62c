import { StreamResponse } from './model.js';
import { type EventPayload } from './artifact-fold.js';

/** One entry of a task's log. `sequence` counts 1..n per task without holes. */
export interface TaskEvent {
  sequence: number;
  /** The run's fencing token when it was written; 0 for what the platform wrote outside a run. */
  attempt: number;
  payload: EventPayload;
}

/** Inverse of `serializePayload`. Throws if the text is not an event of a log. */
export function parsePayload(json: string): EventPayload {
  const { payload } = StreamResponse.fromJSON(JSON.parse(json));
  if (!payload || payload.$case === 'message') throw new Error('not an event of a task log');
  return payload;
}

/** The text of an artifact update begins so, as `serializePayload` writes it. */
const ARTIFACT = '{"artifactUpdate":';

/** Whether the text of a payload is that of an artifact update. */
export const isArtifactJson = (json: string): boolean => json.startsWith(ARTIFACT);

/** The text of an event from one codec, and those from the others. */
export interface EncodedText {
  by: object;
  text: string;
  next: EncodedText | undefined;
}

/**
 * An entry of a log as text. Many readers only pass the text on. The payload is parsed when it is first asked for; all who
 * hold this entry share it.
 */
export class LoggedEvent implements TaskEvent {
  private parsed: EventPayload | undefined;
  /** The texts of the codecs that write it in another form, see `StreamItem`. */
  encoded: EncodedText | undefined;

  constructor(
    readonly sequence: number,
    readonly attempt: number,
    /** As `serializePayload` wrote it. */
    readonly json: string,
  ) {}

  /** Throws if the text is not an event of a log. */
  get payload(): EventPayload {
    return (this.parsed ??= parsePayload(this.json));
  }

  /** Whether it is known without parsing the payload that this is an artifact update. */
  get isArtifact(): boolean {
    return isArtifactJson(this.json);
  }
}
