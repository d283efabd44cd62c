import {
  Button,
  Code,
  CopyButton,
  FileButton,
  Grid,
  Group,
  List,
  SegmentedControl,
  Select,
  Stack,
  Switch,
  Tabs,
  Text,
  Textarea,
  TextInput,
  Title,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { type ReactNode, useMemo, useRef, useState } from 'react';
import { ErrorView } from '../../components/error-view';
import { Page } from '../../components/page';
import { useCaller } from '../../session/caller';
import { agentsQuery } from '../agents/agents-api';
import type { AgentCall } from './agent-call';
import { BINDINGS, type Draft, type DraftFile, emptyDraft, faultsOf, KeptDrafts, VERSIONS } from './draft';
import { curlOf, type RecordedExchange, type ReceivedFrame } from './exchange';

const route = getRouteApi('/app/playground');
/** Frames that are shown. More are counted. */
const MAX_FRAMES = 500;
const DEFAULT_AGENT = 'echo';

type CallState = 'idle' | 'running' | 'cut' | 'done' | 'failed';

/** What has come in so far. */
interface ReceivedAnswer {
  state: CallState;
  exchange: RecordedExchange | undefined;
  frames: ReceivedFrame[];
  count: number;
  events: Record<string, unknown>[];
  error: unknown;
}

const NOTHING: ReceivedAnswer = {
  state: 'idle',
  exchange: undefined,
  frames: [],
  count: 0,
  events: [],
  error: undefined,
};

/** Calls agents as any client does, and shows what goes over the wire. */
export function PlaygroundPage() {
  const { agent = DEFAULT_AGENT } = route.useSearch();
  const [draft, setDraft] = useState<Draft>(() => emptyDraft(agent));
  const [answer, setAnswer] = useState(NOTHING);
  const call = useRef<AgentCall>(undefined);
  const faults = faultsOf(draft);
  const isValid = Object.keys(faults).length === 0;

  const follow = async (work: () => Promise<void>): Promise<void> => {
    setAnswer((now) => ({ ...now, state: 'running', error: undefined }));
    try {
      await work();
      setAnswer((now) => ({ ...now, state: 'done' }));
    } catch (error) {
      const isCut = error instanceof Error && error.name === 'AbortError';
      setAnswer((now) => ({ ...now, state: isCut ? 'cut' : 'failed', error: isCut ? undefined : error }));
    }
  };
  const send = async (): Promise<void> => {
    setAnswer(NOTHING);
    // The SDK is loaded when it is first used.
    const { AgentCall } = await import('./agent-call');
    call.current = new AgentCall(draft, {
      onExchange: (exchange) => setAnswer((now) => ({ ...now, exchange })),
      onFrame: (frame) =>
        setAnswer((now) => ({
          ...now,
          frames: [...now.frames, frame].slice(-MAX_FRAMES),
          count: now.count + 1,
        })),
      onEvent: (event) => setAnswer((now) => ({ ...now, events: [...now.events, event].slice(-MAX_FRAMES) })),
    });
    await follow(() => call.current?.send() ?? Promise.resolve());
  };

  return (
    <Page title="Playground">
      <Grid gap="xl">
        <Grid.Col span={{ base: 12, md: 5 }}>
          <Request draft={draft} faults={faults} onChange={setDraft}>
            <Button onClick={() => void send()} disabled={!isValid || answer.state === 'running'}>
              Send
            </Button>
            <Button
              variant="default"
              onClick={() => call.current?.cut()}
              disabled={answer.state !== 'running' || !draft.isStream}
            >
              Cut the connection
            </Button>
            <Button
              variant="default"
              onClick={() => void follow(() => call.current?.resume() ?? Promise.resolve())}
              disabled={answer.state !== 'cut' || call.current?.canResume !== true}
            >
              Resume
            </Button>
            <Button
              variant="default"
              onClick={() =>
                void call.current
                  ?.cancelTask()
                  .catch((error: unknown) => setAnswer((now) => ({ ...now, error })))
              }
              disabled={answer.state !== 'running' && answer.state !== 'cut'}
            >
              Cancel the task
            </Button>
          </Request>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 7 }}>
          <AnswerView
            answer={answer}
            onContinue={(contextId, taskId) => setDraft((now) => ({ ...now, contextId, taskId }))}
          />
        </Grid.Col>
      </Grid>
    </Page>
  );
}

