import { Button, Code, CopyButton, Group, SegmentedControl, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { SERVER_URL } from '../../base';
import { snippetsFor } from './use-snippets';

/** How other programs use an agent, ready to paste. */
export function AgentUse({ slug }: { slug: string }) {
  const snippets = snippetsFor(slug, SERVER_URL);
  const [program, setProgram] = useState('Claude Code');
  const { where, text } = snippets.find((each) => each.program === program) ?? { where: '', text: '' };
  return (
    <Stack>
      <SegmentedControl
        aria-label="Program"
        data={snippets.map((each) => each.program)}
        value={program}
        onChange={setProgram}
      />
      <Group justify="space-between">
        <Text size="sm">
          {where}. Put a token with the scope agents:call into the environment variable BATON_TOKEN.
        </Text>
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button size="xs" variant="default" onClick={copy}>
              {copied ? 'Copied' : 'Copy'}
            </Button>
          )}
        </CopyButton>
      </Group>
      <Code block tabIndex={0} aria-label={`Use ${slug} from ${program}`}>
        {text}
      </Code>
    </Stack>
  );
}
