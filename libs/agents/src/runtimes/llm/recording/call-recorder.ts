import { type Logger, messageOf } from '@baton/telemetry';
import type { Turn } from '../../../agent-runtime.js';
import type { FailedCall, ModelStep } from '../llm-entry.js';
import type { SentParams } from '../sent-params.js';
import type { Complaint } from '../wire/provider-complaint.js';
import { bytesOf, cleanSection, cleanValue, fitting, MAX_SECTION_BYTES } from './bounded-json.js';
import type { CallRecordDetail } from './call-record-detail.js';
import { RecordedAnswer } from './recorded-answer.js';

type SentRequest = NonNullable<CallRecordDetail['sent']>;
type SaidAnswer = CallRecordDetail['said'];

/** One try of a call of the model that is recorded. */
export interface RecordedTry {
  sent: SentParams | undefined;
  answer: RecordedAnswer;
  complaint?: Complaint | undefined;
}

/**
 * Records the calls of a turn: requests and answers of the model. Secrets of the turn are removed, and each section is cut at 128
 * KiB. Recording never fails a turn.
 */
export class CallRecorder {
  private current: RecordedTry | undefined;

  /** @param mode `failed`: of calls that do not fail, only those of a run that fails are kept */
  constructor(
    private readonly turn: Turn,
    private readonly mode: 'failed' | 'all',
    private readonly logger: Logger,
  ) {}

  /** Begins the next try of a call. */
  begin(): RecordedTry {
    this.current = { sent: undefined, answer: new RecordedAnswer() };
    return this.current;
  }

  /** The request of the try that has begun. */
  readonly onRequest = (params: SentParams): void => {
    if (this.current) this.current.sent = params;
  };

  /**
   * The record of a try.
   * @returns its JSON, and whether it is kept also if the run does not fail; undefined if there can be none
   */
  recordOf(
    call: ModelStep | FailedCall,
    recorded: RecordedTry,
  ): { json: string; isKept: boolean } | undefined {
    try {
      const record: CallRecordDetail = { sent: this.sentOf(recorded), said: this.saidOf(recorded, call) };
      const isKept = this.mode === 'all' || call.kind === 'failed-call';
      return { json: JSON.stringify(record), isKept };
    } catch (error) {
      const { tenantId, runId, task } = this.turn;
      const reason = messageOf(error);
      this.logger.warn('model call could not be recorded', { tenantId, taskId: task.id, runId, reason });
      return undefined;
    }
  }

  private sentOf({ sent }: RecordedTry): SentRequest | null {
    if (!sent) return null;
    const { redactor } = this.turn.secrets;
    const { prompt, tools = [], ...settings } = sent;
    const instructions = prompt.flatMap((message) => (message.role === 'system' ? [message.content] : []));
    const messages = this.newest(prompt.filter((message) => message.role !== 'system'));
    const offered = fitting(tools.map((tool) => this.clean(tool)));
    // What is not part of the request: how the call is made.
    const { abortSignal: _, headers: __, includeRawChunks: ___, ...parameters } = settings;
    const clean = this.clean(parameters);
    return {
      instructions: cleanSection(instructions.join('\n\n'), redactor),
      messages: messages.kept,
      tools: offered.kept,
      parameters: bytesOf(clean) > MAX_SECTION_BYTES ? cleanSection(JSON.stringify(clean), redactor) : clean,
      left: { messages: messages.left, tools: offered.left },
    };
  }

  /** The newest messages that fit. If not even the last one does, the beginning of its text does. */
  private newest(messages: SentParams['prompt']): { kept: unknown[]; left: number } {
    const reversed: unknown[] = [];
    let bytes = 0;
    // From the newest one: what does not fit anyhow is not read.
    for (const message of messages.toReversed()) {
      const clean = this.clean(message);
      bytes += bytesOf(clean);
      reversed.push(clean);
      if (bytes > MAX_SECTION_BYTES) break;
    }
    const { kept } = fitting(reversed);
    const last = messages.at(-1);
    if (kept.length === 0 && last) {
      const text = cleanSection(JSON.stringify(reversed[0]), this.turn.secrets.redactor);
      return { kept: [{ role: last.role, content: text }], left: messages.length - 1 };
    }
    return { kept: kept.toReversed(), left: messages.length - kept.length };
  }

  private saidOf({ answer, complaint }: RecordedTry, call: ModelStep | FailedCall): SaidAnswer {
    const { redactor } = this.turn.secrets;
    const { text, reasoning, response, left } = answer;
    const calls = fitting(answer.calls.map((each) => this.ofAnswer(each, left)));
    const isFailed = call.kind === 'failed-call';
    return {
      text: cleanSection(this.uncut(text, left), redactor),
      reasoning: cleanSection(this.uncut(reasoning, left), redactor),
      calls: calls.kept,
      finish: isFailed ? null : call.finish,
      providerFinish: isFailed ? null : (call.rawFinish ?? null),
      usage: call.usage,
      response: this.clean(response) as SaidAnswer['response'],
      error: isFailed ? redactor.text(call.error) : null,
      complaint: (this.clean(complaint) as SaidAnswer['complaint'] | undefined) ?? null,
      left: { characters: left, calls: calls.left },
    };
  }

  private ofAnswer(
    { id, tool, input }: SaidAnswer['calls'][number],
    left: number,
  ): SaidAnswer['calls'][number] {
    const { redactor } = this.turn.secrets;
    return {
      id: redactor.text(id),
      tool: redactor.text(tool),
      input: cleanSection(this.uncut(input, left), redactor),
    };
  }

  /** The end of a text that was cut may be the beginning of a secret: it is left out. */
  private uncut(text: string, left: number): string {
    return left > 0 ? this.turn.secrets.redactor.split(text).ready : text;
  }

  private clean(value: unknown): unknown {
    return cleanValue(value, this.turn.secrets.redactor);
  }
}
