import { Alert, Anchor, Button, Group, Stack, Text, Textarea } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { sendMessage } from '../../a2a/send-message';
import { ErrorView } from '../../components/error-view';
import { Section } from '../../components/section';
import { TaskComparison, useComparedTask } from '../../comparison/task-comparison';
import { type Agent, tryVersion } from './agents-api';

/** A task, and the version of the agent that it is for. Null: unknown. */
interface TriedTask {
  id: string;
  version: number | null;
}

/** The task of each version. */
interface Tried {
  stable: TriedTask;
  next: TriedTask;
}

/**
 * Sends one message to an agent as it is stored, and as it is being written, and shows both answers beside each other. No other caller gets
 * what is being written: it is stored with the label `next`, without a share of new tasks.
 * @param prepare the document that is being written; undefined if it cannot be sent
 * @param onRefused called with the reason if the server refuses it
 * @param onTried called with the version that has the label `next` now
 */
export function BothVersions({
  agent: { slug, version: stable, next },
  prepare,
  onRefused,
  onTried,
}: {
  agent: Agent;
  prepare: () => unknown;
  onRefused: (error: unknown) => void;
  onTried: (version: number) => void;
}) {
  const [text, setText] = useState('Hello');
  const queries = useQueryClient();
  const run = useMutation({
    mutationFn: async (): Promise<Tried | undefined> => {
      const document = prepare();
      if (document === undefined) return undefined;
      let version: number;
      try {
        version = await tryVersion(slug, document);
      } catch (error) {
        onRefused(error);
        return undefined;
      }
      onTried(version);
      await queries.invalidateQueries({ queryKey: ['agents'], refetchType: 'none' });
      const send = (label: string): Promise<string> =>
        sendMessage({ agent: slug, parts: [{ text }], headers: { 'baton-agent-label': label } });
      // Another author may try something else at the same time.
      const [ofStable, ofNext] = await Promise.all([send('stable'), send(`next; version=${version}`)]);
      return { stable: { id: ofStable, version: stable }, next: { id: ofNext, version } };
    },
  });
  // Other callers get a version that has a share.
  const isTaken = next !== undefined && next.share > 0;
  return (
    <Section title="Try both versions">
      <Stack gap="xs">
        <Text size="sm">
          {isTaken
            ? `Version ${next.version} has a share of new tasks. Promote it or withdraw it first.`
            : 'Sends a message to the agent as it is stored, and as it is written above. No other caller gets what you try.'}
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
  const one = useComparedTask(stable.id);
  const two = useComparedTask(next.id);
  const error = one.error ?? two.error;
  if (error) return <ErrorView error={error} />;
  if (!one.data || !two.data) return <Text size="sm">The versions are at work …</Text>;
  return (
    <Stack gap="xs">
      <OtherVersion name="The stored version" wanted={stable.version} answered={one.data.agent_version} />
      <OtherVersion name="The written version" wanted={next.version} answered={two.data.agent_version} />
      <TaskComparison one={one.data} two={two.data} names={['As it is stored', 'As it is written']} />
      <Group>
        {[
          [stable.id, 'Trace of the stored version'],
          [next.id, 'Trace of the written version'],
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

/** A notice that another version has answered. Empty if it is the wanted version, or if the version is unknown. */
function OtherVersion({
  name,
  wanted,
  answered,
}: {
  name: string;
  wanted: number | null;
  answered: number | null;
}) {
  if (wanted === null || answered === null || wanted === answered) return undefined;
  return (
    <Alert color="orange" variant="light" role="alert" title={`${name} has not answered`}>
      It is version {wanted}. Version {answered} has answered: another author has tried or saved a version at
      the same time. Run both versions again, or read this page again if that is no help.
    </Alert>
  );
}
