import { Anchor, Group, Paper, Stack, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { type Part, PartView } from '../../components/part-view';
import type { AnswerContent } from './answer-summary';

/** A message of the caller, and its outcome. */
export interface ConversationTurn {
  said: string;
  answer: { summary: AnswerContent };
}

/** The parts of an answer: artifacts first, then messages. */
export const partsOf = ({ artifacts, said }: AnswerContent): readonly Part[] => [
  ...artifacts.flatMap((artifact) => artifact.parts ?? []),
  ...said,
];

/** The earlier messages, the oldest first. */
export const EarlierTurns = ({ turns }: { turns: readonly ConversationTurn[] }) => (
  <Stack component="section" aria-label="Earlier in this conversation" gap="xs">
    {turns.map(({ said, answer: { summary } }, i) => (
      <Stack key={i} gap="xs">
        <CallerMessage text={said} />
        {partsOf(summary).map((part, k) => (
          <PartView key={k} part={part} />
        ))}
        {summary.taskId !== undefined && (
          <Group justify="flex-end">
            <Anchor component={Link} to={`/tasks/${summary.taskId}`} size="xs" underline="always">
              Task {summary.taskState}
            </Anchor>
          </Group>
        )}
      </Stack>
    ))}
  </Stack>
);

/** The message of the caller. */
export const CallerMessage = ({ text }: { text: string }) => (
  <Paper withBorder px="sm" py={6} radius="md" ml="xl" bg="var(--mantine-color-default-hover)">
    <Text size="sm" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
      {text || 'Data or files'}
    </Text>
  </Paper>
);
