import { List, Text, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { answerOf, api } from '../../api/client';
import { ErrorView } from '../../components/error-view';
import { FormButton } from '../../components/form-button';

/** Makes a new task from a point of this one. First it shows what the fork may do again. */
export function ForkButton({ taskId, entry, after }: { taskId: string; entry: number; after: string }) {
  const navigate = useNavigate();
  const submit = async (fields: FormData): Promise<undefined> => {
    const said = (name: string): string => (fields.get(name) as string).trim();
    const [text, agent] = [said('text'), said('agent')];
    const body = { at: entry, ...(text && { text }), ...(agent && { agent }), dry_run: false };
    const params = { path: { id: taskId } };
    const { task_id: id } = await answerOf(api.POST('/v1/tasks/{id}/fork', { params, body }));
    if (id !== null) await navigate({ to: '/tasks/$id', params: { id } });
  };
  return (
    <FormButton label="Fork" title={`Fork after ${after}`} name={`after ${after}`} submit={submit}>
      <DoneAgain taskId={taskId} entry={entry} />
      <Textarea
        name="text"
        label="Another message"
        description="Empty: the same message"
        autosize
        minRows={2}
      />
      <TextInput name="agent" label="Another agent" description="Its slug. Empty: the same agent" />
    </FormButton>
  );
}

/** What the task has done after the entry. */
function DoneAgain({ taskId, entry }: { taskId: string; entry: number }) {
  const { data, error } = useQuery({
    queryKey: ['done again', taskId, entry],
    queryFn: () =>
      answerOf(
        api.POST('/v1/tasks/{id}/fork', {
          params: { path: { id: taskId } },
          body: { at: entry, dry_run: true },
        }),
      ),
  });
  if (error) return <ErrorView error={error} />;
  if (!data) return null;
  if (data.done_again.length === 0)
    return <Text size="sm">The task has called no tool and run no step after it.</Text>;
  return (
    <div>
      <Text size="sm">The task has done this after it, and the fork may do it again:</Text>
      <List size="sm">
        {data.done_again.map((one) => (
          <List.Item key={one.entry}>
            {one.kind} {one.name}
          </List.Item>
        ))}
      </List>
    </div>
  );
}
