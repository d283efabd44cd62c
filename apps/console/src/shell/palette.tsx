import { Badge, Group, Loader, Modal, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type KeyboardEvent, useEffect, useState } from 'react';
import { answerOf, api } from '../api/client';
import { ErrorView } from '../components/error-view';
import { agentsQuery } from '../api/agents-query';
import { useCaller } from '../session/caller';
import { isForOperators } from '../session/operator';
import { UUID } from '../components/uuid';
import type { ShownEntry } from './navigation';
import { matching, type PaletteEntry } from './palette-entries';
import styles from './palette.module.css';

/** Entries of each kind, so that the list fits a screen. */
const MAX_OF_A_KIND = 8;
/** The search waits until the user has not typed for this long, in ms. */
const PAUSE_MS = 200;
/** A search for one letter finds everything. */
const MIN_LETTERS = 2;
const MAX_LABEL = 80;
/** A shorter text is not an id of a task. */
const MIN_ID = 8;

/** Search results other than pages. */
interface Found {
  entries: readonly PaletteEntry[];
  isSearching: boolean;
  error?: Error | null;
}

/** Finds pages, agents and tasks by words or id, and opens them. It needs the keyboard alone. */
export function Palette({ pages, close }: { pages: readonly ShownEntry[]; close: () => void }) {
  return isForOperators ? (
    <PaletteOf pages={pages} close={close} useFound={useFoundByOperator} what="pages, or a task by its id" />
  ) : (
    <PaletteOf pages={pages} close={close} useFound={useFound} what="pages, agents and tasks" />
  );
}

function PaletteOf({
  pages,
  close,
  useFound: useEntries,
  what,
}: {
  pages: readonly ShownEntry[];
  close: () => void;
  useFound: (text: string) => Found;
  what: string;
}) {
  const [text, setText] = useState('');
  const [settled] = useDebouncedValue(text.trim(), PAUSE_MS);
  const [chosen, setChosen] = useState(0);
  const navigate = useNavigate();
  const { entries: others, isSearching, error } = useEntries(settled);
  const ofPages = pages.map(({ label, to }) => ({ kind: 'Page', label, to }));
  const entries = [...matching(ofPages, text, MAX_OF_A_KIND), ...others];
  const last = entries.length - 1;
  const isWaiting = isSearching || settled !== text.trim();
  const current = Math.min(chosen, last);
  const active = entries[current];
  useEffect(() => {
    document.getElementById(optionId(current))?.scrollIntoView({ block: 'nearest' });
  }, [current]);
  const open = (entry: PaletteEntry | undefined): void => {
    if (!entry) return;
    close();
    void navigate({ to: entry.to, search: entry.search ?? {} });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    // Enter may end the composition of a word.
    if (event.nativeEvent.isComposing) return;
    const moves: Record<string, number> = {
      ArrowDown: current >= last ? 0 : current + 1,
      ArrowUp: current <= 0 ? last : current - 1,
    };
    const next = moves[event.key];
    if (next !== undefined) setChosen(next);
    else if (event.key === 'Enter') open(active);
    else return;
    event.preventDefault();
  };
  return (
    <Modal
      opened
      onClose={close}
      title={`Find ${what}`}
      size="lg"
      yOffset="10vh"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <TextInput
        data-autofocus
        role="combobox"
        aria-label={`Find ${what}`}
        aria-expanded={entries.length > 0}
        aria-controls="palette-entries"
        aria-autocomplete="list"
        aria-activedescendant={active && optionId(current)}
        value={text}
        maxLength={200}
        autoComplete="off"
        spellCheck={false}
        onChange={({ currentTarget }) => {
          setText(currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
        rightSection={isWaiting && <Loader size="xs" aria-label="Searching" />}
      />
      {error && <ErrorView error={error} />}
      {entries.length > 0 && (
        <div id="palette-entries" role="listbox" aria-label="Found" className={styles.entries} tabIndex={-1}>
          {entries.map((entry, index) => (
            <div
              key={`${entry.kind} ${entry.to} ${entry.search?.id ?? ''}`}
              id={optionId(index)}
              role="option"
              aria-selected={index === current}
              tabIndex={-1}
              className={styles.entry}
              onClick={() => open(entry)}
              onKeyDown={onKeyDown}
            >
              <Group gap="sm" wrap="nowrap" justify="space-between">
                <Text size="sm" truncate>
                  {entry.label}
                </Text>
                <Badge variant="outline" color="gray.7" c="inherit">
                  {entry.kind}
                </Badge>
              </Group>
              {entry.hint !== undefined && (
                <Text size="xs" truncate>
                  {entry.hint}
                </Text>
              )}
            </div>
          ))}
        </div>
      )}
      <Text size="sm" role="status" mt="xs">
        {entries.length === 0 && !isWaiting ? 'Nothing found.' : ''}
      </Text>
    </Modal>
  );
}

const optionId = (index: number): string => `palette-entry-${index}`;

/** Agents and tasks that the caller sees. */
function useFound(text: string): Found {
  const { can } = useCaller();
  const agents = useQuery({ ...agentsQuery, enabled: can('agents:read', 'agents:write') });
  const tasks = useQuery({
    queryKey: ['palette', 'tasks', text],
    queryFn: ({ signal }) => findTasks(text, signal),
    enabled: can('tasks:read', 'agents:call') && text.length >= MIN_LETTERS,
    staleTime: 0,
  });
  const agentEntries = (agents.data?.agents ?? []).map(({ slug, name, description }) => ({
    kind: 'Agent',
    label: slug,
    hint: [name, description].filter(Boolean).join(' · '),
    to: `/agents/${slug}`,
  }));
  return {
    entries: [...(text === '' ? [] : matching(agentEntries, text, MAX_OF_A_KIND)), ...(tasks.data ?? [])],
    isSearching: tasks.isFetching,
    error: tasks.error ?? agents.error,
  };
}

/** By the whole id also a task that is too old for the search. */
async function findTasks(text: string, signal: AbortSignal): Promise<PaletteEntry[]> {
  const query = { q: text, limit: MAX_OF_A_KIND };
  const { tasks } = await answerOf(api.GET('/v1/tasks', { params: { query }, signal }));
  const found = tasks.map(({ task_id: id, first_message: message, agent_id: agent, state = 'unknown' }) => ({
    kind: 'Task',
    label: message?.slice(0, MAX_LABEL) ?? id,
    hint: [state, agent, id].join(' · '),
    to: `/tasks/${id}`,
  }));
  if (found.length > 0 || !UUID.test(text)) return found;
  return [{ kind: 'Task', label: text, hint: 'Open the task with this id', to: `/tasks/${text}` }];
}

/** A task of any tenant, by its id. Operators search no texts. */
function useFoundByOperator(text: string): Found {
  const isId = text.length >= MIN_ID && !/\s/.test(text);
  const hint = 'Find the task with this id, of any tenant';
  const task = { kind: 'Task', label: text, hint, to: '/operators/task', search: { id: text } };
  return { entries: isId ? [task] : [], isSearching: false };
}
