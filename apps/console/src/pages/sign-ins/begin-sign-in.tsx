import { Anchor, Text, TextInput } from '@mantine/core';
import { answerOf, api } from '../../api/client';
import { FormButton } from '../../components/form-button';
import { textField } from '../../components/form-fields';
import { Time } from '../../components/time';

/** Begins a sign-in of the whole tenant, and shows the link with which a person signs in, in another tab. */
export const BeginSignIn = () => (
  <FormButton
    label="Sign in"
    title="Sign in for the whole tenant"
    submit={(fields) => {
      const server = textField(fields, 'server');
      const body = { agent: textField(fields, 'agent') ?? '', ...(server !== undefined && { server }) };
      return answerOf(api.POST('/v1/connections', { body }));
    }}
    result={({ url, expires_at: expiresAt }) => (
      <>
        <Text size="sm">
          All agents of the tenant that name this server act with the account that you choose there. The link
          works until <Time at={expiresAt} />.
        </Text>
        <Anchor href={url} target="_blank" rel="noopener noreferrer" size="sm">
          Continue with the sign-in
        </Anchor>
      </>
    )}
  >
    <TextInput
      name="agent"
      label="Agent"
      description="Slug of an agent with oauth in its settings"
      required
    />
    <TextInput name="server" label="Server" description="Its name in these settings. Empty: the only one" />
  </FormButton>
);
