import {
  type Artifact,
  isTruncated,
  joinTexts,
  type Part,
  stateName,
  type Task,
  TaskState,
} from '@baton/a2a';
import { asksForApproval } from '@baton/agents';
import { TASK_STATUS } from './agent-tools.js';

/** One piece of the result of a tool. */
type ContentBlock = { type: string } & Record<string, unknown>;

/** The result of a call of a tool. */
export interface CallToolResult {
  content: ContentBlock[];
  structuredContent?: unknown;
  isError?: true;
  _meta: Record<string, string>;
}

/** What a task is to the client that has called the tool. @param consoleUrl where a person finds the task */
export function toolResult(task: Task, consoleUrl: string): CallToolResult {
  const { id, contextId, status } = task;
  const state = status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
  const said = status?.message?.parts ?? [];
  const _meta = { 'baton/taskId': id, 'baton/contextId': contextId, 'baton/state': stateName(state) };
  switch (state) {
    case TaskState.TASK_STATE_COMPLETED:
      return { ...output(task), _meta };
    case TaskState.TASK_STATE_FAILED:
    case TaskState.TASK_STATE_REJECTED: {
      const { content } = output(task);
      return {
        content: content.length > 0 ? content : [text(`The task has ${stateName(state)}.`)],
        isError: true,
        _meta,
      };
    }
    case TaskState.TASK_STATE_CANCELED:
      return {
        content: [text('The task was canceled.'), ...contentOf(said, `${id}/message`)],
        isError: true,
        _meta,
      };
    case TaskState.TASK_STATE_INPUT_REQUIRED: {
      const how = asksForApproval(status)
        ? `The task waits until a person approves it, which no tool can do: ${consoleUrl}`
        : `The task waits for an answer: call this tool again with taskId "${id}" and the answer as message. A person can also answer at ${consoleUrl}`;
      return { ...handle(task, [...contentOf(said, `${id}/message`), text(how)]), _meta };
    }
    case TaskState.TASK_STATE_AUTH_REQUIRED:
      return {
        ...handle(task, [
          ...contentOf(said, `${id}/message`),
          text(`The task waits until a person has signed in: ${consoleUrl}`),
        ]),
        _meta,
      };
    default:
      return { ...workingResult(id, contextId), _meta };
  }
}

/** The result of a call whose task goes on. @param why what ended the wait, as a sentence */
export function workingResult(
  id: string,
  contextId: string,
  why = '',
): Pick<CallToolResult, 'content' | 'structuredContent'> {
  const said = `${why}The task goes on. Call ${TASK_STATUS} with taskId "${id}" for its state and its result.`;
  return { content: [text(said)], structuredContent: { taskId: id, contextId, state: 'working' } };
}

const handle = ({ id, contextId, status }: Task, content: ContentBlock[]) => ({
  content,
  structuredContent: {
    taskId: id,
    contextId,
    state: stateName(status?.state ?? TaskState.TASK_STATE_UNSPECIFIED),
  },
});

/** What an agent has made and said. Structured content is there if it is the whole output: some hosts show their model nothing else then. */
function output(task: Task): Pick<CallToolResult, 'content' | 'structuredContent'> {
  const { id, status, artifacts } = task;
  const said = status?.message?.parts ?? [];
  const all = [...said, ...artifacts.flatMap(({ parts }) => parts)];
  const content = [
    ...contentOf(said, `${id}/message`),
    ...artifacts.flatMap((artifact) => artifactContent(id, artifact)),
  ];
  if (isTruncated(task))
    content.push(text('The result is larger than one answer may be: this is its beginning.'));
  const [only] = all;
  const data: unknown = all.length === 1 && only?.content?.$case === 'data' ? only.content.value : undefined;
  return { content, ...(isObject(data) && { structuredContent: data }) };
}

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const artifactContent = (taskId: string, { artifactId, name, parts }: Artifact): ContentBlock[] =>
  contentOf(parts, `${taskId}/artifacts/${encodeURIComponent(artifactId)}`, name);

const contentOf = (parts: readonly Part[], path: string, name?: string): ContentBlock[] =>
  // A model writes a text in hundreds of pieces.
  joinTexts(parts).map((part, index) => partContent(part, `baton://tasks/${path}/${String(index)}`, name));

function partContent({ content, mediaType, filename }: Part, uri: string, name = ''): ContentBlock {
  switch (content?.$case) {
    case 'text':
      return text(content.value);
    case 'raw': {
      const mimeType = mediaType || 'application/octet-stream';
      const data = content.value.toString('base64');
      const [kind] = mimeType.split('/', 1);
      if (kind === 'image' || kind === 'audio') return { type: kind, data, mimeType };
      return { type: 'resource', resource: { uri, mimeType, blob: data } };
    }
    case 'url':
      return {
        type: 'resource_link',
        uri: content.value,
        name: filename || name || content.value,
        ...(mediaType && { mimeType: mediaType }),
      };
    default:
      return text(JSON.stringify(content?.value ?? null));
  }
}

const text = (value: string): ContentBlock => ({ type: 'text', text: value });
