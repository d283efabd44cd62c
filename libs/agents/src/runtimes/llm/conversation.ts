import type { ToolCallPart } from 'ai';
import { historyBefore, type Turn } from '../../agent-runtime.js';
import { ApprovalHistory } from './approval/approval-history.js';
import {
  type CallResult,
  type LlmEntry,
  type ModelStep,
  type RecordedEntry,
  recordedEntry,
  type SummaryEntry,
  textOfStep,
} from './llm-entry.js';
import { addUsage, type ModelUsage, NO_USAGE } from './model-usage.js';
import { callIdOf, type CallIds, idsOf, type RecordedCall } from './recorded-call.js';
import type { RemoteCall } from './tools/remote-call.js';
import type { ResourceLink, ToolResult } from './tools/tool-sources.js';

/** After this many refusals the model gets no file in the rest of the task: the provider does not take files of this kind. */
const MAX_REFUSALS = 2;

/** An id for a call whose own id is taken. Mistral takes only ids of nine letters and digits. */
const replacementId = (number: number): string => `c${number.toString(36).padStart(8, '0')}`;

/** The conversation of a task, restored from its journal. It continues after the last entry of any worker. */
export class Conversation {
  private readonly entries: RecordedEntry[] = [];
  private readonly recordedSteps: (ModelStep & RecordedEntry)[] = [];
  /** The calls of each step. */
  private readonly calls: RecordedCall[][] = [];
  /** Ids in requests to the model. */
  private readonly sentIds = new Set<string>();
  /** Results by Baton's id of the call. */
  private readonly results = new Map<string, CallResult['result']>();
  /** Resources that results have linked, by their URIs: the newest link counts. */
  private readonly links = new Map<string, ResourceLink>();
  /** The position of the result of each call with files. */
  private readonly withFiles = new Map<string, number>();
  /** Positions of the refusals of files. */
  private readonly refusals: number[] = [];
  private newestSummary: (SummaryEntry & RecordedEntry) | undefined;
  /** Calls with a `begun` entry, by Baton's id: the position of the newest one. */
  private readonly begun = new Map<string, number>();
  /** The state of calls at their tool servers, by Baton's id of the call. */
  private readonly remoteCalls = new Map<string, { position: number; remote: RemoteCall }>();
  /** What persons were asked about calls and spending caps, and what they have decided. */
  readonly approvals: ApprovalHistory;

  private constructor(
    private readonly turn: Turn,
    entries: RecordedEntry[],
  ) {
    this.approvals = new ApprovalHistory(turn.runId, this);
    for (const entry of entries) this.addEntry(entry);
  }

  static async open(turn: Turn): Promise<Conversation> {
    return new Conversation(turn, (await turn.journal.read()).map(recordedEntry));
  }

  /**
   * Appends an entry. It is durable when this resolves.
   * @param record what is recorded of the call, to be stored with it
   * @returns its position in the journal
   */
  async add(entry: LlmEntry, record?: string): Promise<number> {
    // A secret that a model or a tool quotes must not go to another model or tool.
    const clean = this.turn.secrets.redactor.value(entry);
    await this.turn.journal.append(clean, record);
    const position = (this.entries.at(-1)?.position ?? 0) + 1;
    this.addEntry({ ...clean, runId: this.turn.runId, position });
    return position;
  }

  /** Stores the state of a call at its tool server. Before its first task is stored, the run is marked: a cancel must reach the server. */
  async addRemoteCall(call: RecordedCall, remote: RemoteCall): Promise<void> {
    if (remote.task && !this.remoteCallOf(call)?.task) await this.turn.journal.noteRemoteCall();
    await this.add({ kind: 'remote', ...idsOf(call), remote });
  }

  /** Adds this turn's message as a prompt, unless an earlier attempt has added it. */
  async begin(): Promise<void> {
    if (this.ofThisRun().some(({ kind }) => kind === 'asked')) return;
    await this.add({ kind: 'asked', at: historyBefore(this.turn).length });
  }

  /** All entries of the journal, the oldest first. */
  recorded(): readonly RecordedEntry[] {
    return this.entries;
  }

  /** All model calls, of all turns of the task. */
  steps(): readonly (ModelStep & RecordedEntry)[] {
    return this.recordedSteps;
  }

  /** The model calls of this turn. */
  stepsOfThisRun(): (ModelStep & RecordedEntry)[] {
    return this.steps().filter(({ runId }) => runId === this.turn.runId);
  }

  correctionsOfThisRun(): number {
    return this.ofThisRun().filter(({ kind }) => kind === 'correction').length;
  }

  /** The last entry; undefined in a new task. */
  last(): RecordedEntry | undefined {
    return this.entries.at(-1);
  }

  /** The tool calls of a step. Steps count from 1. */
  callsOf(step: number): readonly RecordedCall[] {
    return this.calls[step - 1] ?? [];
  }

  /** The tool calls of the last step that have no result yet. */
  pendingCalls(): RecordedCall[] {
    return this.callsOf(this.steps().length).filter((call) => !this.resultOf(call));
  }

  /** The result of a tool call, if there is one. */
  resultOf(call: RecordedCall): CallResult['result'] | undefined {
    return this.results.get(callIdOf(call));
  }

  /** The result of the call with this id of Baton. */
  resultWithId(id: string): CallResult['result'] | undefined {
    return this.results.get(id);
  }

