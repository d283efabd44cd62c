import { AgentCard } from './model.js';

/** `1.0`: pure 1.0; `0.2`: the flat shape of 0.2 and 0.3; `both`: the fields of both generations together. */
export type CardForm = '1.0' | 'both' | '0.2';

export function encodeCard(card: AgentCard, form: CardForm): unknown {
  void form;
  return AgentCard.toJSON(card);
}
