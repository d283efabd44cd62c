import { Alert, Group, Stack, Text } from '@mantine/core';
import { ConfirmButton } from '../../components/confirm-button';
import { Time } from '../../components/time';
import { useCaller } from '../../session/caller';
import { type Agent, promoteNext, withdrawNext } from './agents-api';

/** The version with the label `next`, or how it has lost it. Nothing if the agent has neither. */
export function NextVersion({ agent }: { agent: Agent }) {
  const { can } = useCaller();
  const { slug, version: stable, next, next_ended: ended } = agent;
  const mayChange = can('agents:write');
  if (next) {
    return (
      <Alert
        variant="light"
        title={
          next.share === 0
            ? `Version ${next.version} is being tried`
            : `Version ${next.version} gets ${next.share} % of new tasks`
        }
      >
        <Stack gap="xs">
          <Text size="sm">
            Since <Time at={next.since} />.{' '}
            {next.share === 0
              ? `Only its authors get it. All other tasks begin with version ${stable}.`
              : `The other tasks begin with version ${stable}. It loses its share by itself after ${next.failures} failed runs, if it fails more often than version ${stable}.`}
          </Text>
          {mayChange && (
            <Group>
              <ConfirmButton
                size="xs"
                label="Promote"
                isHarmless
                name={slug}
                question={`Promote version ${next.version} of ${slug}?`}
                act={() => promoteNext(slug)}
              >
                All new tasks begin with its contents.
              </ConfirmButton>
              <ConfirmButton
                size="xs"
                label="Withdraw"
                name={slug}
                question={`Withdraw version ${next.version} of ${slug}?`}
                act={() => withdrawNext(slug, next.version)}
              >
                All new tasks begin with version {stable}.
              </ConfirmButton>
            </Group>
          )}
        </Stack>
      </Alert>
    );
  }
  if (!ended) return undefined;
  return (
    <Alert
      color="red"
      variant="light"
      role="alert"
      title={`Version ${ended.version} has lost its share of new tasks`}
    >
      <Stack gap="xs">
        <Text size="sm">
          <Time at={ended.at} />: {ended.failed} of its {ended.runs} runs failed, and {ended.stable_failed} of{' '}
          {ended.stable_runs} runs of the stable version. All new tasks begin with version {stable}.
        </Text>
        {mayChange && (
          <Group>
            <ConfirmButton
              size="xs"
              label="Dismiss"
              name={slug}
              question={`Dismiss the notice about version ${ended.version}?`}
              act={() => withdrawNext(slug, ended.version)}
            >
              It stays in the list of versions.
            </ConfirmButton>
          </Group>
        )}
      </Stack>
    </Alert>
  );
}
