// What callers saw: plain data, so that a test can make it up and see whether the checks notice.

/** A state as 0.3 writes it: `working`, `input-required` … */
export type State = string;

/** The content of a frame or an answer, of every generation of the protocol. */
export type Said =
  | { kind: 'task'; taskId: string; state: State; artifacts: Artifacts; history: HistoryMessage[] }
  | { kind: 'status'; taskId: string; state: State }
  | { kind: 'artifact'; taskId: string; artifactId: string; append: boolean; texts: string[] }
  | { kind: 'other' };

/** The texts of each artifact's parts, by its id. */
export type Artifacts = Record<string, string[]>;

export interface HistoryMessage {
  messageId: string;
  role: 'user' | 'agent';
}

export interface Frame {
  sequence: number;
  /** When it arrived, in ms since the epoch. */
  at: number;
  /** The JSON of `result`, as it came. */
  raw: string;
  said: Said;
}

/** One reader of one task: it continues after its last frame however often its connection breaks. */
export interface Viewer {
  name: string;
  /** `log`: it began after this sequence. `snapshot`: it began with the task as of its first frame. */
  from: { kind: 'log'; after: number } | { kind: 'snapshot' };
  /** In the order of their arrival, over all its connections. */
  frames: Frame[];
}

export type Generation = '1.0' | '0.3';

/** The content that a task must have at its end, for its caller. */
export type Expected =
  | { agent: 'echo'; text: string; chunks: number }
  | { agent: 'scribe'; turns: { text: string; lines: number }[] };

/** One task as its caller drove it. */
export interface TaskRecord {
  /** Name of the task in the plan, e.g. `stream-00017`. */
  name: string;
  kind: string;
  tenant: string;
  generation: Generation;
  expected: Expected;
  /** Absent: no answer had its id. */
  taskId?: string;
  /** Ids of the messages its caller sent, in order. */
  messageIds: string[];
  viewers: Viewer[];
  /** Final or not, in the order in which answers said so. */
  answeredStates: State[];
  /** A cancel was asked for; `done` if the answer said that it is canceled. */
  cancel?: 'asked' | 'done';
  /** Its caller came to the end of what it wanted to do. */
  finished: boolean;
}

/** A task as it is at the end, read over HTTP, and the data that only Postgres has of it. */
export interface StoredTask {
  tenant: string;
  taskId: string;
  snapshot: Extract<Said, { kind: 'task' }>;
  /** The whole log, by a resume from 0. */
  log: Frame[];
  /** The attempt that wrote each event; 0 = the platform or a caller. By sequence, from 1. */
  attempts: number[];
}

/** One request that did not simply succeed. */
export interface OddAnswer {
  task: string;
  method: string;
  /** Process id of the API it was sent to. */
  api: number;
  from: number;
  to: number;
  outcome: Oddity;
}

export type Oddity =
  /** JSON-RPC error, alone or as the last frame of a stream. */
  | { kind: 'error'; code: number; message: string }
  /** No JSON-RPC at all. */
  | { kind: 'http'; status: number; body: string }
  /** The connection was refused, reset or closed too early. */
  | { kind: 'broken'; why: string }
  /** Nothing came for too long. */
  | { kind: 'silent' };

/** A fault, from its first blow until all is whole again. */
export interface FaultRecord {
  name: string;
  detail: string;
  from: number;
  to: number;
  /** Oddities that callers may see while it lasts, and for a moment after. */
  excuses: readonly Excuse[];
  /** Only those of this API process. */
  api?: number;
}

/** `unavailable`: 503 or -32603. `broken`: the connection. `silent`: no answer in time. */
export type Excuse = 'unavailable' | 'broken' | 'silent';

/** A schedule, and what has become of its times. Times are ms since the epoch. */
export interface ScheduleRecord {
  id: string;
  name: string;
  /** Its first time. */
  first: number;
  /** Between two times; undefined = it fires once. */
  everyMs: number | undefined;
  /** When the rest was read. */
  readAt: number;
  /** Its next time: all times before are over. Undefined = there is none. */
  next: number | undefined;
  /** Its times that made a task, and those that are recorded without one. */
  fired: number;
  passed: number;
  /** Its last task has not ended. */
  isBusy: boolean;
  /** The due time of each of its tasks. */
  tasks: number[];
}

