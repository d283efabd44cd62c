import { type Message, type Part, Role, type Task, TaskState, eventKindOf } from '@baton/a2a';
import type { ModelMessage } from 'ai';
import type { Turn } from '../../agent-runtime.js';
import type { LlmConfig } from './llm-config.js';
import { estimateTokens } from './model-usage.js';
import { EMPTY_MESSAGE } from './prompt-reader.js';

/**
 * The memory of an agent: question and answer of the context's latest earlier tasks within the limits, oldest first.
 * Tool calls and reasoning are left out.
 * @param room maximum tokens
 */
export async function memoryOf(
  { earlierTasks }: Turn,
  memory: LlmConfig['memory'],
  room = Infinity,
): Promise<ModelMessage[]> {
  if (memory === 'off') return [];
  const tasks = await earlierTasks(memory.turns);
  const kept: ModelMessage[][] = [];
  let tokens = 0;
  for (const task of tasks.toReversed()) {
    const messages = messagesOf(task);
    tokens += messages.reduce((sum, { content }) => sum + estimateTokens(content.length), 0);
    if (tokens > Math.min(memory.tokens, room) || kept.length === memory.turns) break;
    kept.unshift(messages);
  }
  return kept.flat();
}

function messagesOf(task: Task) {
  const asked = task.history.filter(isUsers).map(({ parts }) => recalled(parts));
  const answered = task.artifacts
    .filter((artifact) => eventKindOf(artifact) === undefined)
    .map(({ parts }) => recalled(parts));
  // Other statuses have a text of Baton: why the task has failed, or a request for approval.
  const isCompleted = task.status?.state === TaskState.TASK_STATE_COMPLETED;
  const status = isCompleted ? recalled(task.status?.message?.parts ?? []) : '';
  const question = asked.join('\n');
  const answer = answered.join('\n').trim() || status.trim();
  const messages = [];
  // Providers refuse blank messages, and some a conversation that begins with an answer.
  if (question.trim() !== '') messages.push({ role: 'user' as const, content: question });
  else if (answer !== '') messages.push({ role: 'user' as const, content: EMPTY_MESSAGE });
  if (answer !== '') messages.push({ role: 'assistant' as const, content: answer });
  return messages;
}

/** The text of a message or artifact for the memory. Files are reduced to their names. */
export function recalled(parts: readonly Part[]): string {
  const texts = parts.map(({ content, filename, mediaType }) => {
    if (content?.$case === 'text') return content.value;
    if (content?.$case === 'data') return JSON.stringify(content.value ?? null);
    return content ? `(a file${filename && `, ${filename}`}${mediaType && `, ${mediaType}`})` : '';
  });
  // Chunks of a streamed text are joined without separator.
  return parts.every(({ content }) => content?.$case === 'text') ? texts.join('') : texts.join('\n').trim();
}

const isUsers = ({ role }: Message): boolean => role === Role.ROLE_USER;
