import { Button, Table } from '@mantine/core';
import { type ReactNode, useState } from 'react';

/** Rows at first, and those that a click adds: thousands of rows would make each change of a page slow. */
const ROWS_SHOWN = 100;

/** A table that scrolls by itself where it is wider than the page. */
export function SimpleTable({
  name,
  titles,
  rows,
}: {
  /** What it is of, for screen readers. */
  name: string;
  titles: readonly string[];
  rows: readonly { key: string; cells: readonly ReactNode[] }[];
}) {
  const [count, setCount] = useState(ROWS_SHOWN);
  return (
    <>
      <Table.ScrollContainer minWidth="40rem" type="native" tabIndex={0} role="region" aria-label={name}>
        <Table aria-label={name}>
          <Table.Thead>
            <Table.Tr>
              {titles.map((title) => (
                <Table.Th key={title} scope="col">
                  {title}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.slice(0, count).map(({ key, cells }) => (
              <Table.Tr key={key}>
                {cells.map((cell, column) => (
                  <Table.Td key={titles[column]}>{cell}</Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {count < rows.length && (
        <Button variant="default" size="xs" onClick={() => setCount(count + ROWS_SHOWN)}>
          Show more rows of {name}
        </Button>
      )}
    </>
  );
}
