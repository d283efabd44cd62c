import type { Mishap, RemoteAgentOptions } from '../support/remote-agent/remote-agent.js';
import type { Quirk } from './quirk.js';

/** The versions and bindings of remote agents. */
export const REMOTE_PEERS = {
  '1.0': { version: '1.0' },
  '0.3': { version: '0.3' },
  '1.0 HTTP+JSON': { version: '1.0', binding: 'HTTP+JSON' },
} as const satisfies Record<string, RemoteAgentOptions>;

export type RemotePeer = keyof typeof REMOTE_PEERS;

/** A call of a remote agent, in the words of no version. */
export type RemoteCall = 'card' | 'stream' | 'send' | 'get' | 'subscribe';

/** What a remote agent does. In `caller`, `<host>`, `<path>` and `<method>` stand for the address and the method of the call. */
export interface RemoteQuirk extends Quirk {
  on: readonly RemotePeer[];
  /** Which of its calls go wrong, one after the other. */
  mishaps: readonly (readonly [RemoteCall, Mishap])[];
  /** The text of the message. Default: the agent repeats it. */
  says?: string;
  /** Whether its card says that it streams. Default: true. */
  streaming?: boolean;
  /** Further settings of the agent. */
  config?: object;
}

const ALL = Object.keys(REMOTE_PEERS) as RemotePeer[];
const RPC: RemotePeer[] = ['1.0', '0.3'];
const PAGE = { type: 'text/html; charset=utf-8', body: '<!doctype html><title>Sign in</title>' };
const NOT_FOUND = { status: 404, body: '{"detail": "Not Found"}' };

