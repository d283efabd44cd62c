import { textPart } from '@baton/a2a';
import { Metrics } from '@baton/telemetry';
import { Outbound } from '@baton/outbound';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { userMessage } from '../../../../../test/support/agents/turns.js';
import { PromptReader } from './prompt-reader.js';

const never = new AbortController().signal;

describe('files of a prompt', () => {
  const outbound = new Outbound({ outboundAllow: ['127.0.0.1'] }, new Metrics());
  let server: Server;
  let served: { type: string; bytes: Buffer };
  beforeAll(async () => {
    server = createServer((_, response) =>
      response.writeHead(200, { 'content-type': served.type }).end(served.bytes),
    );
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  afterAll(async () => {
    server.close();
    await outbound.onApplicationShutdown();
  });

  const read = async (content: object, mediaType: string) => {
    const part = { ...textPart(''), content, mediaType } as ReturnType<typeof textPart>;
    const { content: read } = await new PromptReader(outbound).prompt(userMessage([part]), never);
    return read as unknown;
  };
  const sent = (bytes: Buffer, mediaType: string) => read({ $case: 'raw', value: bytes }, mediaType);
  const fetched = (type: string, bytes: Buffer, mediaType = '') => {
    served = { type, bytes };
    return read(
      { $case: 'url', value: `http://127.0.0.1:${(server.address() as AddressInfo).port}/x` },
      mediaType,
    );
  };
  const LATIN = Buffer.from([0xe4]);

  it('are images in capitals and with parameters', async () => {
    const image = [{ type: 'image', mediaType: 'image/png' }];
    expect(await sent(Buffer.from('PNG'), 'IMAGE/PNG; q=1')).toMatchObject(image);
    expect(await fetched('Image/PNG', Buffer.from('PNG'))).toMatchObject(image);
  });

  it('are text where JSON names its charset', async () => {
    expect(await sent(Buffer.from('{"a":1}'), 'Application/JSON; charset=utf-8')).toEqual([
      { type: 'text', text: '{"a":1}' },
    ]);
  });

  it.each([
    ['text/plain; charset=latin1', LATIN],
    ['text/csv;charset="UTF-16"', Buffer.from([0xfe, 0xff, 0x00, 0xe4])],
  ])('are decoded in the charset of %s', async (type, bytes) => {
    const text = [{ type: 'text', text: 'ä' }];
    expect(await sent(bytes, type)).toEqual(text);
    expect(await fetched(type, bytes)).toEqual(text);
    expect(await fetched(type, bytes, type.split(';')[0]?.toUpperCase())).toEqual(text);
  });
});
