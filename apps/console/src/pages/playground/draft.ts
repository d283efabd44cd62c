import { DRAFT_KEY } from '../../session/session';

/** A file of a message. */
export interface DraftFile {
  name: string;
  mediaType: string;
  /** Its contents in base64. */
  raw: string;
}

export const VERSIONS = ['1.0', '0.3'] as const;
export const BINDINGS = ['JSON-RPC', 'HTTP+JSON'] as const;
export type ProtocolVersion = (typeof VERSIONS)[number];
export type Binding = (typeof BINDINGS)[number];

/** A request while the user writes it. */
export interface Draft {
  agent: string;
  version: ProtocolVersion;
  binding: Binding;
  isStream: boolean;
  text: string;
  /** JSON of a data part; empty = none. */
  data: string;
  /** JSON of the metadata of the message; empty = none. */
  metadata: string;
  contextId: string;
  taskId: string;
  files: DraftFile[];
}

export const emptyDraft = (agent: string): Draft => ({
  agent,
  version: '1.0',
  binding: 'JSON-RPC',
  isStream: true,
  text: 'Hello',
  data: '',
  metadata: '',
  contextId: '',
  taskId: '',
  files: [],
});

/** Whether a draft has more than a text: then it must be seen. */
export const hasOptions = ({ data, metadata, files }: Draft): boolean =>
  data !== '' || metadata !== '' || files.length > 0;

/** The faults of a draft, by field. */
export function faultsOf({
  agent,
  text,
  data,
  metadata,
  files,
}: Draft): Partial<Record<keyof Draft, string>> {
  const isEmpty = text === '' && data === '' && files.length === 0;
  return {
    ...(agent === '' && { agent: 'Choose an agent' }),
    ...(isEmpty && { text: 'Write a text, or add data or a file' }),
    ...(!isJson(data) && { data: 'Must be JSON' }),
    ...(!isJson(metadata, true) && { metadata: 'Must be a JSON object' }),
  };
}

function isJson(text: string, isObject = false): boolean {
  if (text.trim() === '') return true;
  try {
    const value: unknown = JSON.parse(text);
    return !isObject || (typeof value === 'object' && value !== null && !Array.isArray(value));
  } catch {
    return false;
  }
}

/** The message of a draft, in the JSON of A2A 1.0. */
export function messageOf({
  text,
  data,
  metadata,
  contextId,
  taskId,
  files,
}: Draft): Record<string, unknown> {
  const parts = [
    ...(text === '' ? [] : [{ text }]),
    ...(data.trim() === '' ? [] : [{ data: JSON.parse(data) as unknown }]),
    ...files.map(({ name, mediaType, raw }) => ({ raw, filename: name, mediaType })),
  ];
  return {
    messageId: crypto.randomUUID(),
    role: 'ROLE_USER',
    parts,
    ...(contextId !== '' && { contextId }),
    ...(taskId !== '' && { taskId }),
    ...(metadata.trim() !== '' && { metadata: JSON.parse(metadata) as unknown }),
  };
}

/** The longest JSON of drafts that this browser stores. */
export const MAX_CHARACTERS = 1_000_000;
const DEFAULT_AGENT = 'echo';
/** Drafts are in the storage of this tab alone, by tenant. Signing out deletes it. */
const keyOf = (tenant: string): string => `${DRAFT_KEY}.${tenant}`;

/** The draft of this tab, or a new request. @param agent the agent that the address names */
export function draftFor(tenant: string, agent: string | undefined): Draft {
  const written = readDraft(tenant);
  if (!written) return emptyDraft(agent ?? DEFAULT_AGENT);
  // Contexts and tasks belong to an agent.
  return agent === undefined || agent === written.agent
    ? written
    : { ...written, agent, contextId: '', taskId: '' };
}

function readDraft(tenant: string): Draft | undefined {
  try {
    const written = JSON.parse(sessionStorage.getItem(keyOf(tenant)) ?? 'null') as Partial<Draft> | null;
    return written ? { ...emptyDraft(DEFAULT_AGENT), ...written } : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps what is being written. Files that are too large for it are left out. */
export function writeDraft(tenant: string, draft: Draft): void {
  const text = JSON.stringify(draft);
  const kept = text.length > MAX_CHARACTERS ? JSON.stringify({ ...draft, files: [] }) : text;
  try {
    sessionStorage.setItem(keyOf(tenant), kept);
  } catch {
    // The storage is full: it is written again from the start.
  }
}
