import { TaskState, type Agent, type Part, type Task, eventKindOf, isInterrupted, textOf } from '@baton/a2a';
import type { ChildTask } from '../../../../ports.js';
import type { ToolResult } from '../agent-tool.js';

const { TASK_STATE_COMPLETED, TASK_STATE_CANCELED, TASK_STATE_REJECTED, TASK_STATE_AUTH_REQUIRED } =
  TaskState;

/** What a child has come to, for the model that has asked for it and for the callers of its task. */
export function replyOf({ slug }: Agent, { task, depth }: ChildTask): ToolResult {
  const state = task.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
  const said = textOf(task.status?.message?.parts ?? []);
  const shown = (content: unknown) => ({ kind: 'agent-reply', data: { agent: slug, depth, content } });
  if (state === TASK_STATE_COMPLETED) {
    const content = contentOf(task, said);
    return { ok: true, content, shown: shown(content) };
  }
  if (isInterrupted(state)) {
    const needs = state === TASK_STATE_AUTH_REQUIRED ? 'auth-required' : 'input-required';
    const asked = said === '' ? 'It asks for more.' : said;
    const text = `${slug} has not finished (${needs}). It says: ${asked}\nTo answer, call this tool again with taskId "${task.id}".`;
    return {
      ok: true,
      content: { state: needs, question: said, taskId: task.id },
      text,
      shown: shown(asked),
    };
  }
  const how =
    state === TASK_STATE_CANCELED
      ? 'was canceled'
      : state === TASK_STATE_REJECTED
        ? 'has refused'
        : 'has failed';
  return { ok: false, content: `${slug} ${how}${said === '' ? '' : `: ${said}`}` };
}

/** Text alone is text; with data or files it is `{text, data, files}`, of files their names. */
function contentOf({ artifacts }: Task, said: string): unknown {
  const own = artifacts.filter((artifact) => eventKindOf(artifact) === undefined);
  const texts = own.map(({ parts }) => textOf(parts)).filter((text) => text !== '');
  // Some agents reply with artifacts, some with the message of their last status, some with both.
  const text = [...texts, ...(said === '' || texts.includes(said) ? [] : [said])].join('\n');
  const parts = own.flatMap((artifact) => artifact.parts);
  const data = parts.flatMap(({ content }) => (content?.$case === 'data' ? [content.value as unknown] : []));
  const files = parts.filter(isFile).map(({ filename, mediaType }) => ({ name: filename, mediaType }));
  if (data.length === 0 && files.length === 0) return text;
  return {
    ...(text !== '' && { text }),
    ...(data.length > 0 && { data }),
    ...(files.length > 0 && { files }),
  };
}

const isFile = ({ content }: Part): boolean => content?.$case === 'raw' || content?.$case === 'url';
