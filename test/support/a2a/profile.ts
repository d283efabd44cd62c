import type { AnswerContext, Codec, Frame } from '../../../libs/a2a/src/codecs/codec.js';
import { ERRORS } from '../../../libs/a2a/src/errors.js';
import { ProtocolError } from '../../../libs/a2a/src/protocol-error.js';
import type { EventPayload } from '../../../libs/a2a/src/artifact-fold.js';
import { encodeRpcError } from '../../../libs/a2a/src/json-rpc.js';
import { type Message, Role, type Task, TaskState } from '../../../libs/a2a/src/model.js';
import type { DecodedCall } from '../../../libs/a2a/src/operation.js';
import type { Profile } from '../../../libs/a2a/src/profiles/profile.js';
import { textPart } from '../../../libs/a2a/src/reply.js';
import { sampleMessage, sampleTask } from './samples.js';

export const CONTEXT: AnswerContext = { agentId: 'index' };

/** The codec of a method; fails the test if the profile has none. */
export function codecOf(profile: Profile, method: string): Codec {
  const codec = profile.codecFor(method);
  if (!codec) throw new Error(`${profile.name} has no ${method}`);
  return codec;
}

export const decode = (profile: Profile, method: string, params: unknown): DecodedCall =>
  codecOf(profile, method).decode(method, params);

/** What a profile's clients read of a log: its events in order, numbered from 1. */
export function framesOf(
  profile: Profile,
  method: string,
  log: EventPayload[],
  context: AnswerContext = CONTEXT,
): Frame[] {
  const encode = codecOf(profile, method).streamEncoder(context);
  const frames = log.flatMap((payload, i) => encode({ sequence: i + 1, payload }));
  return JSON.parse(JSON.stringify(frames)) as Frame[];
}

/** The JSON of a unary answer. */
export const resultOf = (
  profile: Profile,
  method: 'tasks/get' | 'tasks/send' | 'message/send',
  task: Task,
  context: AnswerContext = CONTEXT,
): Record<string, unknown> => {
  const codec = codecOf(profile, method);
  const result =
    method === 'tasks/get'
      ? codec.encodeResult('getTask', task, context)
      : codec.encodeResult('sendMessage', { $case: 'task', value: task }, context);
  return JSON.parse(JSON.stringify(result)) as Record<string, unknown>;
};

export const replyMessage = (text: string, members: Partial<Message> = {}): Message =>
  sampleMessage({ messageId: 'm-2', role: Role.ROLE_AGENT, parts: [textPart(text)], ...members });

export const taskIn = (state: TaskState, members: Partial<Task> = {}, message?: Message): Task =>
  sampleTask({
    status: { state, message, timestamp: '2026-01-31T12:00:00.000Z' },
    ...(message && { history: [sampleMessage(), message] }),
    ...members,
  });

export const opening = (members: Partial<Task> = {}): EventPayload => ({
  $case: 'task',
  value: sampleTask(members),
});

/** The ProtocolError that `act` throws. */
export function errorOf(act: () => unknown): ProtocolError {
  try {
    act();
  } catch (error) {
    if (error instanceof ProtocolError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

/** An error as a profile writes it. */
export function wireOf(
  profile: Profile,
  error: ProtocolError,
): { code: number; http: number; message: string; data?: unknown } {
  const http = profile.errors[error.kind]?.http ?? ERRORS[error.kind].http;
  const { code, message, data } = encodeRpcError(error, profile.errors, '0.3');
  return { code, http, message, data };
}

/** The field of an `invalid-params` error. Checks that the message names the field, too, with its description. */
export function refusalOf(act: () => unknown): string | undefined {
  try {
    act();
  } catch (error) {
    if (!(error instanceof ProtocolError) || error.kind !== 'invalid-params') throw error;
    const [violation] = error.detail.violations ?? [];
    if (!violation || error.message !== `${violation.field}: ${violation.description}`) throw error;
    return violation.field;
  }
  return undefined;
}
