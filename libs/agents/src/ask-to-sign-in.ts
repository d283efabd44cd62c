import { TaskState } from '@baton/a2a';
import { type AgentOutput, failed, status, type Turn } from './agent-runtime.js';
import { Suspension } from './suspension.js';
import type { SignInNeeded } from './sign-in-needed.js';
import { needsSignIn, notSignedIn, signInParts } from './sign-in-request.js';
import { ChildNeedsSignIn } from './child-needs-sign-in.js';

/** How soon a parent checks a child that is about to continue again, in ms. */
const SOON_MS = 500;

/** Ends the turn until its caller has signed in. The run then continues by itself, on any worker. */
export async function askToSignIn(turn: Turn, error: SignInNeeded | ChildNeedsSignIn): Promise<AgentOutput> {
  const isOfChild = error instanceof ChildNeedsSignIn;
  const wanted = isOfChild ? { childTaskId: error.childTaskId } : error.request;
  const offer = await turn.secrets.offerSignIn(wanted);
  const reason = isOfChild ? error.reason : needsSignIn(error);
  // The caller has signed in: the child is about to continue.
  if (!offer && isOfChild) throw new Suspension([], SOON_MS);
  if (!offer) return failed(turn, notSignedIn(reason));
  turn.log.wakeIn(offer.forMs);
  return status(turn, TaskState.TASK_STATE_AUTH_REQUIRED, signInParts(reason, offer));
}
