import { Table } from '@mantine/core';
import type { ReactNode } from 'react';
import styles from './data-table.module.css';

/** A row of a table. */
export interface DataRow {
  key: string;
  cells: readonly ReactNode[];
}

/** A number, with its unit or currency if it has one. */
const NUMBER = /^[\d.,]+( ?[A-Z]{3}| ?%| (?:bytes|[KMGT]iB)| ms| s| min| h| d)?$/;
const FEW = 2;
const isNumber = (cell: ReactNode): boolean =>
  typeof cell === 'number' || (typeof cell === 'string' && NUMBER.test(cell));
const isNothing = (cell: ReactNode): boolean => cell === '–' || cell === null || cell === false;

/**
 * A table that scrolls by itself where it is wider than the page, and whose rows are cards on a narrow screen. Columns of numbers
 * are aligned at the right. A card leaves out empty cells.
 * @param name name of the table, for screen readers
 */
export function DataTable({
  name,
  titles,
  rows,
}: {
  name: string;
  titles: readonly string[];
  rows: readonly DataRow[];
}) {
  // Few columns fit on every screen.
  const tableClass = titles.length > FEW ? `${styles.table} ${styles.wide}` : styles.table;
  const classes = titles.map((_, column) => {
    const cells = rows.map((row) => row.cells[column]);
    const isNumeric = cells.some(isNumber) && cells.every((cell) => isNumber(cell) || isNothing(cell));
    return isNumeric ? styles.number : undefined;
  });
  return (
    <div className={styles.scroller} tabIndex={0} role="region" aria-label={name}>
      <Table aria-label={name} className={tableClass}>
        <Table.Thead>
          <Table.Tr>
            {titles.map((title, column) => (
              <Table.Th key={title} scope="col" className={classes[column]}>
                {title}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ key, cells }) => (
            <Table.Tr key={key}>
              {cells.map((cell, column) => (
                <Table.Td
                  key={titles[column]}
                  data-title={titles[column]}
                  className={isNothing(cell) ? `${styles.nothing} ${classes[column] ?? ''}` : classes[column]}
                >
                  <div>{cell ?? '–'}</div>
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}
