import { Button, Stack, Tabs, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import type { Message } from '../../a2a/artifacts';
import { isTerminal, isWaiting } from '../../a2a/task-states';
import { answerOf, api } from '../../api/client';
import { ConfirmButton } from '../../components/confirm-button';
import { ErrorView } from '../../components/error-view';
import { Page } from '../../components/page';
import { Json, type Part, PartView } from '../../components/part-view';
import { shortId } from '../../components/uuid';
import { AnswerForm } from './answer-form';
import { Descendants } from './task-children';
import { Console } from './task-console';
import { Copies } from './task-copies';
import { Facts, Lead } from './task-facts';
import { type TaskLog, useTaskLog } from './task-log';
import { Effects } from './task-effects';
import { Artifacts } from './task-output';
import { keepTab, keptTab, readTab, TABS, type TaskTab } from './task-tabs';
import { Timeline } from './task-timeline';
import { Trace } from './task-trace';
import { readTraceSearch, type TraceSearch } from './trace-search';
import { ModelCalls, Runs, Steps } from './task-work';
import type { Task } from './task-words';

const route = getRouteApi('/app/tasks/$id');

const LOG_STATES = {
  live: 'This page grows while the task runs.',
  cut: 'The connection is gone. It is taken up again where it was.',
  ended: 'The task has ended.',
} as const;

/** A task: what it is about and how it went, what it waits for, and in tabs its trace, its output, its log and its JSON. */
export function TaskPage() {
  const { id } = route.useParams();
  const {
    data: task,
    error,
    refetch,
  } = useQuery({
    queryKey: ['task', id],
    queryFn: ({ signal }) => answerOf(api.GET('/v1/tasks/{id}', { params: { path: { id } }, signal })),
  });
  const log = useTaskLog(id);
  return (
    <Page title={`Task ${shortId(id)}`} actions={task && <Actions task={task} />}>
      {error && <ErrorView error={error} retry={() => void refetch()} />}
      {task && (
        <Stack gap="lg">
          <Lead task={task} first={log.first} />
          {isWaiting(task.state) && (
            <AnswerForm key={task.updated_at} task={task} question={questionOf(task)} />
          )}
          <Text size="sm" c="dimmed" role="status" data-last-event={log.last}>
            {LOG_STATES[log.state]}
          </Text>
          {log.error !== undefined && <ErrorView error={log.error} />}
          <TaskTabs key={id} task={task} log={log} />
          <Facts task={task} log={log} />
        </Stack>
      )}
    </Page>
  );
}

/**
 * The tab is in the address, so the browser goes back from tab to tab. Without one, it is the tab that was chosen last. The arrow keys move
 * between the tabs, and Enter opens one: each tab that is opened is an entry of the history.
 */
function TaskTabs({ task, log }: { task: Task; log: TaskLog }) {
  // The router leaves an unknown value in the address.
  const search = route.useSearch();
  const tab = readTab(search.tab);
  const navigate = useNavigate();
  const { task_id: id } = task;
  // The choice when the task was opened: a later choice must not change the first entry of the history.
  const [kept] = useState(keptTab);
  const open = (next: string | null): void => {
    keepTab(next as TaskTab);
    void navigate({
      to: '/tasks/$id',
      params: { id },
      search: { ...readTraceSearch(search), tab: next as TaskTab },
      resetScroll: false,
    });
  };
  const traceSearch = useMemo(() => readTraceSearch(search), [search]);
  // A filter is no entry of the history: Back leaves the tab.
  const filterTrace = (chosen: TraceSearch): void =>
    void navigate({
      to: '/tasks/$id',
      params: { id },
      search: { ...(tab && { tab }), ...chosen },
      replace: true,
      resetScroll: false,
    });
  return (
    <Tabs value={tab ?? kept} onChange={open} activateTabWithKeyboard={false} keepMounted={false}>
      <Tabs.List aria-label="Parts of the task" mb="md">
        {Object.entries(TABS).map(([name, title]) => (
          <Tabs.Tab key={name} value={name}>
            {title}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      <Tabs.Panel value="trace">
        <Stack gap="lg">
          <Trace task={task} search={traceSearch} changeSearch={filterTrace} />
          <ModelCalls task={task} />
          <Steps task={task} />
          <Effects task={task} />
          <Descendants task={task} />
          <Runs task={task} />
        </Stack>
      </Tabs.Panel>
      <Tabs.Panel value="output">
        <Artifacts artifacts={log.artifacts} />
      </Tabs.Panel>
      <Tabs.Panel value="log">
        <Stack gap="lg">
          <Console task={task} />
          <Timeline task={task} log={log} />
        </Stack>
      </Tabs.Panel>
      <Tabs.Panel value="raw">
        <Stack gap="lg">
          <RawTask task={task} />
          <Copies task={task} first={log.first} />
        </Stack>
      </Tabs.Panel>
    </Tabs>
  );
}

/** Characters of JSON of which the page makes elements. Of a longer log it shows the end, and offers the whole as a file. */
const MAX_JSON = 200_000;

/** The task as A2A 1.0 has it. */
function RawTask({ task: { task } }: { task: Task }) {
  const json = useMemo(() => JSON.stringify(task, null, 2), [task]);
  return json.length > MAX_JSON ? (
    <PartView part={{ text: json, mediaType: 'application/json' }} />
  ) : (
    <Json value={task} />
  );
}

/** The parts of the message with which a task asks. */
function questionOf({ task }: Task): readonly Part[] {
  const { status } = task as { status?: { message?: Message } };
  return status?.message?.parts ?? [];
}

function Actions({ task: { task_id: id, state, parked } }: { task: Task }) {
  const navigate = useNavigate();
  const queryClient = useQueryClient();
  const params = { params: { path: { id } } };
  const again = useMutation({
    mutationFn: () => answerOf(api.POST('/v1/tasks/{id}/send-again', params)),
    onSuccess: (made) => navigate({ to: '/tasks/$id', params: { id: made.task_id } }),
  });
  const resume = useMutation({
    mutationFn: () => answerOf(api.POST('/v1/tasks/{id}/resume', params)),
    onSettled: () => queryClient.invalidateQueries({ queryKey: ['task', id] }),
  });
  const onward = useMutation({
    mutationFn: () => answerOf(api.POST('/v1/tasks/{id}/continue', params)),
    onSuccess: (made) => navigate({ to: '/tasks/$id', params: { id: made.task_id } }),
  });
  return (
    <>
      {parked && (
        <Button loading={resume.isPending} onClick={() => resume.mutate()}>
          Resume
        </Button>
      )}
      {state === 'failed' && (
        <Button loading={onward.isPending} onClick={() => onward.mutate()}>
          Continue
        </Button>
      )}
      {!isTerminal(state) && (
        <ConfirmButton
          size="sm"
          label="Cancel the task"
          question="Cancel this task?"
          dismiss="Keep it running"
          act={() => answerOf(api.POST('/v1/tasks/{id}/cancel', params))}
        >
          It cannot continue afterwards. What its agent has done so far is not undone.
        </ConfirmButton>
      )}
      <Button variant="default" loading={again.isPending} onClick={() => again.mutate()}>
        Send again
      </Button>
      <Button variant="default" component={Link} to={`/tasks/${id}/compare`}>
        Compare
      </Button>
      {(resume.error ?? again.error) && <ErrorView error={resume.error ?? again.error} />}
      {onward.error && <ErrorView error={onward.error} />}
    </>
  );
}
