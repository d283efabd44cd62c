/** Why a turn of a model can't go on. The message is meant for the caller: plain words, no key, no stack. */
export class AgentFailure extends Error {
  override readonly name = 'AgentFailure';
}
