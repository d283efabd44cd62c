import { type DecodedCall, parseFields, ProtocolError, V1_0_CODEC } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';

const file = z
  .strictObject({
    name: z.string().optional(),
    mediaType: z.string().optional(),
    bytes: z.string().optional(),
    url: z.string().optional(),
  })
  .refine(({ bytes, url }) => (bytes === undefined) !== (url === undefined), 'send either bytes or url');

const agentArguments = z
  .strictObject({
    message: z.string().optional(),
    files: z.array(file).max(100).default([]),
    data: z.record(z.string(), z.unknown()).optional(),
    contextId: z.string().optional(),
    taskId: z.string().optional(),
  })
  .refine(
    ({ message, files, data }) => message !== undefined || files.length > 0 || data !== undefined,
    'send a message, files or data',
  );

const taskArguments = z.strictObject({ taskId: z.string() });

/** A message of a tool call, and how errors name its members. */
export interface ToolMessage {
  /** As A2A 1.0 writes it. */
  message: Record<string, unknown>;
  /** The argument that each part is made of. */
  parts: readonly string[];
}

/** What a tool call has for its message besides the arguments. */
interface CallMeta {
  /** Identifies the call if the client sends it again. */
  messageId?: string | undefined;
  /** Metadata of the message, for agents that read any. */
  metadata?: unknown;
}

/** The message that the arguments of an agent's tool stand for. */
export function readToolMessage(raw: unknown, { messageId = randomUUID(), metadata }: CallMeta): ToolMessage {
  const { message, files, data, contextId, taskId } = parseFields(agentArguments, raw ?? {}, 'arguments');
  const parts = [
    ...(message === undefined ? [] : [['arguments.message', { text: message }] as const]),
    ...files.map(
      ({ name, bytes, ...others }, index) =>
        [`arguments.files[${String(index)}]`, { filename: name, raw: bytes, ...others }] as const,
    ),
    ...(data === undefined ? [] : [['arguments.data', { data }] as const]),
  ];
  return {
    message: {
      messageId,
      contextId,
      taskId,
      role: 'ROLE_USER',
      metadata,
      parts: parts.map(([, part]) => part),
    },
    parts: parts.map(([name]) => name),
  };
}

/** The id of a task in the arguments of a tool. */
export const readTaskArgument = (raw: unknown): string =>
  parseFields(taskArguments, raw ?? {}, 'arguments').taskId;

/**
 * The call that sends a message.
 * @param returnImmediately the answer is the task as it was accepted
 */
export function sendCall(
  method: 'SendMessage' | 'SendStreamingMessage',
  { message, parts }: ToolMessage,
  returnImmediately = false,
): DecodedCall {
  try {
    return V1_0_CODEC.decode(method, { message, configuration: { historyLength: 0, returnImmediately } });
  } catch (error) {
    throw inArguments(error, parts);
  }
}

/** The error with the names of the tool's own arguments. */
export function inArguments(error: unknown, parts: readonly string[]): unknown {
  if (!(error instanceof ProtocolError)) return error;
  const rename = (text: string): string =>
    text
      .replaceAll(/message\.parts\[(\d+)\](\.raw)?/g, (whole, index: string, raw?: string) => {
        const name = parts[Number(index)];
        return name === undefined ? whole : `${name}${raw === undefined ? '' : '.bytes'}`;
      })
      .replaceAll(/message\.(taskId|contextId)/g, 'arguments.$1');
  const { violations } = error.detail;
  return new ProtocolError(error.kind, rename(error.message), {
    ...error.detail,
    ...(violations && { violations: violations.map((each) => ({ ...each, field: rename(each.field) })) }),
  });
}
