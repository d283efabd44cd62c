import { Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { Page } from '../../components/page';
import { Section } from '../../components/section';
import { StateWord } from '../../components/state-word';
import { Time } from '../../components/time';
import { SimpleTable } from '../../components/simple-table';
import { workersQuery } from './workers';

const MIB = 1024 * 1024;

/** The workers of the last hour: who is alive, how busy it is, and which agents it could not load. */
export function WorkersPage() {
  const { data, error, refetch } = useQuery(workersQuery);
  const workers = data?.workers ?? [];
  const alive = workers.filter((worker) => worker.alive);
  const sum = (of: 'concurrency' | 'running') => alive.reduce((all, worker) => all + worker[of], 0);
  return (
    <Page title="Workers">
      {error && <ErrorView error={error} retry={() => void refetch()} />}
      {!data && !error && <Skeleton height="8rem" aria-label="Loading workers" role="status" />}
      {data && workers.length === 0 && (
        <EmptyState title="No worker has sent a heartbeat in the last hour" command="npm run start:worker">
          Tasks are accepted and wait. Start a worker, and look into the log of the one that has ended.
        </EmptyState>
      )}
      {workers.length > 0 && (
        <>
          <Text>
            {alive.length} alive, {sum('running')} of {sum('concurrency')} slots used,{' '}
            {Math.max(0, sum('concurrency') - sum('running'))} free
          </Text>
          <SimpleTable
            name="Workers"
            titles={[
              'Worker',
              'State',
              'Slots used',
              'Slots free',
              'Memory',
              'Release',
              'Alive since',
              'Last heartbeat',
              'Agents not loaded',
            ]}
            rows={workers.map((worker) => ({
              key: worker.id,
              cells: [
                <>
                  {worker.host}, process {worker.pid}
                  <Text size="xs">{worker.id}</Text>
                </>,
                <StateWord
                  key="state"
                  colour={worker.alive ? 'green' : 'red'}
                  word={worker.alive ? 'alive' : 'silent'}
                />,
                `${worker.running} of ${worker.concurrency}`,
                worker.alive ? Math.max(0, worker.concurrency - worker.running) : 0,
                worker.memory_bytes === null ? '–' : `${Math.round(worker.memory_bytes / MIB)} MiB`,
                worker.version ?? '–',
                <Time key="since" at={worker.started_at} />,
                <Time key="seen" at={worker.seen_at} />,
                worker.load_failures.length,
              ],
            }))}
          />
          <Failures workers={workers} />
        </>
      )}
    </Page>
  );
}

/** The agents in code that workers could not load when they started. */
function Failures({ workers }: { workers: readonly Worker[] }) {
  const failures = workers.flatMap((worker) =>
    worker.load_failures.map((failure) => ({ ...failure, worker: worker.id, since: worker.started_at })),
  );
  if (failures.length === 0) return null;
  return (
    <Section title="Agents that could not be loaded">
      <SimpleTable
        name="Agents that could not be loaded"
        titles={['Agent', 'File', 'Reason', 'Worker', 'Since']}
        rows={failures.map(({ agent, file, line, reason, worker, since }) => ({
          key: `${worker} ${file} ${reason}`,
          cells: [
            agent ?? '–',
            line === null ? file : `${file}:${line}`,
            reason,
            worker,
            <Time key="since" at={since} />,
          ],
        }))}
      />
    </Section>
  );
}

type Worker = Awaited<ReturnType<NonNullable<(typeof workersQuery)['queryFn']>>>['workers'][number];
