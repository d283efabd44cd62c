import type { Decision } from '../../../approvals.js';
import type { RecordedEntry } from '../llm-entry.js';
import type { RecordedCall } from '../recorded-call.js';
import { ApprovalHistory } from './approval-history.js';

const CALL = { step: 1, index: 1, toolName: 'pay' } as RecordedCall;
const ID = 'call-1-1';

const answered = (position: number, decision: Omit<Decision, 'callId'>): RecordedEntry => ({
  kind: 'answered',
  runId: `run-${position}`,
  position,
  decisions: [{ callId: ID, ...decision }],
});

describe('the decision on a call', () => {
  let begunAt: number | undefined;
  let history: ApprovalHistory;
  beforeEach(() => {
    begunAt = undefined;
    history = new ApprovalHistory('run', {
      steps: () => [],
      callsOf: () => [],
      pendingCalls: () => [],
      begunAt: () => begunAt,
    });
  });

  it('is that of the first answer: a later one changes neither it nor the input', () => {
    history.addEntry(answered(2, { approved: false, reason: 'too much' }));
    history.addEntry(answered(4, { approved: true, input: { amount: 1 } }));
    expect(history.decisionOn(CALL)).toMatchObject({ approved: false, reason: 'too much' });
    expect(history.asDecided(CALL)).toBe(CALL);
  });

  it('is, for repeating a sent call, the newest one since it was sent', () => {
    history.addEntry(answered(2, { approved: true }));
    begunAt = 3;
    history.addEntry(answered(5, { approved: false }));
    expect(history.repetitionOf(CALL)).toMatchObject({ approved: false });
    expect(history.decisionOn(CALL)).toMatchObject({ approved: true });
    expect(history.lastDecisionOn(CALL)).toMatchObject({ approved: false });
    begunAt = 6;
    expect(history.repetitionOf(CALL)).toBeUndefined();
  });
});
