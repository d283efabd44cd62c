import { EVENT_KIND, textOf, type Artifact } from '@baton/a2a';
import { isDeepStrictEqual } from 'node:util';
import type { Decision } from '../../approvals.js';
import {
  type AgentOutput,
  artifactChunk,
  plainTextPart,
  type Turn,
  jsonPart,
  filePart,
} from '../../agent-runtime.js';
import type { Conversation } from './conversation.js';
import { reasoningOfStep, textOfStep } from './llm-entry.js';
import { callIdOf, type RecordedCall } from './recorded-call.js';
import { fileArtifactId } from './result-output.js';
import type { ToolResult } from './tools/tool-sources.js';

export type Kind = 'reply' | 'reasoning';

/** What becomes of the words of a model: a call yields pieces of this kind. */
export interface ModelSpeech<Piece> {
  /**
   * @param last whether this is the last text of its kind
   * @returns undefined: no caller reads texts of this kind as they arrive
   */
  say(kind: Kind, text: string, last: boolean): Piece | undefined;
  /** Starts a retry: the output so far does not count. */
  restart(): void;
  /** The call has ended. */
  end(): Iterable<Piece>;
}

export const idOf = (kind: Kind, step: number): string => `${kind}-${step}`;

/** A text of the model as an artifact. Reasoning is marked, because it is not part of the reply. */
export const textArtifact = (kind: Kind, step: number, text: string) => ({
  artifactId: idOf(kind, step),
  name: kind,
  parts: [plainTextPart(text)],
  ...(kind === 'reasoning' && { metadata: { [EVENT_KIND]: 'reasoning' } }),
});

/** Maximum output of a call that callers see, in characters of JSON. */
const MAX_SHOWN = 32_768;

/** Metadata of a call that had to be approved: the decision, whether it changed the input, its principal and its time. `by` is null if the question expired. */
const APPROVAL = 'baton.approval';

/** A tool call as an artifact with one data part. It is marked, because it is not part of the reply. */
export function callArtifact(call: RecordedCall, result: ToolResult, decision?: Decision) {
  const { toolName, input } = call;
  const { kind, data } = result.shown ?? {
    kind: 'tool-call',
    data: { tool: toolName, ok: result.ok, input, ...shownOutput(result) },
  };
  return {
    artifactId: callIdOf(call),
    name: toolName,
    parts: [jsonPart(data)],
    metadata: {
      [EVENT_KIND]: kind,
      ...(decision && {
        [APPROVAL]: {
          approved: decision.approved,
          ...(decision.input !== undefined && { inputChanged: true }),
          by: decision.by?.principal ?? null,
          at: decision.by?.at ?? null,
        },
      }),
    },
  };
}

/** Maximum input of a call that callers see before it has ended, in characters of JSON. */
const MAX_STARTED = 4_096;

/** A call that is made now. Its result replaces it. */
export function startArtifact(call: RecordedCall) {
  const { toolName: tool, input } = call;
  const isShort = JSON.stringify(input ?? null).length <= MAX_STARTED;
  return {
    artifactId: callIdOf(call),
    name: tool,
    parts: [jsonPart({ tool, ...(isShort && { input }) })],
    metadata: { [EVENT_KIND]: 'tool-start' },
  };
}

/** Whether an earlier attempt has announced a call. */
export const isStarted = ({ task }: Turn, call: RecordedCall): boolean =>
  task.artifacts.some(({ artifactId }) => artifactId === callIdOf(call));

/** The progress of a call. It is marked, because it is not part of the reply. */
export const progressArtifact = ({ id, tool }: ReportingCall, message: string) => ({
  artifactId: progressId(id),
  name: tool,
  parts: [jsonPart({ tool, message })],
  metadata: { [EVENT_KIND]: 'tool-progress' },
});

/** A call of a model or of code, as its reports name it. `id` is unique in the task. */
export interface ReportingCall {
  id: string;
  tool: string;
}

const progressId = (id: string): string => `${id}-progress`;

/** The last progress of a call before this attempt. */
export function progressSaid({ task }: Turn, { id }: Pick<ReportingCall, 'id'>): string | undefined {
  const there = task.artifacts.find(({ artifactId }) => artifactId === progressId(id));
  const { message } = (there && (dataOf(there) as { message?: unknown } | undefined)) ?? {};
  return typeof message === 'string' ? message : undefined;
}

/** The files of a tool result, each as an artifact of the reply. */
export const fileArtifacts = (call: RecordedCall, { files = [] }: ToolResult) =>
  files.map(({ name, mediaType, base64 }, i) => ({
    artifactId: fileArtifactId(callIdOf(call), i),
    name,
    parts: [filePart(name, mediaType, Buffer.from(base64, 'base64'))],
  }));

function shownOutput({ content }: ToolResult): { output?: unknown } {
  return JSON.stringify(content ?? null).length <= MAX_SHOWN ? { output: content } : {};
}

/**
 * Artifacts that a crashed worker journaled and did not publish completely.
 * @param isData the agent's reply is data, which is published when the turn ends
 */
export function* leftovers(turn: Turn, conversation: Conversation, isData: boolean): Generator<AgentOutput> {
  const there = new Map(turn.task.artifacts.map((artifact) => [artifact.artifactId, artifact]));
  for (const [i, step] of conversation.steps().entries()) {
    const number = i + 1;
    const isOfThisTurn = step.runId === turn.runId;
    const texts = [
      textArtifact('reasoning', number, reasoningOfStep(step)),
      textArtifact('reply', number, isData ? '' : textOfStep(step)),
    ];
    for (const artifact of isOfThisTurn ? texts : []) {
      const before = textOf(there.get(artifact.artifactId)?.parts ?? []);
      if (before !== textOf(artifact.parts)) yield artifactChunk(turn, artifact);
    }
    yield* ofCalls(turn, conversation, number, there);
  }
}

/** Includes steps of earlier turns, because this turn's message may have approved their calls. */
function* ofCalls(
  turn: Turn,
  conversation: Conversation,
  step: number,
  there: ReadonlyMap<string, Artifact>,
): Generator<AgentOutput> {
  for (const asked of conversation.callsOf(step)) {
    const call = conversation.approvals.asDecided(asked);
    const result = conversation.resultOf(call);
    if (!result) continue;
    const artifact = callArtifact(call, result, conversation.approvals.lastDecisionOn(call));
    if (!hasData(there.get(artifact.artifactId), artifact)) yield artifactChunk(turn, artifact);
    for (const file of fileArtifacts(call, result)) {
      if (!there.has(file.artifactId)) yield artifactChunk(turn, file);
    }
  }
}

const dataOf = ({ parts }: Pick<Artifact, 'parts'>): unknown => {
  const content = parts[0]?.content;
  return content?.$case === 'data' ? content.value : undefined;
};

const hasData = (before: Artifact | undefined, artifact: Pick<Artifact, 'parts'>): boolean =>
  before !== undefined && isDeepStrictEqual(dataOf(before), dataOf(artifact));
