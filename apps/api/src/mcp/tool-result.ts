import {
  type Artifact,
  eventKindOf,
  isJsonObject,
  isTruncated,
  joinTexts,
  type Part,
  stateName,
  type Task,
  TaskState,
} from '@baton/a2a';
import { asksForApproval } from '@baton/agents';
import { TASK_STATUS } from './agent-tools.js';
import { artifactUri, resourceContent } from './resource-contents.js';

/** Maximum bytes of one artifact in a result. A larger one is a link: hosts give all of a result to their model. */
const MAX_INLINE_ARTIFACT = 256 * 1024;
/** Maximum bytes of all artifacts in a result. */
const MAX_INLINE = 1024 * 1024;

/** One piece of the result of a tool. */
type ContentBlock = { type: string } & Record<string, unknown>;

/** The result of a tool call. */
export interface CallToolResult {
  content: ContentBlock[];
  structuredContent?: unknown;
  isError?: true;
  _meta: Record<string, string>;
}

/** The result of the tool that has begun or continued a task, in its present state. @param consoleUrl where a person finds the task */
export function toolResult(task: Task, consoleUrl: string): CallToolResult {
  const { id, contextId, status } = task;
  const state = status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
  const statusParts = status?.message?.parts ?? [];
  const _meta = metaOf(id, contextId, stateName(state));
  switch (state) {
    case TaskState.TASK_STATE_COMPLETED:
      return { ...outputOf(task), _meta };
    case TaskState.TASK_STATE_FAILED:
    case TaskState.TASK_STATE_REJECTED: {
      const { content } = outputOf(task);
      return {
        content: content.length > 0 ? content : [text(`The task has ${stateName(state)}.`)],
        isError: true,
        _meta,
      };
    }
    case TaskState.TASK_STATE_CANCELED:
      return {
        content: [text('The task was canceled.'), ...contentOf(statusParts, messageUri(id))],
        isError: true,
        _meta,
      };
    case TaskState.TASK_STATE_INPUT_REQUIRED: {
      const how = asksForApproval(status)
        ? `The task waits until a person approves it, which no tool can do: ${consoleUrl}`
        : `The task waits for an answer: call this tool again with taskId "${id}" and the answer as message. A person can also answer at ${consoleUrl}`;
      return { ...interruptedResult(task, [...contentOf(statusParts, messageUri(id)), text(how)]), _meta };
    }
    case TaskState.TASK_STATE_AUTH_REQUIRED:
      return {
        ...interruptedResult(task, [
          ...contentOf(statusParts, messageUri(id)),
          text(`The task waits until a person has signed in: ${consoleUrl}`),
        ]),
        _meta,
      };
    default:
      return { ...workingResult(id, contextId), _meta };
  }
}

/** The result of a call whose task has not ended. @param why what ended the wait, as a sentence */
export function workingResult(id: string, contextId: string, why = ''): CallToolResult {
  const sentence = `${why}The task continues. Call ${TASK_STATUS} with taskId "${id}" for its state and its result.`;
  const state = 'working';
  return {
    content: [text(sentence)],
    structuredContent: { taskId: id, contextId, state },
    _meta: metaOf(id, contextId, state),
  };
}

const metaOf = (id: string, contextId: string, state: string): Record<string, string> => ({
  'baton/taskId': id,
  'baton/contextId': contextId,
  'baton/state': state,
});

/** The result while the task waits for a person. */
const interruptedResult = ({ id, contextId, status }: Task, content: ContentBlock[]) => ({
  content,
  structuredContent: {
    taskId: id,
    contextId,
    state: stateName(status?.state ?? TaskState.TASK_STATE_UNSPECIFIED),
  },
});

/**
 * The artifacts and messages of an agent. Structured content is set only if it is the whole output: some hosts show their model
 * nothing else then.
 */
function outputOf(task: Task): Pick<CallToolResult, 'content' | 'structuredContent'> {
  const { id, status, artifacts } = task;
  const statusParts = status?.message?.parts ?? [];
  // Reasoning and tool calls are not part of the reply.
  const reply = artifacts.filter((artifact) => eventKindOf(artifact) === undefined);
  const all = [...statusParts, ...reply.flatMap(({ parts }) => parts)];
  const isIncomplete = isTruncated(task);
  const content = contentOf(statusParts, messageUri(id));
  let room = isIncomplete ? 0 : MAX_INLINE;
  for (const artifact of reply) {
    const size = artifact.parts.reduce((sum, part) => sum + sizeOf(part), 0);
    const isLinked = isIncomplete || size > Math.min(room, MAX_INLINE_ARTIFACT);
    if (!isLinked) room -= size;
    content.push(
      ...(isLinked
        ? [artifactLink(id, artifact, isIncomplete ? undefined : size)]
        : artifactContent(id, artifact)),
    );
  }
  if (isIncomplete)
    content.push(
      text(`The result is larger than one answer may be: GET /v1/tasks/${id}/artifacts has all of it.`),
    );
  const [only] = all;
  const data: unknown = all.length === 1 && only?.content?.$case === 'data' ? only.content.value : undefined;
  return { content, ...(isJsonObject(data) && { structuredContent: data }) };
}

const artifactContent = (taskId: string, { artifactId, name, parts }: Artifact): ContentBlock[] =>
  contentOf(parts, artifactUri(taskId, artifactId), name);

/** A large artifact, which the client reads as a resource. */
function artifactLink(taskId: string, artifact: Artifact, size: number | undefined): ContentBlock {
  const { artifactId, name, description, parts } = artifact;
  const mimeType = parts.length === 1 ? parts[0]?.mediaType : '';
  return {
    type: 'resource_link',
    uri: artifactUri(taskId, artifactId),
    name: parts[0]?.filename || name || artifactId,
    ...(description !== '' && { description }),
    ...(mimeType && { mimeType }),
    ...(size !== undefined && { size }),
  };
}

const messageUri = (taskId: string): string => `baton://tasks/${taskId}/message`;

const contentOf = (parts: readonly Part[], uri: string, name?: string): ContentBlock[] =>
  // A model writes a text in hundreds of pieces.
  joinTexts(parts).map((part, index) => partContent(part, `${uri}#${String(index)}`, name));

function sizeOf({ content }: Part): number {
  if (content?.$case === 'raw') return content.value.length;
  if (content?.$case === 'text') return Buffer.byteLength(content.value);
  return content?.$case === 'data' ? Buffer.byteLength(JSON.stringify(content.value ?? null)) : 0;
}

function partContent(part: Part, uri: string, name = ''): ContentBlock {
  const { content, mediaType, filename } = part;
  switch (content?.$case) {
    case 'text':
      return text(content.value);
    case 'raw': {
      const mimeType = mediaType || 'application/octet-stream';
      const [kind] = mimeType.split('/', 1);
      if (kind === 'image' || kind === 'audio')
        return { type: kind, data: content.value.toString('base64'), mimeType };
      return { type: 'resource', resource: resourceContent(part, uri) };
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
