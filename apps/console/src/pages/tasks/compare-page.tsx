import { Badge, Button, Group, NativeSelect, Stack, Table, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { answerOf, api } from '../../api/client';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { Page } from '../../components/page';
import type { Part } from '../../components/part-view';
import { type Artifact, joinTexts, type Message } from '../../a2a/artifacts';
import { lengthText, type Task } from './task-words';
import { UUID } from '../../components/uuid';
import styles from './tasks.module.css';

const route = getRouteApi('/app/tasks/$id/compare');
/** Other tasks of the agent that can be chosen: the newest. */
const MAX_CHOICES = 50;
/** Characters of a text that are shown and compared. */
const MAX_TEXT = 20_000;

const useTask = (id: string | undefined) =>
  useQuery({
    queryKey: ['task', id],
    queryFn: ({ signal }) =>
      answerOf(api.GET('/v1/tasks/{id}', { params: { path: { id: id ?? '' } }, signal })),
    enabled: id !== undefined,
  });

/** Two tasks beside each other, and where they differ. */
export function ComparePage() {
  const { id } = route.useParams();
  const { with: other } = route.useSearch();
  const one = useTask(id);
  const two = useTask(other);
  const error = one.error ?? two.error;
  return (
    <Page
      title="Compare two tasks"
      actions={
        <Button variant="default" component={Link} to={`/tasks/${id}`}>
          Back to the task
        </Button>
      }
    >
      {one.data && <Choice task={one.data} />}
      {error && <ErrorView error={error} />}
      {one.data && two.data && <Comparison one={one.data} two={two.data} />}
      {other === undefined && (
        <EmptyState title="Choose the other task">
          Choose another task of the same agent, or paste the id of any task that you see.
        </EmptyState>
      )}
    </Page>
  );
}

/** Chooses the other task. */
function Choice({ task: { task_id: id, agent_id: agent } }: { task: Task }) {
  const { with: other } = route.useSearch();
  const navigate = route.useNavigate();
  const { data } = useQuery({
    queryKey: ['tasks-of-agent', agent],
    queryFn: () => answerOf(api.GET('/v1/tasks', { params: { query: { agent, limit: MAX_CHOICES } } })),
  });
  const choose = (chosen: string) => void navigate({ search: chosen === '' ? {} : { with: chosen } });
  const others = (data?.tasks ?? []).filter(({ task_id: each }) => each !== id);
  return (
    <Group align="end">
      <NativeSelect
        label="Other task of the agent"
        value={other ?? ''}
        onChange={({ currentTarget }) => choose(currentTarget.value)}
        data={[
          { value: '', label: 'choose' },
          // One that was pasted may be older, or of another agent.
          ...(other !== undefined && !others.some(({ task_id: each }) => each === other) ? [other] : []),
          ...others.map(({ task_id: each, state, updated_at: at }) => ({
            value: each,
            label: `${state ?? 'unknown'} ${at === undefined ? '' : new Date(at).toLocaleString()} ${each}`,
          })),
        ]}
      />
      <TextInput
        label="Or its id"
        placeholder="id"
        onChange={({ currentTarget }) =>
          UUID.test(currentTarget.value.trim()) && choose(currentTarget.value.trim())
        }
      />
    </Group>
  );
}

function Comparison({ one, two }: { one: Task; two: Task }) {
  const rows = rowsOf(one).map(([name, left], index) => [name, left, rowsOf(two)[index]?.[1] ?? ''] as const);
  const differences = rows.filter(([name, left, right]) => name !== 'Task' && left !== right).length;
  return (
    <Stack gap="xs">
      <Text size="sm" role="status">
        {differences === 0
          ? 'They do not differ.'
          : `They differ in ${differences} of ${rows.length - 1} points.`}
      </Text>
      <Table.ScrollContainer
        minWidth="40rem"
        type="native"
        tabIndex={0}
        role="region"
        aria-label="Comparison"
      >
        <Table aria-label="Comparison" layout="fixed">
          <Table.Thead>
            <Table.Tr>
              <Table.Th w="11rem" scope="col">
                What
              </Table.Th>
              <Table.Th scope="col">This task</Table.Th>
              <Table.Th scope="col">The other task</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map(([name, left, right]) => (
              <Table.Tr key={name}>
                <Table.Th scope="row">
                  {name}{' '}
                  {name !== 'Task' && left !== right && (
                    <Badge variant="outline" c="inherit" tt="none">
                      differs
                    </Badge>
                  )}
                </Table.Th>
                {[left, right].map((text, index) => (
                  // The two columns never change their places.
                  <Table.Td key={index} valign="top">
                    {name === 'Task' ? (
                      <Link to="/tasks/$id" params={{ id: text }} className={styles.link}>
                        {text}
                      </Link>
                    ) : (
                      <div className={styles.compared}>{text === '' ? '–' : text}</div>
                    )}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Stack>
  );
}

/** What is compared, as text. The names are the same for every task. */
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
