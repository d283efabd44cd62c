import { Button } from '@mantine/core';
import { useState } from 'react';
import { type DataRow, DataTable } from './data-table';

/** Rows at first, and those that a click adds: thousands of rows would make each change of a page slow. */
const ROWS_SHOWN = 100;

/** A table of loaded rows. It shows the first ones. @param name name of the table, for screen readers */
export function SimpleTable({
  name,
  titles,
  rows,
}: {
  name: string;
  titles: readonly string[];
  rows: readonly DataRow[];
}) {
  const [count, setCount] = useState(ROWS_SHOWN);
  return (
    <>
      <DataTable name={name} titles={titles} rows={rows.slice(0, count)} />
      {count < rows.length && (
        <Button variant="default" size="xs" onClick={() => setCount(count + ROWS_SHOWN)}>
          Show more rows of {name}
        </Button>
      )}
    </>
  );
}
