import { Button, Code, CopyButton, Group, List, Stack, Tabs, Text, Title } from '@mantine/core';
import { Suspense } from 'react';
import { curlOf, type ReceivedFrame, type RecordedExchange } from '../../a2a/exchange';
import type { TaskState } from '../../a2a/task-states';
import { lazyPage } from '../../components/lazy-page';
import type { Trace as TraceType } from '../tasks/task-trace';
import type { ReceivedAnswer } from './received-answer';

/** Its code is loaded with the first answer. */
const Trace = lazyPage(() => import('../tasks/task-trace'), 'Trace') as unknown as typeof TraceType;

/** The trace of the task, and the bytes on the wire. */
export function WireView({
  answer: { exchange, frames, count, events, summary },
}: {
  answer: ReceivedAnswer;
}) {
  const { taskId, taskState } = summary;
  return (
    <Tabs defaultValue="trace" keepMounted={false}>
      <Tabs.List aria-label="What went over the wire">
        <Tabs.Tab value="trace">Trace</Tabs.Tab>
        <Tabs.Tab value="frames">Frames ({count})</Tabs.Tab>
        <Tabs.Tab value="events">Events of the SDK</Tabs.Tab>
        <Tabs.Tab value="headers">Headers</Tabs.Tab>
        <Tabs.Tab value="curl">curl</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="trace" pt="sm">
        {taskId === undefined ? (
          <Text size="sm">Send a message: its trace grows here.</Text>
        ) : (
          <Suspense>
            <Trace task={{ task_id: taskId, state: taskState as TaskState }} />
          </Suspense>
        )}
      </Tabs.Panel>
      <Tabs.Panel value="frames" pt="sm">
        <Frames frames={frames} count={count} />
      </Tabs.Panel>
      <Tabs.Panel value="events" pt="sm">
        <Code block tabIndex={0} mah="36rem">
          {events.map((event) => JSON.stringify(event)).join('\n')}
        </Code>
      </Tabs.Panel>
      <Tabs.Panel value="headers" pt="sm">
        {exchange && <Headers exchange={exchange} />}
      </Tabs.Panel>
      <Tabs.Panel value="curl" pt="sm">
        {exchange && <Curl exchange={exchange} />}
      </Tabs.Panel>
    </Tabs>
  );
}

function Frames({ frames, count }: { frames: ReceivedFrame[]; count: number }) {
  return (
    <Stack gap="xs">
      {count > frames.length && (
        <Text size="sm">
          The last {frames.length} of {count} frames:
        </Text>
      )}
      <List
        listStyleType="none"
        size="sm"
        aria-label="Frames"
        // Items are as wide as their text otherwise, and a long frame leaves the window.
        styles={{ itemWrapper: { display: 'block' }, itemLabel: { display: 'block' } }}
      >
        {frames.map(({ id, data, afterMs }, i) => (
          <List.Item key={count - frames.length + i} data-event-id={id}>
            <Text size="xs" c="dimmed">
              {id === undefined ? 'no id' : `id: ${id}`} · {Math.round(afterMs)} ms
            </Text>
            <Code block tabIndex={0} mah="12rem">
              {data}
            </Code>
          </List.Item>
        ))}
      </List>
    </Stack>
  );
}

const headerLines = (headers: [string, string][]): string =>
  headers.map(([name, value]) => `${name}: ${value}`).join('\n');

function Headers({ exchange }: { exchange: RecordedExchange }) {
  const { method, url, requestHeaders, body, status, responseHeaders } = exchange;
  return (
    <Stack gap="xs">
      <Title order={2} size="h5">
        Request
      </Title>
      <Code block tabIndex={0}>{`${method} ${url}\n${headerLines(requestHeaders)}\n\n${body ?? ''}`}</Code>
      <Title order={2} size="h5">
        Answer
      </Title>
      <Code block tabIndex={0}>{`${status}\n${headerLines(responseHeaders)}`}</Code>
    </Stack>
  );
}

function Curl({ exchange }: { exchange: RecordedExchange }) {
  const command = curlOf(exchange);
  return (
    <Stack gap="xs">
      <Code block tabIndex={0} aria-label="The request as a command">
        {command}
      </Code>
      <Group>
        <CopyButton value={command}>
          {({ copied, copy }) => (
            <Button size="xs" variant="default" onClick={copy}>
              {copied ? 'Copied' : 'Copy as curl'}
            </Button>
          )}
        </CopyButton>
        <Text size="sm">Set BATON_TOKEN to your token first.</Text>
      </Group>
    </Stack>
  );
}
