import { Group, Text } from '@mantine/core';
import { Section } from '../../components/section';
import { TaskLink } from '../../components/task-link';
import { useAgentNames } from '../../components/agent-names';
import { StateBadge, type Task } from './task-words';
import styles from './tasks.module.css';

/** Descendants that the server shows. */
const MAX_DESCENDANTS = 500;

/** The tasks that the task has led to, as a tree. */
export function Descendants({ task: { task_id: id, descendants } }: { task: Task }) {
  const names = useAgentNames();
  if (descendants.length === 0) return null;
  const children = new Map<string, typeof descendants>();
  for (const each of descendants)
    children.set(each.parent_id, [...(children.get(each.parent_id) ?? []), each]);
  const branch = (parent: string): React.ReactNode => (
    <ul className={styles.tree} aria-label={parent === id ? 'Child tasks' : `Child tasks of ${parent}`}>
      {children.get(parent)?.map(({ task_id: child, agent_id: agent, state }) => (
        <li key={child}>
          <Group gap="xs">
            <StateBadge state={state} />
            <Text size="sm" span>
              {names.get(agent) ?? agent}
            </Text>
            <TaskLink id={child} />
          </Group>
          {children.has(child) && branch(child)}
        </li>
      ))}
    </ul>
  );
  return (
    <Section title="Child tasks">
      {branch(id)}
      {descendants.length === MAX_DESCENDANTS && (
        <Text size="sm">
          These are the nearest {MAX_DESCENDANTS}. Open one of them to see what is below it.
        </Text>
      )}
    </Section>
  );
}
