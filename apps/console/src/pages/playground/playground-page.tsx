import {
  Anchor,
  Button,
  Code,
  Collapse,
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
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { type KeyboardEvent, type ReactNode, Suspense, useEffect, useMemo, useRef, useState } from 'react';
import { Earlier, partsOf, Said, type Spoken } from './conversation';
import { ErrorView } from '../../components/error-view';
import { lazyPage } from '../../components/lazy-page';
import { Page } from '../../components/page';
import { PartView } from '../../components/part-view';
import { useCaller } from '../../session/caller';
import { isTerminal, isWaiting, type TaskState } from '../../a2a/task-states';
import { agentsQuery } from '../../api/agents-query';
import { MissingSecrets } from '../agents/missing-secrets';
import type { Trace as TraceType } from '../tasks/task-trace';
import type { AgentCall } from './agent-call';
import { AnswerSummary, type StreamEvent, type AnswerContent } from './answer-summary';
import {
  BINDINGS,
  type Draft,
  draftFor,
  type DraftFile,
  faultsOf,
  hasOptions,
  VERSIONS,
  writeDraft,
} from './draft';
import { KeptDrafts } from './kept-drafts';
import { curlOf, type RecordedExchange, type ReceivedFrame } from '../../a2a/exchange';

const route = getRouteApi('/app/playground');
/** Its code is loaded with the first answer. */
const Trace = lazyPage(() => import('../tasks/task-trace'), 'Trace') as unknown as typeof TraceType;
/** Maximum number of frames that the page keeps and shows. */
const MAX_FRAMES = 500;

type CallState = 'idle' | 'running' | 'lost' | 'cut' | 'done' | 'failed';
/** The first pause before a lost stream is resumed. It doubles with each try. */
const FIRST_PAUSE_MS = 500;
/** Maximum pause between two tries. A person is waiting. */
const MAX_PAUSE_MS = 10_000;

/** The part of an answer that has arrived so far. */
interface ReceivedAnswer {
  state: CallState;
  exchange: RecordedExchange | undefined;
  /** The newest frames, at most `MAX_FRAMES`. */
  frames: ReceivedFrame[];
  /** Number of all frames, also those that are no longer in `frames`. */
  count: number;
  /** The newest events, at most `MAX_FRAMES`. */
  events: StreamEvent[];
  /** The summary of all events. */
  summary: AnswerContent;
  error: unknown;
}

const NOTHING: ReceivedAnswer = {
  state: 'idle',
  exchange: undefined,
  frames: [],
  count: 0,
  events: [],
  summary: { artifacts: [], said: [] },
  error: undefined,
};

const isAbort = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError';

/** A message of the caller, and its outcome so far. */
interface PlaygroundTurn extends Spoken {
  id: string;
  agent: string;
  answer: ReceivedAnswer;
}

/** Calls agents as any client does, and shows what goes over the wire. */
export function PlaygroundPage() {
  const { agent } = route.useSearch();
  const { tenant } = useCaller();
  const [draft, setDraft] = useState<Draft>(() => draftFor(tenant, agent));
  /** The conversation. The answer of its last turn may still come in. */
  const [turns, setTurns] = useState<readonly PlaygroundTurn[]>([]);
  const last = turns.at(-1);
  const answer = last?.answer ?? NOTHING;
  const call = useRef<AgentCall>(undefined);
  const faults = faultsOf(draft);
  const isValid = Object.keys(faults).length === 0;
  const isBusy = answer.state === 'running' || answer.state === 'lost';

  useEffect(() => writeDraft(tenant, draft), [tenant, draft]);
  // Ends the connection when the user leaves the page. The task continues.
  useEffect(() => () => call.current?.cut(), []);

  const changeAnswer = (id: string, change: (answer: ReceivedAnswer) => Partial<ReceivedAnswer>): void =>
    setTurns((now) =>
      now.map((turn) =>
        turn.id === id ? { ...turn, answer: { ...turn.answer, ...change(turn.answer) } } : turn,
      ),
    );
  const follow = async (id: string, following: AgentCall, work: () => Promise<void>): Promise<void> => {
    const show = (change: Partial<ReceivedAnswer>): void => {
      if (call.current === following) changeAnswer(id, () => change);
    };
    show({ state: 'running', error: undefined });
    let pause = FIRST_PAUSE_MS;
    for (let next = work; ; next = () => following.resume()) {
      try {
        await next();
        if (!(await following.wasCut())) return show({ state: 'done', error: undefined });
      } catch (error) {
        if (isAbort(error)) return show({ state: 'cut' });
        if (!(await following.wasCut())) return show({ state: 'failed', error });
      }
      show({ state: 'lost' });
      try {
        await following.pause(pause);
      } catch {
        return show({ state: 'cut' });
      }
      pause = Math.min(2 * pause, MAX_PAUSE_MS);
    }
  };
  const startAnew = (): void => {
    setTurns([]);
    setDraft((now) => ({ ...now, contextId: '', taskId: '' }));
  };
  const send = async (): Promise<void> => {
    const { agent: of, text } = draft;
    const { contextId: context = '' } = answer.summary;
    // The next message continues in the conversation, unless it names another one.
    const contextId = draft.contextId || (last?.agent === of ? context : '');
    const goesOn = contextId !== '' && contextId === context;
    const id = crypto.randomUUID();
    const turn: PlaygroundTurn = { id, agent: of, said: text, answer: { ...NOTHING, state: 'running' } };
    setTurns(goesOn ? [...turns, turn] : [turn]);
    // The SDK is loaded when it is first used.
    const { AgentCall } = await import('./agent-call');
    const summary = new AnswerSummary();
    const sent = new AgentCall(
      { ...draft, contextId },
      {
        onExchange: (exchange) => changeAnswer(id, () => ({ exchange })),
        onFrame: (frame) =>
          changeAnswer(id, ({ state, frames, count }) => ({
            state: state === 'lost' ? 'running' : state,
            frames: [...frames, frame].slice(-MAX_FRAMES),
            count: count + 1,
          })),
        onEvent: (event) => {
          summary.add(event);
          changeAnswer(id, ({ events }) => ({
            events: [...events, event].slice(-MAX_FRAMES),
            summary: summary.summary,
          }));
        },
      },
    );
    call.current = sent;
    await follow(id, sent, () => sent.send());
    const { taskId, taskState } = summary.summary;
    // A task that has ended takes no other message.
    if (isTerminal(taskState)) setDraft((now) => (now.taskId === taskId ? { ...now, taskId: '' } : now));
  };
  const resume = (): void => {
    const { current } = call;
    if (current && last) void follow(last.id, current, () => current.resume());
  };
  const cancel = (): void => {
    void call.current
      ?.cancelTask()
      .catch((error: unknown) => last && changeAnswer(last.id, () => ({ error })));
  };

  return (
    <Page title="Playground">
      <Grid gap="xl">
        <Grid.Col span={{ base: 12, md: 6 }}>
          <Stack>
            {turns.length > 1 && <Earlier turns={turns.slice(0, -1)} />}
            {last && <Said text={last.said} />}
            <AnswerView
              answer={answer}
              onContinue={(contextId, taskId) => setDraft((now) => ({ ...now, contextId, taskId }))}
            />
            <Request
              draft={draft}
              faults={faults}
              onChange={setDraft}
              onSend={() => isValid && !isBusy && void send()}
            >
              <Button onClick={() => void send()} disabled={!isValid || isBusy}>
                Send
              </Button>
              {last && (
                <Button variant="default" onClick={startAnew} disabled={isBusy}>
                  New conversation
                </Button>
              )}
              {draft.isStream && isBusy && (
                <Button variant="default" onClick={() => call.current?.cut()}>
                  Cut the connection
                </Button>
              )}
              {answer.state === 'cut' && call.current?.canResume === true && (
                <Button variant="default" onClick={resume}>
                  Resume
                </Button>
              )}
              {(isBusy || answer.state === 'cut') && (
                <Button variant="default" onClick={cancel}>
                  Cancel the task
                </Button>
              )}
            </Request>
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 6 }}>
          <Wire answer={answer} />
        </Grid.Col>
      </Grid>
    </Page>
  );
}

