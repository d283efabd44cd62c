import type { McpRecord } from '../observations.js';
import type { Finding } from './finding.js';

/** A call over MCP ends as A2A says, and its tool was called once: or the record says that the outcome is unknown. */
export function* checkMcp(record: McpRecord): Generator<Finding> {
  const { number, kind, client, told, stored, fault, keys, isUnknown } = record;
  const task = `MCP call ${kind} ${number} (${client})`;
  if (fault !== undefined) yield { defect: 'unexpected', task, detail: fault };
  else if (!told) yield { defect: 'stuck', task, detail: 'its caller gave up' };
  if (!told || !stored) return;
  if (told.state !== stored.state)
    yield { defect: 'wrong', task, detail: `it is ${told.state} over MCP, and ${stored.state} over A2A` };
  if (told.state === 'completed') {
    const expected = `done answer ${number}`;
    for (const { text } of [told, stored]) {
      if (text !== expected)
        yield { defect: 'wrong', task, detail: `${JSON.stringify(text)} is not ${expected}` };
    }
    if (keys.length === 0) yield { defect: 'lost', task, detail: 'its tool was not called' };
  } else if (told.state !== 'input-required') {
    yield { defect: 'wrong', task, detail: `it is ${told.state}: ${told.text.slice(0, 200)}` };
  } else if (kind === 'again') {
    yield { defect: 'wrong', task, detail: 'it asks a person, and its tool may be called again' };
  } else if (!isUnknown) {
    yield { defect: 'wrong', task, detail: 'it asks a person, and no effect of it is unknown' };
  }
  if (kind !== 'again' && keys.length > 1)
    yield { defect: 'doubled', task, detail: `its tool was called ${keys.length} times` };
  if (new Set(keys).size > 1)
    yield { defect: 'doubled', task, detail: `its call has ${new Set(keys).size} keys` };
}
