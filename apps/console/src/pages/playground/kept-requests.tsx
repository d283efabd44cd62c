import { Button, Group, Select, Stack, TextInput } from '@mantine/core';
import { useMemo, useState } from 'react';
import { ErrorView } from '../../components/error-view';
import { useCaller } from '../../session/caller';
import type { Draft } from './draft';
import { KeptDrafts } from './kept-drafts';

/** The requests that this browser keeps: load, keep and remove one. */
export function KeptRequests({ draft, onChange }: { draft: Draft; onChange: (draft: Draft) => void }) {
  const { tenant } = useCaller();
  const drafts = useMemo(() => new KeptDrafts(tenant), [tenant]);
  const [kept, setKept] = useState(() => drafts.read());
  const [name, setName] = useState('');
  const [error, setError] = useState<unknown>();
  const keep = (): void => {
    try {
      setKept(drafts.keep({ name, draft }));
      setError(undefined);
    } catch (caught) {
      setError(caught);
    }
  };
  const chosen = kept.find((entry) => entry.name === name);
  return (
    <Stack gap="xs">
      <Group align="end" gap="xs">
        <Select
          label="Kept requests"
          placeholder={kept.length === 0 ? 'none' : 'choose one'}
          data={kept.map((entry) => entry.name)}
          value={chosen ? name : null}
          onChange={(value) => {
            const found = kept.find((entry) => entry.name === value);
            if (!found) return;
            setName(found.name);
            onChange(found.draft);
          }}
        />
        <TextInput label="Keep as" value={name} onChange={({ currentTarget: { value } }) => setName(value)} />
        <Button variant="default" onClick={keep} disabled={name.trim() === ''}>
          Keep
        </Button>
        <Button variant="default" onClick={() => setKept(drafts.remove(name))} disabled={!chosen}>
          Remove
        </Button>
      </Group>
      {error !== undefined && <ErrorView error={error} />}
    </Stack>
  );
}