function Request({
  draft,
  faults,
  onChange,
  children,
}: {
  draft: Draft;
  faults: Partial<Record<keyof Draft, string>>;
  onChange: (draft: Draft) => void;
  children: ReactNode;
}) {
  const { data } = useQuery(agentsQuery);
  const set = (change: Partial<Draft>): void => onChange({ ...draft, ...change });
  const known = data?.agents.map(({ slug }) => slug) ?? [];
  const agents = known.includes(draft.agent) ? known : [draft.agent, ...known];
  return (
    <Stack>
      <Select
        label="Agent"
        data={agents}
        value={draft.agent}
        onChange={(agent) => agent && set({ agent })}
        searchable
        error={faults.agent}
      />
      <Group>
        <SegmentedControl
          aria-label="Protocol version"
          data={[...VERSIONS]}
          value={draft.version}
          onChange={(version) => set({ version: version as Draft['version'] })}
        />
        <SegmentedControl
          aria-label="Binding"
          data={[...BINDINGS]}
          value={draft.binding}
          onChange={(binding) => set({ binding: binding as Draft['binding'] })}
        />
        <Switch
          label="Stream"
          checked={draft.isStream}
          onChange={({ currentTarget: { checked } }) => set({ isStream: checked })}
        />
      </Group>
      <Textarea
        label="Text"
        autosize
        minRows={3}
        value={draft.text}
        onChange={({ currentTarget: { value } }) => set({ text: value })}
        error={faults.text}
      />
      <Group>{children}</Group>
      <Textarea
        label="Data (JSON)"
        autosize
        value={draft.data}
        onChange={({ currentTarget: { value } }) => set({ data: value })}
        error={faults.data}
      />
      <Textarea
        label="Metadata of the message (JSON)"
        autosize
        value={draft.metadata}
        onChange={({ currentTarget: { value } }) => set({ metadata: value })}
        error={faults.metadata}
      />
      <Files files={draft.files} onChange={(files) => set({ files })} />
      <Group grow>
        <TextInput
          label="Context id"
          value={draft.contextId}
          onChange={({ currentTarget: { value } }) => set({ contextId: value })}
        />
        <TextInput
          label="Task id"
          value={draft.taskId}
          onChange={({ currentTarget: { value } }) => set({ taskId: value })}
        />
      </Group>
      <Kept draft={draft} onChange={onChange} />
    </Stack>
  );
}

function Files({ files, onChange }: { files: DraftFile[]; onChange: (files: DraftFile[]) => void }) {
  const add = async (chosen: File[]): Promise<void> => {
    const read = chosen.map(async (file) => ({
      name: file.name,
      mediaType: file.type || 'application/octet-stream',
      raw: await base64Of(file),
    }));
    onChange([...files, ...(await Promise.all(read))]);
  };
  return (
    <Group gap="xs">
      <FileButton multiple onChange={(chosen) => void add(chosen)} inputProps={{ 'aria-label': 'Files' }}>
        {(props) => (
          <Button {...props} size="xs" variant="default">
            Add files
          </Button>
        )}
      </FileButton>
      {files.map(({ name, mediaType }, i) => (
        <Button
          key={`${name} ${i}`}
          size="compact-xs"
          variant="default"
          title={mediaType}
          aria-label={`Remove ${name}`}
          onClick={() => onChange(files.filter((_, other) => other !== i))}
        >
          {name} ✕
        </Button>
      ))}
    </Group>
  );
}

const base64Of = (file: File): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve((reader.result as string).replace(/^[^,]*,/, ''));
    reader.onerror = () => reject(reader.error ?? new Error(`${file.name} can not be read`));
    reader.readAsDataURL(file);
  });

/** Requests that are kept in this browser. */
function Kept({ draft, onChange }: { draft: Draft; onChange: (draft: Draft) => void }) {
  const { tenant } = useCaller();
  const drafts = useMemo(() => new KeptDrafts(tenant), [tenant]);
  const [kept, setKept] = useState(() => drafts.read());
  const [name, setName] = useState('');
  const [error, setError] = useState<unknown>();
  const keep = (): void => {
    try {
      setKept(drafts.keep({ name, draft }));
      setError(undefined);
    } catch (caught) {
      setError(caught);
    }
  };
  const chosen = kept.find((entry) => entry.name === name);
  return (
    <Stack gap="xs">
      <Group align="end" gap="xs">
        <Select
          label="Kept requests"
          placeholder={kept.length === 0 ? 'none' : 'choose one'}
          data={kept.map((entry) => entry.name)}
          value={chosen ? name : null}
          onChange={(value) => {
            const found = kept.find((entry) => entry.name === value);
            if (!found) return;
            setName(found.name);
            onChange(found.draft);
          }}
        />
        <TextInput label="Keep as" value={name} onChange={({ currentTarget: { value } }) => setName(value)} />
        <Button variant="default" onClick={keep} disabled={name.trim() === ''}>
          Keep
        </Button>
        <Button variant="default" onClick={() => setKept(drafts.remove(name))} disabled={!chosen}>
          Remove
        </Button>
      </Group>
      {error !== undefined && <ErrorView error={error} />}
    </Stack>
  );
}

