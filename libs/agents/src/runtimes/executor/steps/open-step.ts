import type { DetailsJson } from '@baton/a2a';
import type { SignInOffer } from '../../../access-tokens.js';
import type { ApprovalAnswer, ApprovalRequest, Decision } from '../../../approvals.js';
import type { CapQuestion } from '../../../cap-reached.js';
import type { ModelStep } from '../../llm/llm-entry.js';
import type { RecordedStep } from '../step-protocol.js';
import type { MadeCall, StoredRemoteCall } from '../turn-tools.js';
import type { OutcomeAsked } from './step-entry.js';

/** A step of the execution, with the state that only the worker has. */
export interface OpenStep extends RecordedStep {
  /** It can be undone. */
  compensates?: true;
  /** It undoes another step. */
  undoes?: true;
  /** The answer of a model. */
  called?: ModelStep | MadeCall;
  /** For a tool call: it was sent, and what a person has decided since. */
  isSent?: boolean;
  decision?: Decision;
  expiresAt?: string;
  /** The input to which a person has changed it before it was sent. */
  input?: unknown;
  /** The state of the call at its server, and a person's answer to the last questions of the server. */
  remote?: StoredRemoteCall;
  answered?: ApprovalAnswer;
  /** The last question: questions of the server, or a sign-in. */
  asking?: Pick<OutcomeAsked, 'questions' | 'forms' | 'signIn'>;
  /** For a model call: the cap that a person was asked about last, and the number of such questions. */
  cap?: CapQuestion;
  capsAsked?: number;
  /** The next question to a person, and why the last answer was invalid. */
  question?:
    | { approvals: readonly ApprovalRequest[]; problem?: string }
    | { cap: CapQuestion; problem?: string }
    | { signIn: { reason: string; offer: SignInOffer } };
  problem?: string;
  /** For a call of an agent: its slug, and the child that the step waits for. */
  agent?: string;
  child?: string;
  start?: number;
  details?: DetailsJson;
}

/** The part of a step that the process gets. */
export function recordOf(step: OpenStep): RecordedStep {
  const { id, name, nth, kind, alone, attempts, failures, isUnknown, answer, until, asked, ended } = step;
  const record = { id, name, nth, kind, alone, attempts, failures };
  return {
    ...record,
    ...(isUnknown && { isUnknown }),
    ...(answer && { answer }),
    ...(until !== undefined && { until }),
    ...(asked !== undefined && { asked }),
    ...(ended && { ended }),
  };
}
