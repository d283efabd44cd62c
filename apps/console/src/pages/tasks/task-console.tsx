import { Button, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import type { TenantSchemas } from '@baton/contract';
import { isTerminal } from '../../a2a/task-states';
import { answerOf, api } from '../../api/client';
import { ErrorView } from '../../components/error-view';
import { Section } from '../../components/section';
import { Time } from '../../components/time';
import { useCaller } from '../../session/caller';
import type { Task } from './task-words';
import styles from './tasks.module.css';

/**
 * The last error in the agent's code. Its stack is there for those who may change agents.
 * @param hasConsole the console of the agent is shown, which has the same lines as the error
 */
function Fault({ error, hasConsole }: { error: NonNullable<Task['error']>; hasConsole: boolean }) {
  return (
    <Section title="Error in the agent">
      <Text>{error.message}</Text>
      {typeof error.stack === 'string' && (
        <pre className={styles.raw} tabIndex={0}>
          {error.stack}
        </pre>
      )}
      {!hasConsole && error.output && error.output.length > 0 && (
        <pre className={styles.raw} tabIndex={0}>
          {error.output.join('\n')}
        </pre>
      )}
    </Section>
  );
}

/** Between two reads of the console of a task that has not ended. */
const CONSOLE_POLL_MS = 3_000;

/** The last error in the agent's code, and what the code has written to its console, for those who may change agents. */
export function Console({ task: { task_id: id, state, updated_at: at, error: fault } }: { task: Task }) {
  // The last lines are stored a moment after the end.
  const isComplete = (readAt: number): boolean =>
    isTerminal(state) && readAt > Date.parse(at ?? '') + CONSOLE_POLL_MS;
  const isAuthor = useCaller().can('agents:write');
  const { data, error, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ['task', id, 'console'],
    queryFn: ({ signal, pageParam }) =>
      answerOf(
        api.GET('/v1/tasks/{id}/logs', {
          params: { path: { id }, query: { limit: 100, cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: '',
    getNextPageParam: (page) => page.next_cursor,
    enabled: isAuthor,
    refetchInterval: (query) => (isComplete(query.state.dataUpdatedAt) ? false : CONSOLE_POLL_MS),
  });
  const lines = data?.pages.flatMap((page) => page.lines) ?? [];
  return (
    <>
      {fault && <Fault error={fault} hasConsole={lines.length > 0} />}
      {error && <ErrorView error={error} />}
      {lines.length > 0 && <ConsoleLines lines={lines} />}
      {hasNextPage && (
        <Button variant="default" size="xs" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Show more lines
        </Button>
      )}
    </>
  );
}

function ConsoleLines({ lines }: { lines: TenantSchemas['ConsoleLine'][] }) {
  return (
    <Section title="Console of the agent">
      <Table.ScrollContainer minWidth={500} scrollAreaProps={{ viewportProps: { tabIndex: 0 } }}>
        <Table aria-label="Console of the agent">
          <Table.Thead>
            <Table.Tr>
              {['Time', 'Level', 'Attempt', 'Line'].map((title) => (
                <Table.Th key={title}>{title}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {lines.map(({ position, at, level, attempt, text }) => (
              <Table.Tr key={position}>
                <Table.Td className={styles.time}>
                  <Time at={at} />
                </Table.Td>
                <Table.Td>{level}</Table.Td>
                <Table.Td>{attempt}</Table.Td>
                <Table.Td className={styles.line}>{text}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Section>
  );
}