  /** A resource that a tool server has linked in this task. */
  linkTo(uri: string): ResourceLink | undefined {
    return this.links.get(uri);
  }

  /** Whether a tool server has linked a resource. */
  hasLinks(): boolean {
    return this.links.size > 0;
  }

  /**
   * The results with files that no provider has refused, by Baton's id of the call, the newest first. After two refusals there are none
   * in the rest of the task.
   */
  resultsWithFiles(): (readonly [id: string, result: ToolResult])[] {
    if (this.refusals.length >= MAX_REFUSALS) return [];
    const refused = this.refusals.at(-1) ?? 0;
    const newest = [...this.withFiles].filter(([, position]) => position > refused).toReversed();
    return newest.flatMap(([id]) => {
      const result = this.results.get(id);
      return result ? [[id, result] as const] : [];
    });
  }

  /** Whether a call was sent that must not be repeated without a person's word. */
  hasBegun(call: RecordedCall): boolean {
    return this.begun.has(callIdOf(call));
  }

  /** Position of the newest entry of such a sent call. Undefined: none was sent. */
  begunAt(callId: string): number | undefined {
    return this.begun.get(callId);
  }

  /** Whether such a call was sent, and its server has not answered in any way. */
  isSent(call: RecordedCall): boolean {
    const id = callIdOf(call);
    const begun = this.begun.get(id);
    return begun !== undefined && begun > (this.remoteCalls.get(id)?.position ?? 0);
  }

  /** The task with which the server of a tool executes a call, and what the server has asked. */
  remoteCallOf(call: RecordedCall): RemoteCall | undefined {
    return this.remoteCalls.get(callIdOf(call))?.remote;
  }

  /** Tokens of the whole task, and of this turn. Failed calls count. */
  usage(): { task: ModelUsage; run: ModelUsage } {
    const sum = (entries: readonly RecordedEntry[]) =>
      entries.reduce((all, entry) => ('usage' in entry ? addUsage(all, entry.usage) : all), NO_USAGE);
    return { task: sum(this.entries), run: sum(this.ofThisRun()) };
  }

  /**
   * Appends a summary.
   * @param steps how many steps it replaces
   * @param answer the call that has made it
   * @param record what is recorded of the call
   */
  addSummary(steps: number, answer: ModelStep, record: string | undefined): Promise<number> {
    const { message: _, kind: __, ...call } = answer;
    return this.add({ ...call, kind: 'summary', steps, text: textOfStep(answer) }, record);
  }

  /** The newest summary. */
  summary(): SummaryEntry | undefined {
    return this.newestSummary;
  }

  /** The last step, if its provider has counted the tokens of what a model is sent next. */
  lastMeasuredStep(model: string): ModelStep | undefined {
    const last = this.recordedSteps.at(-1);
    const isMeasured = last?.model === model && !last.usage.estimated;
    return isMeasured && last.position > (this.newestSummary?.position ?? 0) ? last : undefined;
  }

  /** Adds an entry to the indexes, so that lookups need no search. */
  private addEntry(entry: RecordedEntry): void {
    this.entries.push(entry);
    if (entry.kind === 'step') this.takeStep(entry);
    if (entry.kind === 'summary') this.newestSummary = entry;
    if (entry.kind === 'unsent') for (const id of this.idsIn(entry)) this.begun.delete(id);
    if (entry.kind === 'begun') for (const id of this.idsIn(entry)) this.begun.set(id, entry.position);
    if (entry.kind === 'remote') {
      const { position, remote } = entry;
      for (const id of this.idsIn(entry)) this.remoteCalls.set(id, { position, remote });
    }
    if (entry.kind === 'result') {
      for (const id of this.idsIn(entry)) {
        if (this.results.has(id)) continue;
        this.results.set(id, entry.result);
        if (entry.result.files) this.withFiles.set(id, entry.position);
        const { uris = [], ...server } = entry.result.links ?? {};
        for (const uri of uris) this.links.set(uri, { ...server, uri } as ResourceLink);
      }
    }
    if (entry.kind === 'files-refused') this.refusals.push(entry.position);
    this.approvals.addEntry(entry);
  }

  private takeStep(entry: ModelStep & RecordedEntry): void {
    this.recordedSteps.push(entry);
    const step = this.recordedSteps.length;
    const { content } = entry.message;
    const parts = typeof content === 'string' ? [] : content;
    const calls = parts.filter((part): part is ToolCallPart => part.type === 'tool-call');
    this.calls.push(
      calls.map((call, i) => ({ ...call, step, index: i + 1, sentId: this.unusedId(call.toolCallId) })),
    );
  }

  private unusedId(id: string): string {
    let unused = id;
    for (let number = this.sentIds.size; unused === '' || this.sentIds.has(unused); number++) {
      unused = replacementId(number);
    }
    this.sentIds.add(unused);
    return unused;
  }

  /** Baton's ids of the calls that an entry is about. An entry of releases up to 0.2 is about calls of the last step. */
  private idsIn({ callId, call }: CallIds): string[] {
    if (call !== undefined) return [call];
    return this.callsOf(this.recordedSteps.length)
      .filter(({ toolCallId }) => toolCallId === callId)
      .map(callIdOf);
  }

  private ofThisRun(): RecordedEntry[] {
    return this.entries.filter(({ runId }) => runId === this.turn.runId);
  }
}
