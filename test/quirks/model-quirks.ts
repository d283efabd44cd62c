import type { Reply } from '../support/model-provider/reply.js';
import type { Quirk } from './quirk.js';

/** The interfaces of model providers, each with the settings of an agent that uses it. */
export const MODEL_PEERS = {
  openai: { model: 'openai/gpt-5-mini' },
  'openai with api: chat': { model: 'openai/gpt-5-mini', api: 'chat' },
  'openai-compatible': { model: 'openai-compatible/m', key: 'mine' },
  anthropic: { model: 'anthropic/claude-sonnet-4-5' },
  google: { model: 'google/gemini-2.5-flash' },
} as const;

export type ModelPeer = keyof typeof MODEL_PEERS;

/**
 * What a model provider does. In `caller`, `<provider>`, `<model>` and `<key>` stand for the names of the provider, of
 * the model, and of the secret with the key.
 */
export interface ModelQuirk extends Quirk {
  on: readonly ModelPeer[];
  /** What it answers, one after the other. */
  replies: readonly Reply[] | ((peer: ModelPeer) => readonly Reply[]);
  /** Inputs of the tool `weather` that are executed. */
  executed?: readonly object[];
  /** Further settings of the agent. */
  config?: object;
}

const ALL = Object.keys(MODEL_PEERS) as ModelPeer[];
const HELLO: Reply = { text: ['Hel', 'lo.'] };

export const MODEL_QUIRKS: readonly ModelQuirk[] = [
  {
    when: 'sends comments between the events, to keep the connection open',
    on: ALL,
    replies: [{ ...HELLO, wire: (events) => events.flatMap((event) => [': keep-alive\n\n', event]) }],
    task: 'completed',
    calls: 1,
    caller: 'Hello.',
  },
  {
    when: 'answers with status 429 and Retry-After',
    on: ALL,
    replies: [{ status: 429, headers: { 'retry-after-ms': '20' } }, HELLO],
    task: 'completed',
    calls: 2,
    caller: 'Hello.',
  },
  {
    when: 'breaks off in the middle of its answer',
    on: ALL,
    replies: [{ ...HELLO, fault: { kind: 'break', after: 2 } }, HELLO],
    task: 'completed',
    calls: 2,
    caller: 'Hello.',
  },
  {
    when: 'answers with status 401',
    on: ALL,
    replies: [{ status: 401, error: 'no such key' }],
    task: 'failed',
    calls: 1,
    caller: '<provider> refused the key (401): check the secret "<key>".',
  },
];
