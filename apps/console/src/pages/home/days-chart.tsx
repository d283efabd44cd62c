import type { DayOfTasks } from './trouble';
import styles from './days-chart.module.css';

const HEIGHT = 100;
const BAR = 20;
const GAP = 6;
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' });

/** The tasks of each day as bars: the lower part of a bar has failed. The pointer, and the list that is read aloud, name the numbers. */
export function DaysChart({ days }: { days: readonly DayOfTasks[] }) {
  const most = Math.max(1, ...days.map(({ tasks }) => tasks));
  const heightOf = (count: number): number => (count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT));
  return (
    <ul className={styles.days} aria-label="Tasks a day (UTC)">
      {days.map(({ day, tasks, failed }) => {
        const text = `${DAY.format(new Date(day))}: ${tasks} tasks, ${failed} failed`;
        return (
          <li key={day} title={text}>
            <span className={styles.text}>{text}</span>
            <svg width={BAR + GAP} height={HEIGHT} aria-hidden>
              <rect className={styles.base} y={HEIGHT - 1} width={BAR} height={1} />
              <rect
                className={styles.tasks}
                y={HEIGHT - heightOf(tasks)}
                width={BAR}
                height={heightOf(tasks)}
              />
              <rect
                className={styles.failed}
                y={HEIGHT - heightOf(failed)}
                width={BAR}
                height={heightOf(failed)}
              />
            </svg>
          </li>
        );
      })}
    </ul>
  );
}
