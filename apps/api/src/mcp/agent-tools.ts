import { type JsonObject, type ListedAgent, shortened } from '@baton/a2a';

/** A tool as `tools/list` shows it. */
export interface Tool {
  name: string;
  title?: string;
  description: string;
  inputSchema: object;
  outputSchema?: object;
  annotations?: object;
}

/** Hosts show all descriptions to their model at once, and some cut them. */
const MAX_DESCRIPTION = 2_000;
/** A description of `MAX_DESCRIPTION` has no room for more. */
const MAX_SKILLS = 20;

/** The tool by which an agent is called. Its name is the slug. */
export function agentTool({ slug, definition }: ListedAgent): Tool {
  const { name, description, skills, outputSchema } = definition;
  return {
    name: slug,
    title: name,
    description: shortened([description, ...skillLines(skills)].join('\n'), MAX_DESCRIPTION),
    inputSchema: AGENT_INPUT,
    ...(outputSchema && { outputSchema: toolOutput(outputSchema) }),
  };
}

/** What a call returns: the data of the agent, or the task if it is at work or waits. Clients check results against it. */
const toolOutput = (schema: JsonObject): object => ({ type: 'object', anyOf: [nested(schema), TASK_OUTPUT] });

/** The schema one level down. References within it are paths from its root. A schema with an id is a root itself. */
function nested(schema: JsonObject): unknown {
  if (schema.$id !== undefined) return schema;
  const { $schema: _, ...members } = schema;
  return withReferences(members);
}

function withReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withReferences);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      const isLocal = key === '$ref' && typeof member === 'string' && /^#(\/|$)/.test(member);
      return [key, isLocal ? `#/anyOf/0${member.slice(1)}` : withReferences(member)];
    }),
  );
}

function skillLines(skills: ListedAgent['definition']['skills']): string[] {
  if (skills.length === 0) return [];
  return [
    '',
    'Skills:',
    ...skills.slice(0, MAX_SKILLS).map(({ name, description }) => `- ${name}: ${description}`),
  ];
}

const AGENT_INPUT = {
  type: 'object',
  properties: {
    message: { type: 'string', description: 'What the agent is asked or told' },
    files: {
      type: 'array',
      description: 'Files for the agent, each by its content or by its address',
      items: {
        type: 'object',
        properties: {
          name: { type: 'string', description: 'Name of the file' },
          mediaType: { type: 'string', description: 'Such as image/png' },
          bytes: { type: 'string', description: 'The content in base64' },
          url: { type: 'string', description: 'Where the content is' },
        },
        additionalProperties: false,
      },
    },
    data: { type: 'object', description: 'Structured input, for agents that take it' },
    contextId: {
      type: 'string',
      description: 'Of an earlier task: the agent continues that conversation. Left out: a new one begins',
    },
    taskId: {
      type: 'string',
      description:
        'Of a task that has asked a question: the message is the answer. Left out: a new task begins',
    },
  },
  additionalProperties: false,
} as const;

const TASK_OUTPUT = {
  type: 'object',
  properties: { taskId: { type: 'string' }, contextId: { type: 'string' }, state: { type: 'string' } },
  required: ['taskId', 'contextId', 'state'],
};

const TASK_INPUT = {
  type: 'object',
  properties: { taskId: { type: 'string', description: 'The id that a call has returned' } },
  required: ['taskId'],
  additionalProperties: false,
} as const;

/** No slug has an underscore. */
export const TASK_STATUS = 'task_status';
export const TASK_CANCEL = 'task_cancel';

/** For clients without the tasks extension. */
export const STATUS_TOOL: Tool = {
  name: TASK_STATUS,
  title: 'Status of a task',
  description: 'Shows a task that a tool has not finished yet: its state, and its result once it has ended.',
  inputSchema: TASK_INPUT,
  annotations: { readOnlyHint: true },
};

export const CANCEL_TOOL: Tool = {
  name: TASK_CANCEL,
  title: 'Cancel a task',
  description: 'Cancels a task that has not ended yet.',
  inputSchema: TASK_INPUT,
  annotations: { destructiveHint: true, idempotentHint: true },
};