/** A call over MCP, whose task calls a tool of another MCP server. */
export interface McpRecord {
  number: number;
  /** The tool: one that must not be repeated, one that may be, or one that answers with a task. */
  kind: 'once' | 'again' | 'slow';
  /** The server that has the tool, by its protocol. */
  server: 'modern' | 'sessions' | 'sessionless';
  /** The revision of the client. */
  client: string;
  taskId?: string;
  /** The end in the answer to the client. Unset: the client gave up. */
  answered?: { state: string; text: string };
  /** The error that the client got in place of an answer. */
  fault?: string;
  /** Each call that has reached the tool: its effect key, and when, in ms since the epoch. */
  calls: { key: string; at: number }[];
  /** Each time that the task asked a person, before the harness approved: the keys whose outcome the ledger had as unknown. */
  questions: string[][];
}

/** A task of the tenant that calls over MCP, as a listing, the REST API and the ledger of effects have it at the end. */
export interface McpTaskRecord {
  taskId: string;
  /** Of the call whose words began it. Undefined: of none. */
  number: number | undefined;
  state: string;
  text: string;
  /** How often workers have claimed its runs, beyond once each. */
  retries: number;
  effects: LedgerEntry[];
}

/** What the ledger of effects has of a step or a call at the end. Times are ms since the epoch. */
export interface LedgerEntry {
  name: string;
  key: string | null;
  outcome: string;
  /** What was done about an unknown outcome. */
  decision?: string;
  /** How often it was begun. */
  attempts: number;
  endedAt?: number;
}

/** All that is known of the calls over MCP. */
export interface McpOutcome {
  records: McpRecord[];
  tasks: McpTaskRecord[];
  /** Calls that the tool server has counted, whosever they are. */
  received: number;
}

/** A task of an agent that pins its tasks, while new versions of the agent are stored. */
export interface VersionRecord {
  number: number;
  /** `editions`: versions are written. `shares`: they get the label `next`, and lose it. */
  agent: 'editions' | 'shares';
  taskId?: string;
  /** Its caller has seen its end. */
  isOver?: boolean;
  stored?: { state: string; text: string };
  /** Edition of the version that ran, by the platform. */
  storedEdition?: number | undefined;
  fault?: string;
  /** The steps that have reached the tools, each with the edition of the prompt of which the model knew. */
  calls: { step: string; edition: number; key: string }[];
  /** Each time that it asked a person: keys of calls whose outcome the ledger had as unknown, and of those not sent yet. */
  questions: { unknown: string[]; intended: string[] }[];
  /** How often workers have claimed its runs, beyond once each. */
  retries: number;
  /** Editions that were written while it was open. */
  changes: number;
}

/** All that is known of tasks whose agents change. */
export interface VersionOutcome {
  records: VersionRecord[];
  /** Calls that the tool server has counted, whosever they are. */
  received: number;
}

/** A task of an agent in code whose folder changes. */
export interface CodeRecord {
  number: number;
  /** `keeper` pins its tasks. `mover` does not: code that does not fit parks them. */
  agent: 'keeper' | 'mover';
  taskId?: string;
  /** Its caller has seen its end. */
  isOver?: boolean;
  stored?: { state: string; text: string };
  fault?: string;
  /** The effects of its steps that have reached the outside, oldest first, each with the edition of the code. */
  effects: { step: string; edition: number; key: string; at: number }[];
  ledger: LedgerEntry[];
  /** How often its caller has seen that it was parked anew. */
  parked: number;
  /** Deploys while it was open. */
  deploys: number;
}

/** All that is known of tasks whose code changes. */
export interface CodeOutcome {
  records: CodeRecord[];
  /** Effects that the outside has counted, whosever they are. */
  received: number;
  deploys: number;
}

/** The runs that a worker had in hand when it was struck. */
export interface StruckRuns {
  fault: string;
  at: number;
  /** Head of each task's log at that moment, by task id. */
  heads: Map<string, number>;
}

/** A request by one tenant for another's task. */
export interface ForeignAsk {
  method: string;
  asker: string;
  /** What the answer was, if it was not "task not found". */
  outcome: string;
}

/** A task of the tenant that means ill. */
export interface AttackTask {
  id: string;
  agent: string;
  ended: boolean;
}

/** All data of a run of the harness at its end. */
export interface Observations {
  records: TaskRecord[];
  stored: StoredTask[];
  oddAnswers: OddAnswer[];
  faults: FaultRecord[];
  struck: StruckRuns[];
  /** Asks that were answered otherwise than with "not found" (or an excused error). */
  foreignAsks: ForeignAsk[];
  /** Mark of each tenant: a text that all its messages carry. */
  marks: Record<string, string>;
  /** What attackers sent must end, too; nothing else of it is judged. */
  attacks: AttackTask[];
  schedules: ScheduleRecord[];
  mcp: McpOutcome;
  versions: VersionOutcome;
  code: CodeOutcome;
  /** Baton processes that ended by themselves. */
  crashes: string[];
}