function Request({
  draft,
  faults,
  onChange,
  onSend,
  children,
}: {
  draft: Draft;
  faults: Partial<Record<keyof Draft, string>>;
  onChange: (draft: Draft) => void;
  onSend: () => void;
  children: ReactNode;
}) {
  const { data } = useQuery(agentsQuery);
  const [isOpen, { toggle }] = useDisclosure(hasOptions(draft));
  const set = (change: Partial<Draft>): void => onChange({ ...draft, ...change });
  const known = data?.agents.map(({ slug }) => slug) ?? [];
  const agents = known.includes(draft.agent) ? known : [draft.agent, ...known];
  const sendByKey = ({ key, ctrlKey, metaKey }: KeyboardEvent): void => {
    if (key === 'Enter' && (ctrlKey || metaKey)) onSend();
  };
  return (
    <Stack onKeyDown={sendByKey}>
      <Select
        label="Agent"
        data={agents}
        value={draft.agent}
        onChange={(agent) => agent && set({ agent })}
        searchable
        error={faults.agent}
      />
      <MissingSecrets agent={draft.agent} />
      <Textarea
        label="Text"
        description="Ctrl-Enter sends it"
        autosize
        minRows={3}
        value={draft.text}
        onChange={({ currentTarget: { value } }) => set({ text: value })}
        error={faults.text}
      />
      <Group>
        {children}
        <Button variant="subtle" onClick={toggle} aria-expanded={isOpen}>
          Options
        </Button>
      </Group>
      <Collapse expanded={isOpen} transitionDuration={0}>
        <Stack>
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
      </Collapse>
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
    reader.onerror = () => reject(reader.error ?? new Error(`${file.name} cannot be read`));
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
  lost: 'The connection is lost. The task continues, and the answer is resumed after the last frame …',
  cut: 'The connection is cut. The task continues. Resume continues after the last frame.',
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
  const { state, summary, error } = answer;
  const { taskState, contextId, taskId } = summary;
  const parts = partsOf(summary);
  return (
    <Stack>
      <Group justify="space-between">
        <Text size="sm" role="status" aria-label="State of the call">
          {STATES[state]}
          {taskState !== undefined && ` Task: ${taskState}.`}
        </Text>
        <Group gap="xs">
          {isWaiting(taskState) && taskId !== undefined && contextId !== undefined && (
            <Button size="compact-xs" variant="default" onClick={() => onContinue(contextId, taskId)}>
              Continue this task
            </Button>
          )}
          {taskId !== undefined && (
            <Anchor component={Link} to={`/tasks/${taskId}`} size="sm" underline="always">
              Open the task
            </Anchor>
          )}
        </Group>
      </Group>
      {error !== undefined && <ErrorView error={error} title="The SDK reports an error" />}
      {parts.length > 0 && (
        <Stack component="section" aria-label="Answer of the agent" gap="xs">
          {parts.map((part, i) => (
            // Parts have no names, and their order is fixed.
            <PartView key={i} part={part} />
          ))}
        </Stack>
      )}
    </Stack>
  );
}

/** How the task went, and what went over the wire. */
function Wire({ answer: { exchange, frames, count, events, summary } }: { answer: ReceivedAnswer }) {
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