export const REMOTE_QUIRKS: readonly RemoteQuirk[] = [
  {
    when: 'has no card at the URL (404)',
    on: ALL,
    mishaps: [['card', NOT_FOUND]],
    task: 'failed',
    calls: 0,
    caller:
      'The agent at <host> answered with HTTP 404: check the URL in this agent\'s settings, and the url of the interface in the agent\'s card. At /.well-known/agent-card.json it said "Not Found"',
  },
  {
    when: 'has a web page at the URL of its card',
    on: ALL,
    mishaps: [['card', PAGE]],
    task: 'failed',
    calls: 0,
    caller:
      'The agent at <host> answered at /.well-known/agent-card.json with a web page ("Sign in"): check the URL, and add headers if the agent is behind a sign-in',
  },
  {
    when: 'has other JSON at the URL of its card',
    on: ALL,
    mishaps: [['card', { body: '{"name": "a service"}' }]],
    task: 'failed',
    calls: 0,
    caller: 'What lies at http://<host>/.well-known/agent-card.json is not the card of an A2A agent',
  },
  {
    when: 'redirects the request of its card to another server',
    on: ALL,
    mishaps: [['card', { status: 302, location: 'https://login.example.com/' }]],
    task: 'failed',
    calls: 0,
    caller: '"<host>" redirects to https://login.example.com, which is not followed; write that URL instead',
  },
  {
    when: 'answers the message with status 404, as at a wrong path',
    on: ALL,
    mishaps: [['stream', NOT_FOUND]],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> answered with HTTP 404: check the URL in this agent\'s settings, and the url of the interface in the agent\'s card. At <path> it said "Not Found"',
  },
  {
    when: 'answers the message with status 405',
    on: ALL,
    mishaps: [['stream', { status: 405, body: '{"detail": "Method Not Allowed"}' }]],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> answered with HTTP 405: it takes no such calls there: check the url of the interface in the agent\'s card. At <path> it said "Method Not Allowed"',
  },
  {
    when: 'answers the message with status 401',
    on: ALL,
    mishaps: [['stream', { status: 401, body: '{"error": "invalid_token"}' }]],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> answered with HTTP 401: check the headers and secrets in this agent\'s settings. At <path> it said "invalid_token"',
  },
  {
    when: 'answers the message with status 403',
    on: ALL,
    mishaps: [['stream', { status: 403, type: 'text/plain', body: 'not for you' }]],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> answered with HTTP 403: check the headers and secrets in this agent\'s settings, and what they may do at the agent. At <path> it said "not for you"',
  },
  {
    when: 'answers the message with status 415',
    on: ALL,
    mishaps: [['stream', 415]],
    task: 'failed',
    calls: 1,
    caller:
      "The agent at <host> answered with HTTP 415: it takes no JSON there: check the url of the interface in the agent's card. The path was <path>",
  },
  {
    when: 'answers the message with status 429 once',
    on: ALL,
    mishaps: [['stream', 429]],
    task: 'completed',
    calls: 2,
    caller: 'hi',
  },
  {
    when: 'answers the message with status 503 once',
    on: ALL,
    mishaps: [['stream', { status: 503, ...PAGE }]],
    task: 'completed',
    calls: 2,
    caller: 'hi',
  },
  {
    when: 'answers the message with status 500',
    on: ALL,
    mishaps: [['stream', { status: 500, type: 'text/plain', body: 'Internal Server Error' }]],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> answered with HTTP 500. At <path> it said "Internal Server Error". The message is not sent again, because the agent may have taken it',
  },
  {
    when: 'answers the message with a redirect to another server',
    on: ALL,
    mishaps: [['stream', { status: 307, location: 'https://login.example.com/' }]],
    task: 'failed',
    calls: 1,
    caller: '"<host>" redirects to https://login.example.com, which is not followed; write that URL instead',
  },
  {
    when: 'answers the message with status 200 and a web page',
    on: ALL,
    mishaps: [['stream', PAGE]],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> answered at <path> with a web page ("Sign in"): check the URL, and add headers if the agent is behind a sign-in. The message is not sent again, because the agent may have taken it',
  },
  {
    when: 'answers the message with `application/x-ndjson`',
    on: ALL,
    mishaps: [['stream', { type: 'application/x-ndjson', body: '{"result": {}}\n' }]],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> answered at <path> with application/x-ndjson instead of text/event-stream ("{"result": {}}"): correct its server, or choose another interface with version and binding. The message is not sent again, because the agent may have taken it',
  },
  {
    when: 'answers a streaming call with the plain result',
    on: ALL,
    mishaps: [['stream', 'unary']],
    task: 'completed',
    calls: 1,
    caller: 'hi',
  },
  {
    when: 'answers a streaming call with a plain message',
    on: ALL,
    mishaps: [['stream', 'unary']],
    says: 'reply',
    task: 'completed',
    calls: 1,
    caller: 'You said: reply',
  },
  {
    when: 'answers a streaming call with `Text/Event-Stream; charset=UTF-8`',
    on: ALL,
    mishaps: [['stream', 'capitals']],
    task: 'completed',
    calls: 1,
    caller: 'hi',
  },
  {
    when: 'promises streams and does not know the method',
    on: RPC,
    mishaps: [['stream', { error: -32601 }]],
    task: 'completed',
    calls: 2,
    caller: 'hi',
  },
  {
    when: 'answers with the id of another request',
    on: RPC,
    mishaps: [['stream', 'foreign id']],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> gave an answer that is not A2A: JSON-RPC response ID mismatch in SSE event. Expected 1, got another. The message is not sent again, because the agent may have taken it',
  },
  {
    when: 'answers a plain call with the id of another request',
    on: RPC,
    streaming: false,
    mishaps: [['send', 'foreign id']],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> gave an answer that is not A2A: JSON-RPC response ID mismatch for method <method>. Expected 1, got another. The message is not sent again, because the agent may have taken it',
  },
  {
    when: 'ends its stream without an event',
    on: ALL,
    mishaps: [['stream', 'empty stream']],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> ended its answer without a word. The message is not sent again, because the agent may have taken it',
  },
  {
    when: 'ends its stream in the middle of an event',
    on: ALL,
    mishaps: [['stream', 'half event']],
    says: 'count 3',
    task: 'completed',
    calls: 1,
    caller: '1 2 3 ',
  },
  {
    when: 'sends the last chunk of an artifact without parts',
    on: ALL,
    mishaps: [['stream', 'no parts']],
    says: 'count 3',
    task: 'completed',
    calls: 1,
    caller: '1 2 3 ',
  },
  {
    when: 'sends events that do not name their task',
    on: ALL,
    mishaps: [['stream', 'no ids']],
    says: 'count 3',
    task: 'completed',
    calls: 1,
    caller: '1 2 3 ',
  },
  {
    when: 'sends the events of another task in between',
    on: ALL,
    mishaps: [['stream', 'events of others']],
    says: 'count 3',
    task: 'completed',
    calls: 1,
    caller: '1 2 3 ',
  },
  {
    when: 'answers with an error that is only a text',
    on: RPC,
    streaming: false,
    mishaps: [['send', { body: '{"jsonrpc": "2.0", "id": 1, "error": "The scales are broken"}' }]],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> answered with the error -32603: The scales are broken. The message is not sent again, because the agent may have taken it',
  },
  {
    when: 'answers with the error -32602',
    on: RPC,
    mishaps: [['stream', { error: -32602 }]],
    task: 'failed',
    calls: 1,
    caller: 'The agent at <host> answered with the error -32602: The scales are broken',
  },
  {
    when: 'answers with the error -32603',
    on: RPC,
    mishaps: [['stream', { error: -32603 }]],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> answered with the error -32603: The scales are broken. The message is not sent again, because the agent may have taken it',
  },
  {
    when: 'answers with the error -32009',
    on: RPC,
    mishaps: [['stream', { error: -32009 }]],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> answered with the error -32009: The scales are broken (set version of this agent to one that it supports)',
  },
  {
    when: 'cuts the connection before it answers, once',
    on: ALL,
    mishaps: [['stream', 'cut before']],
    task: 'completed',
    calls: 2,
    caller: 'hi',
  },
  {
    when: 'cuts the connection before it answers, with `repeat: never`',
    on: ALL,
    mishaps: [['stream', 'cut before']],
    config: { repeat: 'never' },
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> could not be reached: it closed the connection. It may have got the message, but it is not known: with repeat: never it is not sent again',
  },
  {
    when: 'answers a plain call with a web page',
    on: ALL,
    streaming: false,
    mishaps: [['send', PAGE]],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> answered at <path> with a web page ("Sign in"): check the URL, and add headers if the agent is behind a sign-in. The message is not sent again, because the agent may have taken it',
  },
  {
    when: 'answers a plain call with an empty body',
    on: ALL,
    streaming: false,
    mishaps: [['send', {}]],
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> gave an answer that is not A2A: Unexpected end of JSON input. The message is not sent again, because the agent may have taken it',
  },
  {
    when: 'breaks its stream, and has a web page where it is subscribed to',
    on: ALL,
    mishaps: [
      ['stream', 'half event'],
      ['get', 503],
      ['subscribe', PAGE],
    ],
    says: 'count 3',
    task: 'completed',
    calls: 1,
    caller: '1 2 3 ',
  },
  {
    when: 'breaks its stream, and answers with a web page when it is asked for the task',
    on: ALL,
    mishaps: [['stream', 'half event'], ...Array.from({ length: 4 }, () => ['get', PAGE] as const)],
    says: 'count 3',
    task: 'failed',
    calls: 1,
    caller:
      'The agent at <host> answered at <path> with a web page ("Sign in"): check the URL, and add headers if the agent is behind a sign-in',
  },
];
