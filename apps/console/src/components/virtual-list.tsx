import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef } from 'react';
import styles from './virtual-list.module.css';

/** Rows that are drawn above and below those that are seen. */
const AHEAD = 10;

/**
 * A list that draws the rows that are seen, however many there are. Rows may have any height, and may change it.
 * @param name the label of the list for screen readers @param estimate height of a row that was not drawn yet, in px
 */
export function VirtualList<T>({
  name,
  rows,
  keyOf,
  estimate,
  children,
}: {
  name: string;
  rows: readonly T[];
  keyOf: (row: T) => string | number;
  estimate: number;
  children: (row: T) => React.ReactNode;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => estimate,
    overscan: AHEAD,
    getItemKey: (index) => {
      const row = rows[index];
      return row === undefined ? index : keyOf(row);
    },
  });
  return (
    <div
      ref={scroller}
      className={styles.scroller}
      role="region"
      aria-label={`${name}, to scroll`}
      tabIndex={0}
    >
      <ol className={styles.list} aria-label={name} style={{ height: list.getTotalSize() }}>
        {list.getVirtualItems().map(({ key, index, start }) => {
          const row = rows[index];
          if (row === undefined) return null;
          return (
            <li
              key={key}
              ref={list.measureElement}
              data-index={index}
              aria-posinset={index + 1}
              aria-setsize={rows.length}
              className={styles.row}
              style={{ transform: `translateY(${start}px)` }}
            >
              {children(row)}
            </li>
          );
        })}
      </ol>
    </div>
  );
}