const STATES: Readonly<Record<CallState, string>> = {
  idle: 'Nothing is sent yet.',
  running: 'The answer is coming in …',
  cut: 'The connection is cut. The task goes on. Resume continues after the last frame.',
  done: 'The answer has ended.',
  failed: 'The call has failed.',
};

function AnswerView({
  answer,
  onContinue,
}: {
  answer: ReceivedAnswer;
  onContinue: (contextId: string, taskId: string) => void;
}) {
  const { state, exchange, frames, count, events, error } = answer;
  const { text, taskState, contextId, taskId } = useMemo(() => summaryOf(events), [events]);
  return (
    <Stack>
      <Group justify="space-between">
        <Text size="sm" role="status" aria-label="State of the call">
          {STATES[state]}
          {taskState !== undefined && ` Task: ${taskState}.`}
        </Text>
        {taskId !== undefined && contextId !== undefined && (
          <Button size="compact-xs" variant="default" onClick={() => onContinue(contextId, taskId)}>
            Continue this task
          </Button>
        )}
      </Group>
      {error !== undefined && <ErrorView error={error} title="The SDK reports an error" />}
      {text !== '' && (
        <section aria-label="Answer of the agent">
          <Code block tabIndex={0}>
            {text}
          </Code>
        </section>
      )}
      <Tabs defaultValue="frames">
        <Tabs.List aria-label="What went over the wire">
          <Tabs.Tab value="frames">Frames ({count})</Tabs.Tab>
          <Tabs.Tab value="events">Events of the SDK</Tabs.Tab>
          <Tabs.Tab value="headers">Headers</Tabs.Tab>
          <Tabs.Tab value="curl">curl</Tabs.Tab>
        </Tabs.List>
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
    </Stack>
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

/** What an answer amounts to: its text, and the task. */
function summaryOf(events: Record<string, unknown>[]): {
  text: string;
  taskState?: string;
  contextId?: string;
  taskId?: string;
} {
  const artifacts = new Map<string, string>();
  let said = '';
  let found: { taskState?: string; contextId?: string; taskId?: string } = {};
  for (const event of events as StreamEvent[]) {
    const { task, statusUpdate, artifactUpdate, message } = event;
    if (task) {
      found = { taskState: task.status.state, contextId: task.contextId, taskId: task.id };
      for (const artifact of task.artifacts ?? []) artifacts.set(artifact.artifactId, textIn(artifact.parts));
    }
    if (statusUpdate) {
      const { contextId, taskId, status } = statusUpdate;
      found = { taskState: status.state, contextId, taskId };
      said = textIn(status.message?.parts);
    }
    if (artifactUpdate) {
      const { artifact, append = false } = artifactUpdate;
      const before = append ? (artifacts.get(artifact.artifactId) ?? '') : '';
      artifacts.set(artifact.artifactId, before + textIn(artifact.parts));
    }
    if (message) said = textIn(message.parts);
  }
  const { taskState, ...ids } = found;
  const state = taskState?.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');
  return {
    text: [...artifacts.values(), said].filter((text) => text !== '').join('\n'),
    ...(state !== undefined && { taskState: state }),
    ...ids,
  };
}

type Parts = { text?: string; data?: unknown; filename?: string }[];

/** JSON of A2A 1.0, as far as it is read here. */
interface StreamEvent {
  task?: {
    id: string;
    contextId: string;
    status: { state: string };
    artifacts?: { artifactId: string; parts: Parts }[];
  };
  statusUpdate?: { taskId: string; contextId: string; status: { state: string; message?: { parts: Parts } } };
  artifactUpdate?: { artifact: { artifactId: string; parts: Parts }; append?: boolean };
  message?: { parts: Parts };
}

const textIn = (parts: Parts = []): string =>
  parts
    .map(
      ({ text, data, filename }) =>
        text ?? (data === undefined ? `[${filename ?? 'file'}]` : JSON.stringify(data)),
    )
    .join('');
