import { type Task, eventKindOf } from '@baton/a2a';
import type { ModelMessage } from 'ai';
import type { Turn } from '../../runtime.js';
import type { LlmConfig } from './config.js';
import { isUsers, recalled } from './prompt.js';
import { estimateTokens } from './usage.js';

/**
 * What the model is reminded of: the earlier tasks of the context, oldest first, each as what was asked and what was
 * answered, as many of the latest as have room. Tool calls and thoughts are not part of it.
 */
export async function memoryOf({ earlierTasks }: Turn, memory: LlmConfig['memory']): Promise<ModelMessage[]> {
  if (memory === 'off') return [];
  const tasks = await earlierTasks(memory.turns);
  const kept: ModelMessage[][] = [];
  let tokens = 0;
  for (const task of tasks.toReversed()) {
    const messages = messagesOf(task);
    tokens += messages.reduce((sum, { content }) => sum + estimateTokens(content.length), 0);
    if (tokens > memory.tokens || kept.length === memory.turns) break;
    kept.unshift(messages);
  }
  return kept.flat();
}

function messagesOf(task: Task) {
  const asked = task.history.filter(isUsers).map(({ parts }) => recalled(parts));
  const answered = task.artifacts
    .filter((artifact) => eventKindOf(artifact) === undefined)
    .map(({ parts }) => recalled(parts));
  const answer = answered.join('\n').trim() || recalled(task.status?.message?.parts ?? []);
  return [
    { role: 'user' as const, content: asked.join('\n') },
    { role: 'assistant' as const, content: answer },
  ].filter(({ content }) => content !== '');
}
