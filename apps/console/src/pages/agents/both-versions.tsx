import { Anchor, Button, Group, Stack, Text, Textarea } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { fetchApi } from '../../api/client';
import { ErrorView } from '../../components/error-view';
import { Section } from '../../components/section';
import { TaskComparison, useComparedTask } from '../../comparison/task-comparison';
import { type Agent, tryVersion } from './agents-api';

/** The task of each version. */
interface Tried {
  stable: string;
  next: string;
}

/**
 * Sends one message to an agent as it is stored, and as it is being written, and shows both answers beside each other. Nobody else gets
 * what is being written: it is stored with the label `next`, without a share of new tasks.
 * @param prepare the document that is being written; undefined if it can't be sent
 * @param onRefused is told why the server has not taken it
 * @param onTried is told that the label `next` is given now
 */
export function BothVersions({
  agent: { slug, next },
  prepare,
  onRefused,
  onTried,
}: {
  agent: Agent;
  prepare: () => unknown;
  onRefused: (error: unknown) => void;
  onTried: () => void;
}) {
  const [text, setText] = useState('Hello');
  const queries = useQueryClient();
  const run = useMutation({
    mutationFn: async (): Promise<Tried | undefined> => {
      const document = prepare();
      if (document === undefined) return undefined;
      try {
        await tryVersion(slug, document);
      } catch (error) {
        onRefused(error);
        return undefined;
      }
      onTried();
      await queries.invalidateQueries({ queryKey: ['agents'], refetchType: 'none' });
      const [stable, tried] = await Promise.all([send(slug, text, 'stable'), send(slug, text, 'next')]);
      return { stable, next: tried };
    },
  });
  // Others get what has a share.
  const isTaken = next !== undefined && next.share > 0;
  return (
    <Section title="Try both versions">
      <Stack gap="xs">
        <Text size="sm">
          {isTaken
            ? `Version ${next.version} has a share of new tasks. Promote it or withdraw it first: what you try takes its place.`
            : 'Sends a message to the agent as it is stored, and as it is written above. Nobody else gets what you try.'}
        </Text>
        <Textarea
          label="Message"
          autosize
          value={text}
          onChange={({ currentTarget: { value } }) => setText(value)}
        />
        <Group>
          <Button
            size="xs"
            variant="default"
            disabled={isTaken || text === ''}
            loading={run.isPending}
            onClick={() => run.mutate()}
          >
            Run both versions
          </Button>
        </Group>
        {run.error && <ErrorView error={run.error} title="The message was not sent" />}
        {run.data && <Both tried={run.data} />}
      </Stack>
    </Section>
  );
}

function Both({ tried: { stable, next } }: { tried: Tried }) {
  const one = useComparedTask(stable);
  const two = useComparedTask(next);
  const error = one.error ?? two.error;
  if (error) return <ErrorView error={error} />;
  if (!one.data || !two.data) return <Text size="sm">The versions are at work …</Text>;
  return (
    <Stack gap="xs">
      <TaskComparison one={one.data} two={two.data} names={['As it is stored', 'As it is written']} />
      <Group>
        {[
          [stable, 'Trace of the stored version'],
          [next, 'Trace of the written version'],
        ].map(([id, label]) => (
          // This page has what is being written.
          <Anchor key={id} component={Link} to={`/tasks/${id}`} target="_blank" size="sm" underline="always">
            {label}
          </Anchor>
        ))}
      </Group>
    </Stack>
  );
}

interface Sent {
  result?: { task: { id: string } };
  error?: { message: string };
}

/** Sends a message to the version with a label, and does not wait. @returns the id of the task. Throws with the reason */
async function send(slug: string, text: string, label: 'next' | 'stable'): Promise<string> {
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }] };
  const params = { message, configuration: { returnImmediately: true } };
  const response = await fetchApi(`/agents/${encodeURIComponent(slug)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0', 'baton-agent-label': label },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params }),
  });
  const { result, error } = (await response.json()) as Sent;
  if (!result) throw new Error(error?.message ?? `The server answers with ${response.status}.`);
  return result.task.id;
}
