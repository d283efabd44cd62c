import { Alert, Anchor, Button, Code, Group, List, Skeleton, Stack, Tabs, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { CodeEditor } from '../../components/code-editor';
import { ConfirmButton } from '../../components/confirm-button';
import { ErrorView } from '../../components/error-view';
import { Page } from '../../components/page';
import { useCaller } from '../../session/caller';
import { AgentCard } from './agent-card';
import { AgentUse } from './agent-use';
import { AgentVersions } from './agent-versions';
import { MissingSecrets } from './missing-secrets';
import { NextVersion } from './next-version';
import { type Agent, agentQuery, deleteAgent, documentText, secretNames, setEnabled } from './agents-api';
import { EnabledBadge } from './agents-page';

const route = getRouteApi('/app/agents/$agent');

/** One agent: its definition, its card, how others use it, its versions. */
export function AgentPage() {
  const { agent: name } = route.useParams();
  const { tab = 'definition' } = route.useSearch();
  const navigate = route.useNavigate();
  const { can } = useCaller();
  const { data, error, refetch } = useQuery(agentQuery(name));
  if (error) {
    return (
      <Page title={name}>
        <ErrorView error={error} retry={() => void refetch()} />
      </Page>
    );
  }
  if (!data) {
    return (
      <Page title={name}>
        <Skeleton height={200} />
      </Page>
    );
  }
  const { agent, etag } = data;
  const isOwn = agent.origin === 'catalog';
  return (
    <Page title={agent.slug} actions={<Actions agent={agent} etag={etag} />}>
      <Group gap="sm">
        <EnabledBadge enabled={agent.enabled} />
        <Text size="sm">
          {isOwn
            ? `Version ${agent.version}`
            : `Not of the catalog: ${agent.origin}. Its settings are the operator's`}
        </Text>
        {can('tasks:read', 'agents:call') && (
          <Anchor
            renderRoot={(props) => <Link to="/tasks" search={{ agent: agent.slug }} {...props} />}
            size="sm"
            underline="always"
          >
            Its tasks
          </Anchor>
        )}
      </Group>
      <NextVersion agent={agent} />
      <Tabs
        value={tab}
        onChange={(value) => void navigate({ search: { tab: (value ?? 'definition') as typeof tab } })}
        keepMounted={false}
      >
        <Tabs.List aria-label="Views of the agent">
          <Tabs.Tab value="definition">Definition</Tabs.Tab>
          <Tabs.Tab value="card">Card</Tabs.Tab>
          <Tabs.Tab value="use">Use it from…</Tabs.Tab>
          {isOwn && <Tabs.Tab value="versions">Versions</Tabs.Tab>}
        </Tabs.List>
        <Tabs.Panel value="definition" pt="md">
          <Stack>
            <MissingSecrets agent={agent.slug} />
            <Secrets definition={agent.definition} />
            <CodeEditor label={`Definition of ${agent.slug}`} value={documentText(agent)} />
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="card" pt="md">
          <AgentCard slug={agent.slug} />
        </Tabs.Panel>
        <Tabs.Panel value="use" pt="md">
          <AgentUse slug={agent.slug} />
        </Tabs.Panel>
        {isOwn && (
          <Tabs.Panel value="versions" pt="md">
            <AgentVersions agent={agent} etag={etag} />
          </Tabs.Panel>
        )}
      </Tabs>
    </Page>
  );
}

function Actions({ agent, etag }: { agent: Agent; etag: string | undefined }) {
  const { can } = useCaller();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const toggle = useMutation({
    mutationFn: () => setEnabled(agent.slug, true, etag),
    onSettled: () => queries.invalidateQueries({ queryKey: ['agents'] }),
  });
  const mayChange = can('agents:write') && agent.origin === 'catalog';
  return (
    <>
      {toggle.error && <ErrorView error={toggle.error} />}
      {mayChange && (
        <>
          {agent.enabled ? (
            <ConfirmButton
              size="xs"
              label="Disable"
              name={agent.slug}
              question={`Disable the agent ${agent.slug}?`}
              act={() => setEnabled(agent.slug, false, etag)}
            >
              It takes no new messages. Its running tasks finish.
            </ConfirmButton>
          ) : (
            <Button size="xs" variant="default" loading={toggle.isPending} onClick={() => toggle.mutate()}>
              Enable
            </Button>
          )}
          <ConfirmButton
            size="xs"
            label="Delete"
            name={agent.slug}
            question={`Delete the agent ${agent.slug}?`}
            act={async () => {
              await deleteAgent(agent.slug, etag);
              await navigate({ to: '/agents' });
            }}
          >
            It takes no more messages, and its slug is free for another agent. Its tasks stay.
          </ConfirmButton>
          <Button size="xs" variant="default" component={Link} to={`/agents/${agent.slug}/edit`}>
            Edit
          </Button>
        </>
      )}
      {can('agents:call') && (
        <Button size="xs" component={Link} to={`/playground?agent=${agent.slug}`}>
          Try it
        </Button>
      )}
    </>
  );
}

/** The secrets that the agent uses, by name. The API never shows their values. */
function Secrets({ definition }: { definition: Record<string, unknown> }) {
  const names = secretNames(definition);
  if (names.length === 0) return undefined;
  return (
    <Alert variant="light" color="gray" title="Secrets">
      <List size="sm">
        {names.map((secret) => (
          <List.Item key={secret}>
            <Code>{secret}</Code>
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}
