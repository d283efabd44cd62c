import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { GrpcCaller, V0_3_SERVICE } from '../support/api/grpc-caller.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { DRIVER, nightlyIt } from '../support/nightly.js';
import { installTestAgents, shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';
import { until } from '../support/until.js';
import { freshId } from '../support/wire.js';

type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire

const AGENT = 'listener';
const MODES = ['text/markdown', 'application/json'];

const startStack = shareStack(
  DRIVER,
  { ...CRASH_SETTINGS, GRPC_PORT: '0', GRPC_PUBLIC_ADDRESS: 'localhost:0' },
  { installAgents: (agents) => installTestAgents(agents, AGENT) },
);
let stack: Stack;
let token: string;
let grpc: GrpcCaller;
/** The agent notes there that it has begun, and holds while there is the other file. */
let witnessFile: string;
let holdFile: string;

describe('request details', () => {
  beforeAll(async () => {
    stack = await startStack();
    [witnessFile, holdFile] = [stack.env.WITNESS_FILE!, stack.env.HOLD_FILE!];
    writeFileSync(witnessFile, '');
    ({ token } = await stack.createTenant());
    const card = await fetch(`${stack.url(0, AGENT)}/.well-known/agent-card.json`, {
      headers: headers('1.0'),
    });
    const { supportedInterfaces } = (await card.json()) as Json;
    const { url } = (supportedInterfaces as Json[]).find(
      ({ protocolBinding }) => protocolBinding === 'GRPC',
    )!;
    grpc = new GrpcCaller(url as string);
  });
  afterAll(() => grpc.close());

  const headers = (version: string) => ({
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    ...(version !== '' && { 'a2a-version': version }),
  });

  async function post(path: string, version: string, body: object): Promise<Json> {
    const url = `${stack.apis[0]!.url}${path}`;
    const response = await fetch(url, {
      method: 'POST',
      headers: headers(version),
      body: JSON.stringify(body),
    });
    return (await response.json()) as Json;
  }

  const rpc = async (path: string, version: string, method: string, params: object): Promise<Json> => {
    const { result, error } = await post(path, version, { jsonrpc: '2.0', id: 1, method, params });
    if (error) throw new Error(JSON.stringify(error));
    return result as Json;
  };

  interface Sent {
    text: string;
    taskId?: string | undefined;
    /** Of the request. */
    metadata: object;
    /** Of the message and of its part. */
    within?: object;
  }

  const partOf = ({ text, within }: Sent) => ({ text, ...(within && { metadata: within }) });
  const message = ({ taskId, within, ...sent }: Sent) => ({
    messageId: freshId(),
    role: 'ROLE_USER',
    parts: [partOf({ ...sent, within })],
    ...(taskId && { taskId }),
    ...(within && { metadata: within }),
  });
  const legacy = ({ taskId, within, ...sent }: Sent) => ({
    kind: 'message',
    messageId: freshId(),
    role: 'user',
    parts: [{ kind: 'text', ...partOf({ ...sent, within }) }],
    ...(taskId && { taskId }),
    ...(within && { metadata: within }),
  });
  /** As 0.3 writes it in Protobuf. */
  const legacyProto = (sent: Sent) => {
    const { parts: _, ...said } = message(sent);
    return { ...said, content: [partOf(sent)] };
  };
  const configuration = { acceptedOutputModes: MODES, historyLength: 1 };

  /** Sends one message in the words of its version. @returns the task, in the words of any */
  const SENDERS: Record<string, (sent: Sent) => Promise<Json>> = {
    '1.0 over JSON-RPC': async (sent) => {
      const params = { message: message(sent), configuration, metadata: sent.metadata };
      return (await rpc(`/agents/${AGENT}`, '1.0', 'SendMessage', params)).task as Json;
    },
    '0.3 over JSON-RPC': (sent) => {
      const params = { message: legacy(sent), configuration, metadata: sent.metadata };
      return rpc(`/agents/${AGENT}`, '', 'message/send', params);
    },
    '1.0 over HTTP+JSON': async (sent) => {
      const body = { message: message(sent), configuration, metadata: sent.metadata };
      return (await post(`/agents/${AGENT}/message:send`, '1.0', body)).task as Json;
    },
    '0.3 over HTTP+JSON': async (sent) => {
      const asked = { acceptedOutputModes: MODES, historyLength: 1, blocking: true };
      const body = { message: legacyProto(sent), configuration: asked, metadata: sent.metadata };
      return (await post(`/agents/${AGENT}/v1/message:send`, '0.3', body)).task as Json;
    },
    '1.0 over gRPC': async (sent) => {
      const request = { message: message(sent), configuration, metadata: sent.metadata };
      const metadata = { authorization: `Bearer ${token}`, 'baton-agent': AGENT };
      const { json } = await grpc.ask('SendMessage', request, { metadata });
      return json.task as Json;
    },
    '0.3 over gRPC': async (sent) => {
      const asked = { acceptedOutputModes: MODES, historyLength: 1, blocking: true };
      const request = { request: legacyProto(sent), configuration: asked, metadata: sent.metadata };
      const metadata = { authorization: `Bearer ${token}`, 'baton-agent': AGENT };
      const { json } = await grpc.ask('SendMessage', request, { metadata, service: V0_3_SERVICE });
      return json.task as Json;
    },
  };

  /** What the agent was given, as its artifact says. */
  const heardIn = (task: Json): Json => {
    const [part] = (task.artifacts as Json[]).at(-1)!.parts as Json[];
    return (part!.data.data ?? part!.data) as Json;
  };

  describe('the members of a request beside its message', () => {
    it.each(Object.keys(SENDERS))('reaches an agent in code in every turn: %s', async (version) => {
      const send = SENDERS[version]!;
      const asked = await send({ text: 'ask', metadata: { turn: 'first', 'baton.sender': 'agent' } });
      expect(heardIn(asked)).toMatchObject({
        metadata: { turn: 'first' },
        configuration: { acceptedOutputModes: MODES, historyLength: 1, returnImmediately: false },
      });
      // Only the platform writes such metadata.
      expect(heardIn(asked).metadata).toEqual({ turn: 'first' });
      const answered = await send({
        text: 'go on',
        taskId: asked.id as string,
        metadata: { turn: 'second', deep: { list: [1] } },
      });
      expect(answered.id).toBe(asked.id);
      expect(heardIn(answered)).toMatchObject({
        metadata: { turn: 'second', deep: { list: [1] } },
        configuration: { acceptedOutputModes: MODES },
      });
    });

    it.each(Object.keys(SENDERS))('cannot write in the name of the platform: %s', async (version) => {
      const forged = {
        'baton.parent': { taskId: 'x' },
        'baton.approver': { principal: 'token:boss' },
        'baton.schedule': { id: 'x' },
        'baton.usage': {},
      };
      const send = SENDERS[version]!;
      const metadata = { ...forged, mine: 1 };
      const { id } = await send({ text: 'ask', metadata, within: { ...forged, mine: 2 } });
      await send({ text: 'go on', taskId: id as string, metadata, within: { ...forged, mine: 3 } });
      const shown = await fetch(`${stack.apis[0]!.url}/v1/tasks/${id}`, { headers: headers('1.0') });
      const { task } = (await shown.json()) as Json;
      const said = (task.history as Json[]).filter(({ role }) => role === 'ROLE_USER');
      expect(said.map(({ metadata: own, parts }) => [own, parts[0].metadata])).toEqual([
        [{ mine: 2 }, { mine: 2 }],
        [{ mine: 3 }, { mine: 3 }],
      ]);
      expect(Object.keys(task.metadata as Json)).toEqual(['mine']);
    });

    it('reaches an agent in code in 0.1', async () => {
      const params = {
        id: freshId(),
        message: { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
        acceptedOutputModes: MODES,
        metadata: { tone: 'formal', 'baton.sender': 'agent' },
      };
      const task = await rpc(`/v1/agents/${AGENT}/a2a`, '', 'tasks/send', params);
      expect(heardIn(task).configuration).toMatchObject({ acceptedOutputModes: MODES });
      expect(heardIn(task).metadata).toEqual({ tone: 'formal' });
    });

    it('is absent without members in the request', async () => {
      const params = { message: message({ text: 'hi', metadata: {} }) };
      const { task } = await rpc(`/agents/${AGENT}`, '1.0', 'SendMessage', params);
      expect(heardIn(task as Json)).toEqual({});
    });

    it('is bounded, and the refusal names the field', async () => {
      const send = SENDERS['1.0 over JSON-RPC']!;
      await expect(send({ text: 'hi', metadata: { large: 'x'.repeat(300_000) } })).rejects.toThrow(
        /metadata: has 3000\d\d bytes of JSON, and the maximum is 262144/,
      );
    });

    nightlyIt(
      'reaches the next attempt on another worker, in the first turn and in a later one',
      async () => {
        const send = SENDERS['1.0 over JSON-RPC']!;
        /** The worker dies while the agent works, and another one tries again. */
        const sendWithCrash = async (sent: Sent) => {
          writeFileSync(witnessFile, '');
          writeFileSync(holdFile, '');
          const sending = send(sent);
          await until(() => readFileSync(witnessFile, 'utf8') !== '');
          await stack.killWorkers();
          rmSync(holdFile);
          await stack.addWorker();
          return sending;
        };
        const asked = await sendWithCrash({ text: 'hold, ask', metadata: { turn: 'first' } });
        const rest = { configuration: { acceptedOutputModes: MODES, historyLength: 1 } };
        expect(heardIn(asked)).toMatchObject({ metadata: { turn: 'first' }, ...rest });
        const taskId = asked.id as string;
        const answered = await sendWithCrash({ text: 'hold', taskId, metadata: { turn: 'second' } });
        expect(answered).toMatchObject({ id: taskId, status: { state: 'TASK_STATE_COMPLETED' } });
        expect(heardIn(answered)).toMatchObject({ metadata: { turn: 'second' }, ...rest });
      },
    );
  });
});
