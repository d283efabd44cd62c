import { JsonRpcTransportFactory, type Transport } from '@a2a-js/sdk/client';
import { LegacyJsonRpcTransport } from '@a2a-js/sdk/compat/v0_3/client';

const ENDPOINT = 'http://localhost/agents/echo';

/** An unmodified SDK client of either generation over a `fetch` of ours: `answer` gets each request's body. */
export function connectSdkClient(
  version: '1.0' | '0.3',
  answer: (body: string) => Response,
): Promise<Transport> {
  const fetchImpl: typeof fetch = (_url, init) => Promise.resolve(answer(init?.body as string));
  if (version === '0.3')
    return Promise.resolve(new LegacyJsonRpcTransport({ endpoint: ENDPOINT, fetchImpl }));
  return new JsonRpcTransportFactory({ fetchImpl }).create(ENDPOINT, {} as never);
}
