import { useQuery } from '@tanstack/react-query';
import { Section } from '../../components/section';
import { SimpleTable } from '../../components/simple-table';
import { Time } from '../../components/time';
import { useCaller } from '../../session/caller';
import type { Task } from './task-words';
import { effectsQuery } from './tasks-query';

/** What the task has done outside of Baton, for those who may change agents. Nothing, if it has done nothing. */
export function Effects({ task }: { task: Task }) {
  const { can } = useCaller();
  const { data } = useQuery({ ...effectsQuery(task), enabled: can('agents:write') });
  if (!data || data.effects.length === 0) return null;
  return (
    <Section title="Effects outside">
      <SimpleTable
        name="Effects outside"
        titles={['Effect', 'Kind', 'Outcome', 'Attempts', 'Begun', 'Ended', 'Key']}
        rows={data.effects.map((effect, i) => ({
          key: String(i),
          cells: [
            effect.name,
            effect.kind,
            effect.unknown_outcome
              ? `${effect.outcome} (was unknown: ${effect.unknown_outcome})`
              : effect.outcome,
            effect.attempts,
            <Time key="begun" at={effect.begun_at} />,
            <Time key="ended" at={effect.ended_at} />,
            effect.key ?? '–',
          ],
        }))}
      />
    </Section>
  );
}
