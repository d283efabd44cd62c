import { Text } from '@mantine/core';
import { Section } from '../../components/section';
import { SimpleTable } from '../../components/simple-table';
import { tokensText } from '../../components/tokens-text';
import { Time } from '../../components/time';
import { type Task } from './task-words';
import { durationText } from '../../components/duration';

/** Model calls that the server shows. */
export const MAX_MODEL_CALLS = 100;
const CALL_TITLES = ['Time', 'Duration', 'Model', 'Tokens', 'Attempt', 'Outcome'];

/** The model calls for the task, failed ones too. Nothing, if there were none. */
export function ModelCalls({ task: { model_calls: calls, currency } }: { task: Task }) {
  if (calls.length === 0) return null;
  const rows = calls.map((call, i) => ({
    key: String(i),
    cells: [
      <Time key="at" at={call.at} />,
      call.ms === null ? '–' : durationText(call.ms),
      <Text key="model" size="sm" miw={{ base: 0, sm: '14rem' }}>
        {call.model}
      </Text>,
      <span key="tokens" style={{ whiteSpace: 'nowrap' }}>
        {tokensText(call.input_tokens, call.output_tokens)}
      </span>,
      call.attempt,
      outcomeOf(call),
      ...(currency === null ? [] : [call.cost ?? '–']),
    ],
  }));
  return (
    <Section title="Model calls">
      {calls.length === MAX_MODEL_CALLS && <Text size="sm">These are the newest {MAX_MODEL_CALLS}.</Text>}
      <SimpleTable
        name="Model calls"
        titles={currency === null ? CALL_TITLES : [...CALL_TITLES, `Cost in ${currency}`]}
        rows={rows}
      />
    </Section>
  );
}

function outcomeOf(call: Task['model_calls'][number]): string {
  const { error, finish, provider_finish: word, tools, tools_not_made: notMade } = call;
  if (error !== null) return `Failed: ${error}`;
  if (call.is_summary) return 'Summary of the conversation';
  const differs = word !== null && word.toLowerCase().replaceAll('_', '-') !== finish;
  const reason = differs ? ` (${word})` : '';
  if (notMade) return `${finish ?? '–'}${reason}, not called: ${tools.join(', ')}`;
  return tools.length > 0 ? `Calls ${tools.join(', ')}${reason}` : `${finish ?? '–'}${reason}`;
}

/** The durable steps of an agent in code, for those who may change agents. Nothing, if there were none. */
export function Steps({ task: { steps = [] } }: { task: Task }) {
  if (steps.length === 0) return null;
  return (
    <Section title="Durable steps">
      <SimpleTable
        name="Durable steps"
        titles={['Step', 'Kind', 'State', 'Attempts', 'Begun', 'Ended', 'Error']}
        rows={steps.map((step, i) => ({
          key: String(i),
          cells: [
            step.name,
            step.kind,
            step.state,
            step.attempts,
            <Time key="begun" at={step.started_at} />,
            <Time key="ended" at={step.ended_at} />,
            step.error ?? (step.unknown_outcome ? `Outcome was unknown: ${step.unknown_outcome}` : '–'),
          ],
        }))}
      />
    </Section>
  );
}

/** The runs of the task, and which worker has each or had it last. */
export function Runs({ task: { runs } }: { task: Task }) {
  return (
    <Section title="Runs">
      <SimpleTable
        name="Runs of the task"
        titles={['State', 'Attempts', 'Crashes', 'Worker', 'Accepted', 'Waits until', 'Finished']}
        rows={runs.map((run) => ({
          key: run.run_id,
          cells: [
            run.state,
            run.attempt,
            run.crashes,
            run.worker_id ?? '–',
            <Time key="accepted" at={run.created_at} />,
            <Time key="not-before" at={run.not_before} />,
            <Time key="finished" at={run.finished_at} />,
          ],
        }))}
      />
    </Section>
  );
}
