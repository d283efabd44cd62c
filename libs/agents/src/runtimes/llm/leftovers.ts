import { type Artifact, textOf } from '@baton/a2a';
import { isDeepStrictEqual } from 'node:util';
import { type AgentOutput, artifactChunk, type Turn } from '../../runtime.js';
import type { Conversation } from './conversation.js';
import { textArtifact } from './speech.js';
import { reasoningOfStep, textOfStep } from './structured-answer.js';
import { callArtifact, fileArtifacts } from './tools/call-artifacts.js';

/**
 * What a worker that died had finished, and not said to its end: the journal may know more of a step than the log.
 * @param isData the agent's replies are data, which is said when the turn ends
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
      const said = textOf(there.get(artifact.artifactId)?.parts ?? []);
      if (said !== textOf(artifact.parts)) yield artifactChunk(turn, artifact);
    }
    yield* ofCalls(turn, conversation, number, there);
  }
}

/** Also of steps of an earlier turn, whose calls were approved by this turn's message. */
function* ofCalls(
  turn: Turn,
  conversation: Conversation,
  step: number,
  there: ReadonlyMap<string, Artifact>,
): Generator<AgentOutput> {
  for (const call of conversation.callsOf(step)) {
    const result = conversation.resultOf(call);
    if (!result) continue;
    const artifact = callArtifact(call, result);
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

const hasData = (said: Artifact | undefined, artifact: Pick<Artifact, 'parts'>): boolean =>
  said !== undefined && isDeepStrictEqual(dataOf(said), dataOf(artifact));
