import { SPAN_KINDS } from '@baton/contract';
import { Button, Checkbox, Group, NativeSelect, Text, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useState } from 'react';
import { readTraceSearch, SLOW_CHOICES, type TraceSearch } from './trace-search';

/** While the user types, the address changes after this many ms without a key. */
const TYPING_MS = 150;
const COUNT = new Intl.NumberFormat();

/**
 * Chooses spans of a trace, and shows their number.
 * @param hits how many spans match. Unset: nothing is filtered
 */
export function TraceFilterBar({
  search,
  change,
  hits,
  spans,
}: {
  search: TraceSearch;
  change: (search: TraceSearch) => void;
  hits: number | undefined;
  spans: number;
}) {
  // A new key empties the text field.
  const [cleared, setCleared] = useState(0);
  const choose = (changed: Partial<Record<keyof TraceSearch, string>>): void =>
    change(readTraceSearch({ ...search, ...changed }));
  const chooseLater = useDebouncedCallback(choose, TYPING_MS);
  return (
    <search aria-label="Spans of the trace">
      <Group gap="sm" align="end">
        <TextInput
          key={cleared}
          type="search"
          label="Find a span"
          placeholder="name or error"
          size="xs"
          w="14rem"
          maxLength={200}
          defaultValue={search.find ?? ''}
          onChange={({ currentTarget }) => chooseLater({ find: currentTarget.value })}
        />
        <NativeSelect
          label="Kind"
          size="xs"
          value={search.kind ?? ''}
          onChange={({ currentTarget }) => choose({ kind: currentTarget.value })}
          data={[{ value: '', label: 'all' }, ...SPAN_KINDS]}
        />
        <NativeSelect
          label="Takes"
          size="xs"
          value={search.slow ?? ''}
          onChange={({ currentTarget }) => choose({ slow: currentTarget.value })}
          data={[{ value: '', label: 'any time' }, ...SLOW_CHOICES]}
        />
        <Checkbox
          label="Errors only"
          size="sm"
          mb={6}
          checked={search.errors === 'true'}
          onChange={({ currentTarget }) => choose({ errors: currentTarget.checked ? 'true' : '' })}
        />
        {hits !== undefined && (
          <Button
            size="xs"
            variant="default"
            onClick={() => {
              setCleared(cleared + 1);
              change({});
            }}
          >
            Clear
          </Button>
        )}
      </Group>
      <Text size="xs" c="dimmed" mt={4} role="status">
        {hits === undefined
          ? `${COUNT.format(spans)} spans`
          : `${COUNT.format(hits)} of ${COUNT.format(spans)} spans match`}
      </Text>
    </search>
  );
}
