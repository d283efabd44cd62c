import type { TenantSchemas } from '@baton/contract';
import { printValue, type Terminal } from '../output.js';

type CallRecord = TenantSchemas['CallRecord'];

/** Prints the request and the answer of a model call. */
export function printCallRecord(terminal: Terminal, { sent, said }: CallRecord): void {
  if (sent) printSent(terminal, sent);
  else terminal.out('sent: nothing, the call failed before');
  printSaid(terminal, said);
}

function printSent(terminal: Terminal, sent: NonNullable<CallRecord['sent']>): void {
  const { instructions, messages, tools, parameters, left_out: left } = sent;
  terminal.out(`sent: instructions:\n${instructions === '' ? '(none)' : instructions}\n`);
  terminal.out(
    `sent: messages${left.messages > 0 ? ` (${left.messages} older ones are not recorded)` : ''}:`,
  );
  printValue(terminal, messages);
  terminal.out(`sent: tools${left.tools > 0 ? ` (${left.tools} more are not recorded)` : ''}:`);
  printValue(terminal, tools);
  terminal.out('sent: parameters:');
  printValue(terminal, parameters);
}

function printSaid(terminal: Terminal, said: CallRecord['said']): void {
  if (said.error !== null) terminal.out(`said: ${said.error}`);
  if (said.complaint) printValue(terminal, said.complaint);
  if (said.reasoning !== '') terminal.out(`said: reasoning:\n${said.reasoning}`);
  if (said.text !== '') terminal.out(`said: text:\n${said.text}`);
  for (const { tool, input } of said.calls) terminal.out(`said: call of ${tool}:\n${input}`);
  const { characters, calls } = said.left_out;
  if (characters + calls > 0) terminal.out('said: the rest of the answer is not recorded');
  const finish = said.provider_finish ?? said.finish ?? 'failed';
  const cached = said.cached_tokens > 0 ? `, ${said.cached_tokens} of them cached` : '';
  terminal.out(`said: ${finish}, ${said.input_tokens} → ${said.output_tokens} tokens${cached}`);
}
