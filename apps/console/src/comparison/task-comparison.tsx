import { Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { diffWordsWithSpace } from 'diff';
import { answerOf, api } from '../api/client';
import { type Artifact, joinTexts, type Message } from '../a2a/artifacts';
import { isTerminal, isWaiting } from '../a2a/task-states';
import type { Part } from '../components/part-view';
import type { TenantSchemas } from '@baton/contract';
import { lengthText } from '../a2a/task-length';
import { StateWord } from '../components/state-word';
import tableStyles from '../components/data-table.module.css';
import styles from './task-comparison.module.css';

type Task = TenantSchemas['Task'];

/** Characters of a text that are shown and compared. */
const MAX_TEXT = 20_000;
/** Texts that differ in more words are shown without marks: marks everywhere show no difference. */
const MAX_EDITS = 2_000;
/** Texts that take longer to compare are shown without marks: the page stands still meanwhile. */
const MAX_DIFF_MS = 100;
/** Between two reads of a task that has not ended. */
const POLL_MS = 1_000;

/** A task; read again until it has ended. Unset: none is chosen. */
export const useComparedTask = (id: string | undefined) =>
  useQuery({
    queryKey: ['task', id],
    queryFn: ({ signal }) =>
      answerOf(api.GET('/v1/tasks/{id}', { params: { path: { id: id ?? '' } }, signal })),
    enabled: id !== undefined,
    refetchInterval: ({ state: { data } }) =>
      data && !isTerminal(data.state) && !isWaiting(data.state) ? POLL_MS : false,
  });

/**
 * Two tasks beside each other, and where they differ: their outputs word by word.
 * @param names the labels of the tasks
 */
export function TaskComparison({
  one,
  two,
  names = ['This task', 'The other task'],
}: {
  one: Task;
  two: Task;
  names?: readonly [string, string];
}) {
  const rows = rowsOf(one).map(([name, left], index) => [name, left, rowsOf(two)[index]?.[1] ?? ''] as const);
  const differences = rows.filter(([name, left, right]) => name !== 'Task' && left !== right).length;
  return (
    <Stack gap="xs">
      <Text size="sm" role="status">
        {differences === 0
          ? 'They do not differ.'
          : `They differ in ${differences} of ${rows.length - 1} points.`}
      </Text>
      <div className={tableStyles.scroller} tabIndex={0} role="region" aria-label="Comparison">
        <Table aria-label="Comparison" layout="fixed" className={tableStyles.wide}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th w="11rem" scope="col">
                What
              </Table.Th>
              <Table.Th scope="col">{names[0]}</Table.Th>
              <Table.Th scope="col">{names[1]}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map(([name, left, right]) => (
              <Table.Tr key={name}>
                <Table.Th scope="row" style={{ verticalAlign: 'top' }}>
                  {name} {name !== 'Task' && left !== right && <StateWord colour="blue" word="differs" />}
                </Table.Th>
                {[left, right].map((text, index) => (
                  // The two columns are always in this order.
                  <Table.Td key={index} valign="top" data-title={names[index]}>
                    {name === 'Task' ? (
                      <Link to="/tasks/$id" params={{ id: text }} className={styles.link}>
                        {text}
                      </Link>
                    ) : (
                      <div className={styles.compared}>
                        {text === '' ? '–' : name === 'Output' ? wordsOf(left, right, index) : text}
                      </div>
                    )}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
    </Stack>
  );
}

/** A text with the words marked that the other one does not have. @param side 0: the left one */
function wordsOf(left: string, right: string, side: number) {
  const changes = diffWordsWithSpace(left, right, { timeout: MAX_DIFF_MS, maxEditLength: MAX_EDITS });
  // Too different.
  if (!changes) return side === 0 ? left : right;
  const Mark = side === 0 ? 'del' : 'ins';
  return changes
    .filter(({ added, removed }) => !(side === 0 ? added : removed))
    .map(({ value, added, removed }, i) =>
      // The order of the words is fixed.
      added || removed ? <Mark key={i}>{value}</Mark> : <span key={i}>{value}</span>,
    );
}

/** The compared values, as text. The names are the same for every task. */
function rowsOf(task: Task): [string, string][] {
  const {
    history = [],
    artifacts = [],
    status,
    metadata,
  } = task.task as {
    history?: Message[];
    artifacts?: Artifact[];
    status?: { message?: Message };
    metadata?: Record<string, unknown>;
  };
  const kindOf = (artifact: Artifact) => artifact.metadata?.['baton.event'];
  const said = history.filter(({ role }) => role === 'ROLE_USER');
  const reply = artifacts.filter((each) => kindOf(each) === undefined);
  const calls = artifacts.filter((each) => kindOf(each) !== undefined && kindOf(each) !== 'reasoning');
  const usage = (metadata?.['baton.usage'] ?? {}) as { inputTokens?: number; outputTokens?: number };
  const cost = task.model_calls.reduce((sum, call) => sum + (call.cost ?? 0), 0);
  const output = [...reply.flatMap(({ parts = [] }) => joinTexts(parts)), ...(status?.message?.parts ?? [])];
  return [
    ['Task', task.task_id],
    ['State', task.state ?? 'unknown'],
    ['Input', textOf(said.flatMap(({ parts = [] }) => parts))],
    ['Output', textOf(output)],
    [
      'Tool calls',
      shortened(
        calls.map(({ name, artifactId, parts = [] }) => `${name ?? artifactId} ${textOf(parts)}`).join('\n'),
      ),
    ],
    ['Error', task.error?.message ?? ''],
    ['Duration', lengthText(task) ?? ''],
    ['Input tokens', String(usage.inputTokens ?? 0)],
    ['Output tokens', String(usage.outputTokens ?? 0)],
    ['Cost', task.currency === null ? '' : `${Number(cost.toFixed(6))} ${task.currency}`],
    ['Calls of models', String(task.model_calls.length)],
    ['Version of the agent', task.agent_version === null ? '' : String(task.agent_version)],
    ['Attempts', String(task.runs.reduce((sum, { attempt }) => sum + attempt, 0))],
    ['Child tasks', String(task.child_ids.length)],
  ];
}

const textOf = (parts: readonly Part[]): string =>
  shortened(
    parts
      .map(({ text, data, filename, url, mediaType }) =>
        data === undefined
          ? (text ?? filename ?? url ?? mediaType ?? 'a file')
          : JSON.stringify(data, undefined, 1),
      )
      .join('\n'),
  );

const shortened = (text: string): string => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);
