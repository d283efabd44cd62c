import { Button, Group, Skeleton, Stack } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { DataTable } from './data-table';
import { ErrorView } from './error-view';

/** A page of a list, as the REST API answers. */
export interface ListPage<T> {
  entries: T[];
  next: string | null;
}

/** A column of a table. */
export interface TableColumn<T> {
  title: string;
  cell: (entry: T) => ReactNode;
}

/** A list of the REST API as a table, page after page. `empty` is shown while there is nothing in it. */
export function PagedTable<T>({
  name,
  read,
  idOf,
  columns,
  empty,
  refreshMs,
}: {
  /** The subject of the list, for screen readers and as its key. */
  name: string;
  read: (cursor: string | undefined) => Promise<ListPage<T>>;
  idOf: (entry: T) => string;
  columns: readonly TableColumn<T>[];
  empty: ReactNode;
  /** How often it is read again, in ms. Unset: when the user comes back to the page. */
  refreshMs?: number;
}) {
  const list = useInfiniteQuery({
    queryKey: ['list', name],
    queryFn: ({ pageParam }) => read(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    ...(refreshMs !== undefined && { refetchInterval: refreshMs }),
  });
  if (list.error && !list.data) {
    return <ErrorView error={list.error} retry={() => void list.refetch()} />;
  }
  if (!list.data) return <Skeleton height="8rem" aria-label={`Loading ${name}`} role="status" />;
  const entries = list.data.pages.flatMap((page) => page.entries);
  if (entries.length === 0 && !list.hasNextPage) return empty;
  return (
    <Stack>
      {list.error && <ErrorView error={list.error} retry={() => void list.refetch()} />}
      <DataTable
        name={name}
        titles={columns.map(({ title }) => title)}
        rows={entries.map((entry) => ({ key: idOf(entry), cells: columns.map(({ cell }) => cell(entry)) }))}
      />
      {list.hasNextPage && (
        <Group justify="center">
          <Button
            variant="default"
            loading={list.isFetchingNextPage}
            onClick={() => void list.fetchNextPage()}
          >
            Show more
          </Button>
        </Group>
      )}
    </Stack>
  );
}
