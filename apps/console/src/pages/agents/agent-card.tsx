import { Alert, SegmentedControl, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { fetchApi } from '../../api/client';
import { CodeEditor } from '../../components/code-editor';
import { ErrorView } from '../../components/error-view';

const VERSIONS = ['1.0', '0.3'];
const READERS = [
  { value: 'card', label: 'Everybody' },
  { value: 'extended', label: 'Callers with a token' },
];

/** Where a card is. The extended one has more for callers with a token (A2A 1.0 §3.1.11). */
const PATHS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  card: { '1.0': '.well-known/agent-card.json', 0.3: '.well-known/agent-card.json' },
  extended: { '1.0': 'extendedAgentCard', 0.3: 'v1/card' },
};

/** The card of an agent as others see it. */
export function AgentCard({ slug }: { slug: string }) {
  const [version, setVersion] = useState('1.0');
  const [reader, setReader] = useState('card');
  const { data, error, refetch } = useQuery({
    queryKey: ['agents', slug, 'card', version, reader],
    queryFn: async () => {
      const path = `/agents/${encodeURIComponent(slug)}/${PATHS[reader]?.[version] ?? ''}`;
      const response = await fetchApi(path, { headers: { 'a2a-version': version } });
      const card = (await response.json()) as Record<string, unknown>;
      return { card, signature: await signatureOf(card) };
    },
  });
  return (
    <Stack>
      <Group>
        <SegmentedControl
          aria-label="Protocol version"
          data={VERSIONS}
          value={version}
          onChange={setVersion}
        />
        <SegmentedControl
          aria-label="Who reads the card"
          data={READERS}
          value={reader}
          onChange={setReader}
        />
      </Group>
      {error && <ErrorView error={error} retry={() => void refetch()} />}
      {data && (
        <>
          <Alert
            variant="light"
            color={data.signature.isGood ? 'green' : 'gray'}
            title="Signature"
            role="status"
          >
            <Text size="sm">{data.signature.text}</Text>
          </Alert>
          <CodeEditor label={`Card of ${slug}`} value={JSON.stringify(data.card, null, 2)} />
        </>
      )}
    </Stack>
  );
}

/** Checks the signature with the keys that this server publishes. */
async function signatureOf(card: Record<string, unknown>): Promise<{ isGood: boolean; text: string }> {
  if (!Array.isArray(card.signatures) || card.signatures.length === 0) {
    return { isGood: false, text: 'The card is not signed.' };
  }
  const { verifySignature } = await import('./card-signature');
  return verifySignature(card);
}
