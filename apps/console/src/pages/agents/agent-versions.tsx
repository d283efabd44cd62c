import { Button, Group, Modal, Select, Stack, Table, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { CodeEditor } from '../../components/code-editor';
import { ErrorView } from '../../components/error-view';
import { Time } from '../../components/time';
import { useCaller } from '../../session/caller';
import { usePrincipalName } from '../../session/principal-names';
import { type Agent, restoreVersion, openVersionsQuery, versionsQuery, versionTextQuery } from './agents-api';

/** The versions of an agent: what changed between two, and how to go back. */
export function AgentVersions({ agent, etag }: { agent: Agent; etag: string | undefined }) {
  const { can } = useCaller();
  const nameOf = usePrincipalName();
  const { data, error, refetch } = useQuery(versionsQuery(agent.slug));
  const { data: open } = useQuery(openVersionsQuery(agent.slug));
  const [restoring, setRestoring] = useState<number>();
  if (error) return <ErrorView error={error} retry={() => void refetch()} />;
  if (!data) return undefined;
  const newest = agent.version ?? 1;
  return (
    <Stack>
      <Table.ScrollContainer minWidth={500}>
        <Table aria-label="Versions">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Version</Table.Th>
              <Table.Th>Written</Table.Th>
              <Table.Th>By</Table.Th>
              <Table.Th>State</Table.Th>
              <Table.Th>Open tasks</Table.Th>
              <Table.Th>Actions</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data.versions.map(({ version, enabled, created_at: at, created_by: by, erased_at: erased }) => (
              <Table.Tr key={version}>
                <Table.Td>
                  {version}
                  {version === newest && ' stable'}
                  {version === agent.next?.version && ' next'}
                </Table.Td>
                <Table.Td>
                  <Time at={at} />
                </Table.Td>
                <Table.Td title={by ?? undefined}>{by === null ? '–' : nameOf(by)}</Table.Td>
                <Table.Td>{erased !== null ? 'contents erased' : enabled ? 'enabled' : 'disabled'}</Table.Td>
                <Table.Td>
                  {open?.versions.find((one) => one.version === version)?.open_tasks ?? '–'}
                </Table.Td>
                <Table.Td>
                  {can('agents:write') && version !== newest && erased === null && (
                    <Button
                      size="compact-xs"
                      variant="default"
                      aria-label={`Restore version ${version}`}
                      onClick={() => setRestoring(version)}
                    >
                      Restore
                    </Button>
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {data.versions.length > 1 && (
        <Comparison slug={agent.slug} versions={data.versions.map(({ version }) => version)} />
      )}
      {restoring !== undefined && (
        <RestoreDialog
          agent={agent}
          etag={etag}
          version={restoring}
          onClose={() => setRestoring(undefined)}
        />
      )}
    </Stack>
  );
}

function Comparison({ slug, versions }: { slug: string; versions: number[] }) {
  const [from, setFrom] = useState(String(versions[1]));
  const [to, setTo] = useState(String(versions[0]));
  const options = versions.map(String);
  return (
    <Stack>
      <Group>
        <Select
          label="Compare version"
          data={options}
          value={from}
          onChange={(value) => value && setFrom(value)}
        />
        <Select label="with version" data={options} value={to} onChange={(value) => value && setTo(value)} />
      </Group>
      <Difference slug={slug} from={Number(from)} to={Number(to)} />
    </Stack>
  );
}

function Difference({ slug, from, to }: { slug: string; from: number; to: number }) {
  const [older, newer] = [useQuery(versionTextQuery(slug, from)), useQuery(versionTextQuery(slug, to))];
  const error = older.error ?? newer.error;
  if (error) return <ErrorView error={error} />;
  if (older.data === undefined || newer.data === undefined) return undefined;
  if (older.data === null || newer.data === null)
    return <Text>The contents of one of them were erased.</Text>;
  if (older.data === newer.data) return <Text>There is no difference.</Text>;
  return (
    <CodeEditor
      key={`${from} ${to}`}
      label={`What changed from version ${from} to version ${to}`}
      value={newer.data}
      original={older.data}
    />
  );
}

function RestoreDialog({
  agent,
  etag,
  version,
  onClose,
}: {
  agent: Agent;
  etag: string | undefined;
  version: number;
  onClose: () => void;
}) {
  const queries = useQueryClient();
  const restore = useMutation({
    mutationFn: () => restoreVersion(agent.slug, version, etag),
    onSuccess: onClose,
    onSettled: () => queries.invalidateQueries({ queryKey: ['agents'] }),
  });
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Restore version ${version} of ${agent.slug}`}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack>
        <Text size="sm">
          This makes a new version with the contents of version {version}. New turns use it. Running turns
          finish with their version.
        </Text>
        <Difference slug={agent.slug} from={agent.version ?? 1} to={version} />
        {restore.error && <ErrorView error={restore.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button loading={restore.isPending} onClick={() => restore.mutate()}>
            Restore version {version}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
