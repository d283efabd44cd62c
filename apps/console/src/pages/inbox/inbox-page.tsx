import { Button, Card, Checkbox, Code, Group, Skeleton, Stack, Text, TextInput } from '@mantine/core';
import { readableParts } from '@baton/contract';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ConfirmButton } from '../../components/confirm-button';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { PartView } from '../../components/part-view';
import { ScopedPage } from '../../components/scoped';
import { ShortId } from '../../components/short-id';
import { TaskLink } from '../../components/task-link';
import { Time } from '../../components/time';
import { useCaller } from '../../session/caller';
import { noteAnswered, questionKey, useWaitingTasks, type InboxTask } from '../../session/waiting-tasks';
import { useAgentNames } from '../../components/agent-names';
import { Answer } from '../tasks/answer-form';
import { decisionPart, sendAnswer } from '../tasks/send-answer';

/** What waits for an answer of the caller, the oldest first: questions of agents, and tool calls to approve. */
export function InboxPage() {
  return (
    <ScopedPage title="Inbox" scopes={['agents:call']}>
      <Inbox />
    </ScopedPage>
  );
}

function Inbox() {
  const { tasks, error, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = useWaitingTasks();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const names = useAgentNames();
  if (!tasks) {
    if (error) return <ErrorView error={error} retry={() => void refetch()} />;
    return <Skeleton height="8rem" aria-label="Loading what waits for you" role="status" />;
  }
  const choose = (keys: readonly string[], isChosen: boolean): void =>
    setChosen((before) => {
      const after = new Set(before);
      for (const key of keys) {
        if (isChosen) after.add(key);
        else after.delete(key);
      }
      return after;
    });
  return (
    <>
      {error && <ErrorView error={error} retry={() => void refetch()} />}
      {tasks.length === 0 && !hasNextPage && <NothingWaits />}
      <Selection tasks={tasks} chosen={chosen} choose={choose} />
      <Stack component="ul" gap="md" p={0} m={0} style={{ listStyle: 'none' }} aria-label="Waiting for you">
        {tasks.map((task) => {
          const key = questionKey(task);
          return (
            <Waiting
              key={key}
              task={task}
              isChosen={chosen.has(key)}
              nameOf={(id) => names.get(id) ?? id}
              choose={(isChosen) => choose([key], isChosen)}
            />
          );
        })}
      </Stack>
      {hasNextPage && (
        <Group justify="center">
          <Button variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show more
          </Button>
        </Group>
      )}
    </>
  );
}

function NothingWaits() {
  const { can } = useCaller();
  const isAll = can('tasks:read') && can('tasks:write');
  return (
    <EmptyState title="Nothing waits for you">
      When an agent asks a question, it appears here, and you answer it here.{' '}
      {can('tasks:approve')
        ? 'So does the call of a tool that a person must approve.'
        : 'Calls of tools that a person must approve appear for tokens with the scope tasks:approve.'}{' '}
      {isAll
        ? 'You see those of all tasks of the tenant.'
        : 'You see those of your own tasks: the others need the scopes tasks:read and tasks:write.'}
    </EmptyState>
  );
}

/** The calls of a task that a yes or no answers. What a tool itself asks has an answer of its own. */
const callsOf = ({ approvals = [] }: InboxTask) => approvals.filter(({ question }) => !question);

/** Decides on the calls of all chosen tasks at once. */
function Selection({
  tasks,
  chosen,
  choose,
}: {
  tasks: readonly InboxTask[];
  chosen: ReadonlySet<string>;
  choose: (keys: readonly string[], isChosen: boolean) => void;
}) {
  const queryClient = useQueryClient();
  const [reason, setReason] = useState('');
  const askingApproval = tasks.filter((task) => callsOf(task).length > 0);
  if (askingApproval.length === 0) return null;
  const mine = askingApproval.filter((task) => chosen.has(questionKey(task)));
  const decide = async (isApproved: boolean): Promise<void> => {
    const failures: string[] = [];
    for (const task of mine) {
      try {
        await sendAnswer(
          task,
          callsOf(task).map(({ call_id: call }) => decisionPart(call, isApproved, isApproved ? '' : reason)),
        );
        noteAnswered(queryClient, task);
      } catch (error) {
        failures.push(`Task ${task.task_id}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    if (failures.length > 0) throw new Error(failures.join('\n'));
    setReason('');
  };
  const isAll = mine.length === askingApproval.length;
  const button = { size: 'xs', disabled: mine.length === 0 } as const;
  return (
    <Group gap="sm">
      <Checkbox
        label="Choose all calls"
        checked={isAll}
        indeterminate={mine.length > 0 && !isAll}
        onChange={() => choose(askingApproval.map(questionKey), !isAll)}
      />
      <ConfirmButton
        {...button}
        label="Approve the chosen"
        question="Approve these calls?"
        act={() => decide(true)}
        isHarmless
      >
        <Calls tasks={mine} />
      </ConfirmButton>
      <ConfirmButton
        {...button}
        label="Reject the chosen"
        question="Reject these calls?"
        act={() => decide(false)}
      >
        <Stack>
          <Calls tasks={mine} />
          <TextInput
            label="Reason of the refusal"
            description="The models read it"
            value={reason}
            onChange={({ currentTarget }) => setReason(currentTarget.value)}
          />
        </Stack>
      </ConfirmButton>
    </Group>
  );
}

/** The calls of these tasks, with how often each tool is to be called. */
function Calls({ tasks }: { tasks: readonly InboxTask[] }) {
  const counts = new Map<string, number>();
  for (const task of tasks)
    for (const { tool } of callsOf(task)) counts.set(tool, (counts.get(tool) ?? 0) + 1);
  return (
    <ul>
      {[...counts].map(([tool, count]) => (
        <li key={tool}>
          <Code>{tool}</Code>, {count === 1 ? 'once' : `${count} times`}
        </li>
      ))}
    </ul>
  );
}

/** One task: who asks, what it is about, what is asked, and the answer. */
function Waiting({
  task,
  nameOf,
  isChosen,
  choose,
}: {
  task: InboxTask;
  /** The slug of an agent by its id. */
  nameOf: (agentId: string) => string;
  isChosen: boolean;
  choose: (isChosen: boolean) => void;
}) {
  const {
    task_id: id,
    updated_at: at = null,
    first_message: about,
    approvals,
    question,
    ancestors = [],
  } = task;
  return (
    <Card component="li" withBorder padding="sm">
      <Stack gap="xs">
        <Group gap="sm">
          {callsOf(task).length > 0 && (
            <Checkbox
              aria-label={`Choose the calls of task ${id}`}
              checked={isChosen}
              onChange={({ currentTarget }) => choose(currentTarget.checked)}
            />
          )}
          <Text fw={600} component="h2" size="md" m={0}>
            {nameOf(task.agent_id)} {callsOf(task).length > 0 ? 'asks for approval' : 'asks'}
          </Text>
          <Text size="sm" component="span">
            since <Time at={at} />
          </Text>
          <TaskLink id={id}>
            Task <ShortId id={id} />
          </TaskLink>
        </Group>
        {about !== undefined && (
          <Text size="sm" c="dimmed">
            Its task: {about}
          </Text>
        )}
        {ancestors.map(({ task_id: above, agent_id: agent }) => (
          <Text key={above} size="sm">
            Begun by {nameOf(agent)} in task <TaskLink id={above} />
          </Text>
        ))}
        {/* The parts of a message have no names, and their order is fixed. */}
        {question && readableParts(question).map((part, i) => <PartView key={i} part={part} />)}
        {approvals || question ? (
          <Answer task={task} question={question ?? []} />
        ) : (
          <Text size="sm">The question is too large for this list. Open the task to read and answer it.</Text>
        )}
      </Stack>
    </Card>
  );
}
