import { Alert, Button, Group, Stack, Textarea, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { questionFields } from '@baton/contract';
import { type SyntheticEvent, useState } from 'react';
import { ErrorView } from '../../components/error-view';
import { type Part } from '../../components/part-view';
import { useCaller } from '../../session/caller';
import { noteAnswered } from '../../session/waiting-tasks';
import { AnswerField } from './answer-field';
import { ApprovalCall } from './approval-call';
import { answerData } from './answer-data';
import { type AskingTask, decisionPart, sendAnswer } from './send-answer';
import { ToolQuestion } from './tool-question';

/** `Answer` in an alert. @param question the parts of the message with which the task asks */
export function AnswerForm({ task, question }: { task: AskingTask; question: readonly Part[] }) {
  return (
    <Alert color="orange" variant="light" title="This task waits for you" component="section">
      <Answer task={task} question={question} />
    </Alert>
  );
}

/** The form for what a task waits for: approval of calls, or an answer in words or fields. */
export function Answer({ task, question }: { task: AskingTask; question: readonly Part[] }) {
  const queryClient = useQueryClient();
  const { can } = useCaller();
  const [reason, setReason] = useState('');
  const send = useMutation({
    mutationFn: (parts: readonly object[]) => sendAnswer(task, parts),
    onSuccess: () => {
      setReason('');
      noteAnswered(queryClient, task);
      // It may wait again, for the calls that the answer left out.
      return queryClient.invalidateQueries({ queryKey: ['task', task.task_id] });
    },
  });
  const { approvals = [] } = task;
  return (
    <Stack>
      {approvals.map((approval) => {
        const props = {
          approval,
          isPending: send.isPending,
          mayDecide: can('tasks:approve'),
          onDecide: (isApproved: boolean, input?: unknown) =>
            send.mutate([decisionPart(approval.call_id, isApproved, reason, input)]),
        };
        const { call_id: id, question: asked } = approval;
        return asked ? (
          <ToolQuestion key={id} {...props} question={asked} />
        ) : (
          <ApprovalCall key={id} {...props} />
        );
      })}
      {approvals.some(({ question: asked }) => !asked) && (
        <TextInput
          label="Reason of a refusal"
          description="The model reads it"
          value={reason}
          onChange={({ currentTarget }) => setReason(currentTarget.value)}
        />
      )}
      {approvals.length === 0 && (
        <QuestionForm question={question} isPending={send.isPending} send={(parts) => send.mutate(parts)} />
      )}
      {send.error && <ErrorView error={send.error} />}
    </Stack>
  );
}

/** The answer to a question: the form that it asks for, or a text. */
function QuestionForm({
  question,
  isPending,
  send,
}: {
  question: readonly Part[];
  isPending: boolean;
  send: (parts: readonly object[]) => void;
}) {
  const fields = questionFields(question);
  const [isText, setText] = useState(false);
  const isForm = fields !== undefined && !isText;
  const submit = (event: SyntheticEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    send([isForm ? { data: answerData(fields, form) } : { text: form.get('text') }]);
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="xs" align="flex-start">
        {isForm ? (
          fields.map((field) => <AnswerField key={field.name} field={field} />)
        ) : (
          <Textarea label="Your answer" name="text" w="100%" autosize minRows={2} required />
        )}
        <Group>
          <Button type="submit" size="xs" loading={isPending}>
            Send the answer
          </Button>
          {fields && (
            <Button size="xs" variant="default" onClick={() => setText(!isText)}>
              {isText ? 'Answer with the form' : 'Answer in words'}
            </Button>
          )}
        </Group>
      </Stack>
    </form>
  );
}
