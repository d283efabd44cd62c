import { Button, Group } from '@mantine/core';
import { useState } from 'react';
import type { Message } from '../../a2a/artifacts';
import { SERVER_URL } from '../../base';
import { Section } from '../../components/section';
import { useAgentNames } from '../../components/agent-names';
import { curlOf, HIDDEN_TOKEN } from '../../a2a/exchange';
import type { LogEvent } from './task-log';
import type { Task } from './task-words';

/** Calls that send the message of the task once more, for a terminal and for a program. The token is not in them. */
export function Copies({ task, first }: { task: Task; first: LogEvent | undefined }) {
  const names = useAgentNames();
  const sent = first?.task?.history?.[0];
  if (!sent) return null;
  const url = `${SERVER_URL}/agents/${names.get(task.agent_id) ?? task.agent_id}/`;
  const { role, parts, metadata } = sent;
  // A message of the same id would be the same message.
  const message = () => ({ messageId: crypto.randomUUID(), role, parts, metadata });
  return (
    <Section title="Send it from a program">
      <Group>
        <CopyButton name="curl" text={() => curlFor(url, message())} />
        <CopyButton name="SDK code" text={() => sdkCodeFor(url, message())} />
      </Group>
    </Section>
  );
}

const curlFor = (url: string, message: Message): string =>
  curlOf({
    method: 'POST',
    url,
    requestHeaders: [
      ['content-type', 'application/json'],
      ['a2a-version', '1.0'],
      ['authorization', HIDDEN_TOKEN],
    ],
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
  });

/** As in docs/calling/clients.md. */
const sdkCodeFor = (url: string, message: Message): string =>
  `// npm install @a2a-js/sdk
import { Message } from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';

const authorization = \`Bearer \${process.env.BATON_TOKEN}\`;
const fetchImpl = (url, init) => fetch(url, { ...init, headers: { ...init?.headers, authorization } });
const factory = new ClientFactory({
  transports: [new JsonRpcTransportFactory({ fetchImpl })],
  cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
});
const client = await factory.createFromUrl(${JSON.stringify(url)});
const message = Message.fromJSON(${JSON.stringify(message, undefined, 2)});
console.log(JSON.stringify(await client.sendMessage({ message }), undefined, 2));
`;

function CopyButton({ name, text }: { name: string; text: () => string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text());
    setCopied(true);
  };
  return (
    <Button variant="default" size="xs" onClick={() => void copy()}>
      {isCopied ? `Copied ${name}` : `Copy as ${name}`}
    </Button>
  );
}
