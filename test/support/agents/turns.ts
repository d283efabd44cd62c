import { type Agent, type Message, type Part, Role, TaskState } from '@baton/a2a';
import type { AccessTokens } from '../../../libs/agents/src/access-tokens.js';
import { type SecretReader } from '../../../libs/agents/src/secret-reader.js';
import { AgentList } from '../../../libs/agents/src/agent-list.js';
import {
  type AgentOutput,
  type JournalEntry,
  type StateWrite,
  plainTextPart,
  type TurnJournal,
  type TurnState,
  type WrittenState,
} from '../../../libs/agents/src/agent-runtime.js';
import { type GuardedTurn, SecretGuard } from '../../../libs/agents/src/secret-guard.js';

/** A user's message. */
export function userMessage(parts: string | Part[], fields: Partial<Message> = {}): Message {
  return {
    messageId: 'm-1',
    contextId: 'context-1',
    taskId: 'task-1',
    role: Role.ROLE_USER,
    parts: typeof parts === 'string' ? [plainTextPart(parts)] : parts,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...fields,
  };
}

/** The first turn of a task, as a worker gives it to a runtime. */
export function firstTurn(message: Message | string, fields: Partial<GuardedTurn> = {}): GuardedTurn {
  const asked = typeof message === 'string' ? userMessage(message) : message;
  return turnWith([asked], fields);
}

/** A later turn. The last message of `history` is the message to answer. */
export function turnWith(history: Message[], fields: Partial<GuardedTurn> = {}): GuardedTurn {
  const message = history.at(-1);
  if (!message) throw new Error('a turn needs a message');
  return {
    tenantId: 'tenant-1',
    runId: `run-${message.messageId}`,
    attempt: 1,
    agent: agent('tester'),
    owner: null,
    task: {
      id: 'task-1',
      contextId: 'context-1',
      status: { state: TaskState.TASK_STATE_WORKING, message: undefined, timestamp: undefined },
      artifacts: [],
      history,
      metadata: undefined,
    },
    message,
    details: { metadata: undefined, configuration: undefined },
    referenceTasks: [],
    earlierTasks: async () => [],
    journal: new MemoryJournal(),
    state: new MemoryState(),
    log: {
      startedAt: 0,
      flush: () => Promise.resolve(0),
      keepArtifact: () => undefined,
      wakeIn: () => undefined,
    },
    console: { write: (_level, text) => text },
    records: NO_RECORDS,
    secrets: turnSecrets({}),
    outbound: NO_CALLS,
    extensions: [],
    traceparent: undefined,
    ...fields,
  };
}

/** Nothing is recorded, unless the definition of the agent requires it. */
const NO_RECORDS = { byDefault: 'none', store: () => Promise.resolve(), hold: () => undefined } as const;

/** For turns that call nothing. */
const refuse = () => Promise.reject(new Error('this turn has no way to the outside'));
const NO_CALLS = { fetch: refuse, fetchWithin: () => refuse };

/** No caller is signed in at any server. */
export const NO_ACCESS_TOKENS = {
  get: () => Promise.resolve(undefined),
  noteCall: () => Promise.resolve(false),
  refuse: () => Promise.resolve(),
  wider: () => Promise.resolve(undefined),
  offer: () => Promise.resolve(undefined),
} satisfies AccessTokens;

/** The secrets of a tenant. They may go anywhere, unless `reader` checks it. */
export function turnSecrets(
  values: Readonly<Record<string, string>>,
  reader?: SecretReader,
  tokens: AccessTokens = NO_ACCESS_TOKENS,
): SecretGuard {
  const fixed = { get: (_tenantId: string, name: string) => Promise.resolve(values[name]) };
  return new SecretGuard(reader ?? fixed, 'tenant-1', tokens);
}

export function agent(slug: string, runtime = 'executor'): Agent {
  return {
    id: slug,
    slug,
    origin: 'installed',
    definition: {
      name: slug,
      description: `Agent ${slug}`,
      version: '1.0.0',
      runtime,
      config: {},
      skills: [],
      inputModes: [],
      outputModes: [],
      extensions: [],
    },
  };
}

/** A catalog with the same agents for every tenant. */
export class FixedAgents extends AgentList {
  readonly asked: string[] = [];

  constructor(private readonly agents: Agent[]) {
    super();
  }

  override list(tenantId: string): Promise<Agent[]> {
    this.asked.push(tenantId);
    return Promise.resolve(this.agents);
  }

  override find(_tenantId: string, slugOrId: string): Promise<Agent | undefined> {
    return Promise.resolve(this.agents.find(({ id, slug }) => id === slugOrId || slug === slugOrId));
  }
}

/** A journal in memory. Use the same one for the next attempt or turn. */
/** The state of a context, kept here. */
export class MemoryState implements TurnState {
  private readonly values = new Map<string, { value: string; version: number; writer: string }>();

  read(key: string): Promise<{ value: string; version: number } | undefined> {
    return Promise.resolve(this.values.get(key));
  }

  write({ key, value, expected, writer }: StateWrite): Promise<WrittenState> {
    const current = this.values.get(key);
    const version = current?.version ?? 0;
    if (current?.writer === writer) return Promise.resolve({ outcome: 'written', version });
    if (expected !== undefined && expected !== version)
      return Promise.resolve({ outcome: 'conflict', current });
    this.values.set(key, { value, version: version + 1, writer });
    return Promise.resolve({ outcome: 'written', version: version + 1 });
  }
}

export class MemoryJournal implements TurnJournal {
  readonly entries: JournalEntry[] = [];
  /** JSON of the records that came with entries, by position. */
  readonly records = new Map<number, string>();

  constructor(readonly runId = 'run-m-1') {}

  read(): Promise<JournalEntry[]> {
    return Promise.resolve([...this.entries]);
  }

  append(value: unknown, record?: string): Promise<void> {
    const { runId, entries } = this;
    const position = (entries.at(-1)?.position ?? 0) + 1;
    if (record !== undefined) this.records.set(position, record);
    // A copy, as in the database: later changes of the object have no effect.
    entries.push({ runId, position, value: JSON.parse(JSON.stringify(value)) as unknown });
    return Promise.resolve();
  }

  noteRemoteCall(): Promise<void> {
    return Promise.resolve();
  }

  noteCompensable(): Promise<void> {
    return Promise.resolve();
  }

  async restart(value: unknown): Promise<void> {
    const { length } = this.entries;
    await this.append(value);
    this.entries.splice(0, length);
  }
}

/** Collects all outputs of a runtime. */
export async function collect(outputs: AsyncIterable<AgentOutput>): Promise<AgentOutput[]> {
  const all: AgentOutput[] = [];
  for await (const output of outputs) all.push(output);
  return all;
}

/** The visible parts of outputs: kinds, states, texts and artifact flags, but no times. */
export function summary(outputs: readonly AgentOutput[]): unknown[] {
  return outputs.map((output) => {
    switch (output.$case) {
      case 'message':
        return { message: textOf(output.value.parts) };
      case 'task':
        return { task: output.value.status?.state };
      case 'statusUpdate': {
        const { state, message } = output.value.status ?? {};
        return { state, ...(message && { text: textOf(message.parts) }) };
      }
      case 'artifactUpdate': {
        const { artifact, append, lastChunk } = output.value;
        return { artifact: artifact?.artifactId, append, lastChunk, text: textOf(artifact?.parts ?? []) };
      }
    }
  });
}

export const textOf = (parts: readonly Part[]): string =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
