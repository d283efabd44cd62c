import { Anchor, Button, Group, Stack, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { isWaiting } from '../../a2a/task-states';
import { ErrorView } from '../../components/error-view';
import { PartView } from '../../components/part-view';
import { partsOf } from './conversation';
import type { CallState, ReceivedAnswer } from './received-answer';

/** A sentence for each state of a call. */
const STATE_TEXTS: Readonly<Record<CallState, string>> = {
  idle: 'Nothing is sent yet.',
  running: 'The answer is coming in …',
  lost: 'The connection is lost. The task continues, and the answer is resumed after the last frame …',
  cut: 'The connection is cut. The task continues. Resume continues after the last frame.',
  done: 'The answer has ended.',
  failed: 'The call has failed.',
};

/** The answer as far as it has arrived, with the state of its call. */
export function AnswerView({
  answer,
  onContinue,
}: {
  answer: ReceivedAnswer;
  onContinue: (contextId: string, taskId: string) => void;
}) {
  const { state, summary, error } = answer;
  const { taskState, contextId, taskId } = summary;
  const parts = partsOf(summary);
  return (
    <Stack>
      <Group justify="space-between">
        <Text size="sm" role="status" aria-label="State of the call">
          {STATE_TEXTS[state]}
          {taskState !== undefined && ` Task: ${taskState}.`}
        </Text>
        <Group gap="xs">
          {isWaiting(taskState) && taskId !== undefined && contextId !== undefined && (
            <Button size="compact-xs" variant="default" onClick={() => onContinue(contextId, taskId)}>
              Continue this task
            </Button>
          )}
          {taskId !== undefined && (
            <Anchor component={Link} to={`/tasks/${taskId}`} size="sm" underline="always">
              Open the task
            </Anchor>
          )}
        </Group>
      </Group>
      {error !== undefined && <ErrorView error={error} title="The SDK reports an error" />}
      {parts.length > 0 && (
        <Stack component="section" aria-label="Answer of the agent" gap="xs">
          {parts.map((part, i) => (
            // Parts have no names, and their order is fixed.
            <PartView key={i} part={part} />
          ))}
        </Stack>
      )}
    </Stack>
  );
}
