import { Code, Group, Text } from '@mantine/core';
import { sentMessages } from '@baton/contract';
import { useMemo, useState } from 'react';
import type { Message } from '../../a2a/artifacts';
import { COMMAND_LINE } from '../../command-line';
import { Json } from '../../components/part-view';
import { Section } from '../../components/section';
import { Time } from '../../components/time';
import { VirtualList } from '../../components/virtual-list';
import { Decision } from './decision';
import { GivenAnswers } from './given-answers';
import { entriesOf, type Entry } from './log-entries';
import type { LogEvent, TaskLog } from './task-log';
import { Parts } from './task-output';
import type { Task } from './task-words';
import styles from './tasks.module.css';

/** Events of an entry whose JSON is shown. */
const MAX_RAW = 100;
/** Height of most entries. */
const ENTRY_PX = 56;

/** A row of the log: an entry, or how many events are not shown. */
type Row = Entry | { gone: number };

/** The log of the task. Its first message is always shown. */
export function Timeline({ task, log }: { task: Task; log: TaskLog }) {
  const { events, first, times } = log;
  const messages = useMemo(() => sentMessages<Message>(task), [task]);
  const entries = useMemo(() => entriesOf(events, messages, times), [events, messages, times]);
  const begin = useMemo(() => entriesOf(first ? [first] : [], messages, times), [first, messages, times]);
  const later = entries[0]?.seq === first?.seq ? entries.slice(1) : entries;
  const gone = (events[0]?.seq ?? 1) - (first?.seq ?? 0) - 1;
  const rows: Row[] = [...begin, ...(gone > 0 ? [{ gone }] : []), ...later];
  return (
    <Section title="Log">
      <VirtualList
        name="Events of the task"
        rows={rows}
        keyOf={(row) => ('gone' in row ? 'gone' : row.seq)}
        estimate={ENTRY_PX}
      >
        {(row) => (
          <div className={styles.entry}>
            {'gone' in row ? (
              <Text size="sm">
                {row.gone} events before these are not shown. All of them:{' '}
                <Code>
                  {COMMAND_LINE} tasks logs {task.task_id}
                </Code>
              </Text>
            ) : (
              <EntryRow entry={row} />
            )}
          </div>
        )}
      </VirtualList>
    </Section>
  );
}

function EntryRow({ entry: { seq, title, approval, answered, at, parts, raw } }: { entry: Entry }) {
  return (
    <>
      <Group gap="xs">
        <Text size="sm" fw={600}>
          {seq} · {title}
        </Text>
        {approval && <Decision of={approval} />}
        {at !== undefined && (
          <Text size="sm" span>
            <Time at={at} />
          </Text>
        )}
      </Group>
      {answered && <GivenAnswers {...answered} />}
      <Parts parts={parts} />
      {raw.length > 1 && <Text size="sm">{raw.length} pieces</Text>}
      <Raw seq={seq} events={raw} />
    </>
  );
}

/** The JSON of an entry. It is made when it is opened. */
function Raw({ seq, events }: { seq: number; events: readonly LogEvent[] }) {
  const [isOpen, setOpen] = useState(false);
  const shown = events.slice(0, MAX_RAW);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary aria-label={`JSON of event ${seq}`}>
        <Text span size="xs">
          JSON
        </Text>
      </summary>
      {isOpen && <Json value={events.length === 1 ? events[0] : shown} />}
      {isOpen && events.length > MAX_RAW && (
        <Text size="xs">
          These are the first {MAX_RAW} of {events.length} events.
        </Text>
      )}
    </details>
  );
}
