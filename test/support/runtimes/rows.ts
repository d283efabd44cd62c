import type { RuntimeName } from '@baton/agents';
import { PATIENT } from '../mcp-server/mcp-server.js';
import type { ModelRequest, Reply } from '../model-provider/model-provider.js';

/** What an agent is sent. */
export interface Said {
  text: string;
  metadata?: object;
}

/** One runtime: an agent of it, and what makes that agent do what the contract is about. */
export interface RuntimeRow {
  agent: string;
  /** Its definition, if it is one of the tenant's own. */
  definition?: (servers: Record<'provider' | 'mcp' | 'remote', { url: string }>) => object;
  /** Says something and then, while it is held, no more. */
  stream?: Said;
  /** What is said when nothing holds it. */
  reply: { said: Said; text: string | RegExp };
  /** The same, where `stream` is held by time alone, with more of it. */
  long?: Said;
  /** Says nothing and does not end. */
  wait?: Said;
  /** Asks; then it is answered, and its reply is this. */
  ask?: { said: Said; answer: string; reply: string };
  /** One event of more than 2,500 bytes. */
  large: Said;
  /** More than five events. */
  many?: Said;
}

const COUNTED = '1 2 3 4 ';
const LONG = 'long '.repeat(1_000);
const count = { text: 'count 4' };
const textMessage = (text: string): Said => ({ text });

export const RUNTIME_ROWS: Readonly<Record<RuntimeName, RuntimeRow>> = {
  echo: {
    agent: 'echo',
    // Longer than a busy machine keeps the CPU from a test.
    stream: { text: 'a ', metadata: { echo: { chunks: 6, delayMs: 5_000 } } },
    long: { text: 'a ', metadata: { echo: { chunks: 100_000, delayMs: 300 } } },
    reply: { said: { text: 'a ', metadata: { echo: { chunks: 6 } } }, text: 'a '.repeat(6) },
    wait: { text: 'a', metadata: { echo: { delayMs: 300_000 } } },
    ask: { said: { text: 'a', metadata: { echo: { askInput: true } } }, answer: 'b', reply: 'b' },
    large: textMessage(LONG),
    many: { text: 'a', metadata: { echo: { chunks: 20 } } },
  },
  executor: {
    agent: 'pacer',
    stream: count,
    reply: { said: count, text: COUNTED },
    wait: textMessage('wait'),
    ask: { said: textMessage('ask'), answer: 'b', reply: 'b' },
    large: textMessage(LONG),
    many: textMessage('count 20'),
  },
  // Without a model its whole answer is one event: the list of agents.
  index: {
    agent: 'index',
    reply: { said: textMessage('hello'), text: /- far .*Lives elsewhere/ },
    large: textMessage('hello'),
  },
  llm: {
    agent: 'model',
    definition: ({ provider, mcp }) => ({
      name: 'model',
      description: `Thinks. ${'A lot. '.repeat(500)}`,
      runtime: 'llm',
      config: {
        model: 'openai-compatible/model-1',
        baseUrl: provider.url,
        tools: { mcp: [{ ...PATIENT, name: 'shop', url: mcp.url, approval: 'all' }] },
      },
    }),
    stream: count,
    reply: { said: count, text: COUNTED },
    wait: textMessage('wait'),
    ask: { said: textMessage('ask'), answer: 'yes', reply: 'ordered' },
    large: textMessage('large'),
    many: textMessage('many'),
  },
  'remote-a2a': {
    agent: 'far',
    definition: ({ remote }) => ({
      name: 'far',
      description: 'Lives elsewhere',
      runtime: 'remote-a2a',
      config: { card: remote.url },
    }),
    stream: count,
    reply: { said: count, text: COUNTED },
    wait: textMessage('wait'),
    ask: { said: textMessage('ask'), answer: 'b', reply: 'b' },
    large: textMessage(LONG),
    many: textMessage('count 20'),
  },
};

/**
 * The model's answer to its last input.
 * @param pace see `Reply`; it is for what must be many events, because words that come within a moment are one
 */
export function modelReply({ body }: ModelRequest, isHeld: boolean, pace?: Reply['pace']): Reply {
  const last = body.messages.at(-1) as { role: string; content: unknown };
  if (last.role === 'tool') return { text: 'ordered' };
  const input = JSON.stringify(last.content);
  if (input.includes('ask')) return { calls: [{ name: 'shop_order', input: {} }] };
  if (input.includes('wait')) return { text: 'never', fault: { kind: 'stall', after: 1 } };
  if (input.includes('large')) return { text: LONG };
  if (input.includes('many')) return { text: 'abcdefgh'.split(''), pace };
  const text = ['1 ', '2 ', '3 ', '4 '];
  return isHeld ? { text, fault: { kind: 'stall', after: 2 } } : { text };
}
