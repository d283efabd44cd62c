import { Alert, Button, Code, Group, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type SyntheticEvent, useState } from 'react';
import { fetchApi } from '../../api/client';
import { Time } from '../../components/time';
import { ErrorView } from '../../components/error-view';
import { Json } from '../../components/part-view';
import { useCaller } from '../../session/caller';
import type { Task } from './task-words';

interface SendAnswer {
  error?: { message: string };
}

/** Sends the next message of a task, and does not wait for what comes of it. Throws with the reason. */
async function answerTask({ agent_id: agent, task_id: taskId }: Task, parts: object[]): Promise<void> {
  const message = { messageId: crypto.randomUUID(), taskId, role: 'ROLE_USER', parts };
  const params = { message, configuration: { returnImmediately: true } };
  const response = await fetchApi(`/agents/${encodeURIComponent(agent)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params }),
  });
  const { error } = (await response.json()) as SendAnswer;
  if (error) throw new Error(error.message);
}

/** What a task waits for: the calls that a person must approve, or an answer. */
export function AnswerForm({ task }: { task: Task }) {
  const queryClient = useQueryClient();
  const { can } = useCaller();
  const [text, setText] = useState('');
  const [reason, setReason] = useState('');
  const send = useMutation({
    mutationFn: (parts: object[]) => answerTask(task, parts),
    onSuccess: () => {
      setText('');
      setReason('');
      return queryClient.invalidateQueries({ queryKey: ['task', task.task_id] });
    },
  });
  const decide = (callId: string, approved: boolean) =>
    send.mutate([{ data: { approval: { callId, approved, ...(reason !== '' && { reason }) } } }]);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    send.mutate([{ text }]);
  };
  const { approvals = [] } = task;
  return (
    <Alert color="orange" variant="light" title="This task waits for you" component="section">
      <Stack>
        {approvals.map(({ call_id: call, tool, description, input, expires_at: expires }) => (
          <Stack key={call} gap="xs">
            <Text size="sm">
              May it call <Code>{tool}</Code>? {description}
            </Text>
            <Json value={input} />
            {expires !== undefined && (
              <Text size="sm">
                Refused by itself at <Time at={expires} />
              </Text>
            )}
            <Group>
              <Button
                size="xs"
                loading={send.isPending}
                disabled={!can('tasks:approve')}
                onClick={() => decide(call, true)}
              >
                Approve {tool}
              </Button>
              <Button
                size="xs"
                variant="default"
                disabled={send.isPending || !can('tasks:approve')}
                onClick={() => decide(call, false)}
              >
                Reject {tool}
              </Button>
            </Group>
          </Stack>
        ))}
        {approvals.length > 0 ? (
          <TextInput
            label="Reason of a refusal"
            description="The model reads it"
            value={reason}
            onChange={({ currentTarget }) => setReason(currentTarget.value)}
          />
        ) : (
          <form onSubmit={submit}>
            <Stack gap="xs" align="flex-start">
              <Textarea
                label="Your answer"
                w="100%"
                autosize
                minRows={2}
                required
                value={text}
                onChange={({ currentTarget }) => setText(currentTarget.value)}
              />
              <Button type="submit" size="xs" loading={send.isPending}>
                Send the answer
              </Button>
            </Stack>
          </form>
        )}
        {send.error && <ErrorView error={send.error} />}
      </Stack>
    </Alert>
  );
}
