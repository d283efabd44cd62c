import { Group, Text } from '@mantine/core';
import type { DayOfTasks } from './trouble';
import styles from './days-chart.module.css';

const HEIGHT = 100;
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' });
const SHORT_DAY = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' });
const COUNT = new Intl.NumberFormat(undefined, { notation: 'compact', maximumSignificantDigits: 2 });

/** The tasks of each day as bars: the lower part of a bar has failed. The pointer, and the list that is read aloud, name the numbers. */
export function DaysChart({ days }: { days: readonly DayOfTasks[] }) {
  const most = Math.max(1, ...days.map(({ tasks }) => tasks));
  const heightOf = (count: number): number => (count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT));
  const [first, last] = [days[0], days.at(-1)];
  return (
    <div className={styles.chart}>
      <ul className={styles.days} aria-label="Tasks a day (UTC)">
        {days.map(({ day, tasks, failed }) => {
          const text = `${DAY.format(new Date(day))}: ${tasks} tasks, ${failed} failed`;
          return (
            <li key={day} title={text}>
              <span className={styles.text}>{text}</span>
              <span className={styles.count} aria-hidden>
                {tasks > 0 && COUNT.format(tasks)}
              </span>
              <svg
                width="100%"
                height={Math.max(1, heightOf(tasks))}
                viewBox={`0 0 1 ${Math.max(1, heightOf(tasks))}`}
                preserveAspectRatio="none"
                aria-hidden
              >
                <rect className={styles.base} width={1} height={1} />
                <rect className={styles.tasks} width={1} height={heightOf(tasks)} />
                <rect
                  className={styles.failed}
                  y={heightOf(tasks) - heightOf(failed)}
                  width={1}
                  height={heightOf(failed)}
                />
              </svg>
            </li>
          );
        })}
      </ul>
      {first && last && (
        <Group justify="space-between" aria-hidden>
          <Text size="xs" c="dimmed">
            {SHORT_DAY.format(new Date(first.day))}
          </Text>
          <Text size="xs" c="dimmed">
            {SHORT_DAY.format(new Date(last.day))}
          </Text>
        </Group>
      )}
    </div>
  );
}
