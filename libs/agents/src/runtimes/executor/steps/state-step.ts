import type { StepReply } from '../step-protocol.js';
import type { OpenStep } from './open-step.js';
import { parseOwnJson, stateRequestOf } from './step-checks.js';
import type { JournaledSteps } from './journaled-steps.js';

/** Reads or writes the state of the context. A write that a crash has interrupted is recognized by its writer. */
export async function useState(journal: JournaledSteps, step: OpenStep, request: string): Promise<StepReply> {
  const { state, secrets } = journal.turn;
  const { key, value, expected } = stateRequestOf(request);
  let result: object;
  if (value === undefined) {
    const found = await state.read(key);
    result = { version: found?.version ?? 0, ...(found && { value: parseOwnJson(found.value) }) };
  } else {
    const clean = JSON.stringify(secrets.redactor.value(parseOwnJson(value)));
    const writer = journal.keyOf(step);
    const write = { key, value: clean, writer, ...(expected !== undefined && { expected }) };
    const written = await state.write(write);
    if (written.outcome === 'full') return journal.fail(step, 'the state of a context has at most 64 keys');
    const { current } = written.outcome === 'conflict' ? written : {};
    result =
      written.outcome === 'written'
        ? { isSet: true, version: written.version }
        : {
            isSet: false,
            version: current?.version ?? 0,
            ...(current && { value: parseOwnJson(current.value) }),
          };
  }
  const json = JSON.stringify(result);
  await journal.end(step, { result: json });
  return { result: json };
}
