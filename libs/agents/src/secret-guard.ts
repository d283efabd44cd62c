import { type Part, endsTurn } from '@baton/a2a';
import { hideInLogs } from '@baton/telemetry';
import type {
  AccessTokenRequest,
  AccessTokens,
  SignedInCall,
  SignInOffer,
  TokenHolder,
  WiderAccess,
} from './access-tokens.js';
import type { ConsoleLevel } from './console-level.js';
import { NOTHING_SECRET, Redactor } from './outbound/redactor.js';
import type { SecretReader } from './secret-reader.js';
import {
  type AgentOutput,
  ArtifactOutput,
  artifactChunk,
  plainTextPart,
  type Turn,
  type TurnConsole,
  type TurnJournal,
  type TurnSecrets,
} from './agent-runtime.js';

/** The end of a shortened text (`cut` of the executor's protocol). */
const CUT = '…';

/**
 * The secrets of one turn. Keeps each value that the turn has read, and removes it from all that the turn stores or sends:
 * models, tools and other agents may quote their input.
 */
export class SecretGuard implements TurnSecrets {
  redactor: Redactor = NOTHING_SECRET;
  private readonly values = new Set<string>();

  constructor(
    private readonly reader: SecretReader,
    private readonly tenantId: string,
    private readonly tokens: AccessTokens,
    private readonly task?: TokenHolder['task'],
  ) {}

  async get(name: string, destinations: readonly string[]): Promise<string | undefined> {
    const value = (await this.reader.get(this.tenantId, name, destinations))?.trim();
    return value === undefined ? undefined : this.hide(value);
  }

  async accessToken(request: AccessTokenRequest, refused?: string): Promise<string | undefined> {
    const value = await this.tokens.get(this.holder, request, refused);
    return value === undefined ? undefined : this.hide(value);
  }

  noteCall(request: AccessTokenRequest, call: SignedInCall): Promise<boolean> {
    return this.tokens.noteCall(this.holder, request, call);
  }

  refuseAccessToken(request: AccessTokenRequest, refused: string): Promise<void> {
    return this.tokens.refuse(this.holder, request, refused);
  }

  async widerAccess(
    request: AccessTokenRequest,
    refused: string,
    asked: readonly string[],
  ): Promise<WiderAccess | undefined> {
    const found = await this.tokens.wider(this.holder, request, refused, asked);
    return found && 'token' in found ? { token: this.hide(found.token) } : found;
  }

  offerSignIn(wanted: AccessTokenRequest | { childTaskId: string }): Promise<SignInOffer | undefined> {
    return this.tokens.offer(this.holder, wanted);
  }

  private get holder(): TokenHolder {
    return { tenantId: this.tenantId, task: this.task };
  }

  private hide(value: string): string {
    const redactor = new Redactor([value]);
    hideInLogs(value, (line) => redactor.text(line));
    if (this.values.has(value)) return value;
    this.values.add(value);
    this.redactor = new Redactor(this.values);
    return value;
  }

  /** A journal that stores no values of secrets. */
  journal(journal: TurnJournal): TurnJournal {
    return {
      read: (taskId) => journal.read(taskId),
      append: (value, record) => journal.append(this.redactor.value(value), record),
      restart: (value) => journal.restart(this.redactor.value(value)),
      noteRemoteCall: () => journal.noteRemoteCall(),
      noteCompensable: () => journal.noteCompensable(),
    };
  }

  /** A console that stores no values of secrets. */
  console(write: (level: ConsoleLevel, text: string) => void): TurnConsole {
    return {
      write: (level, text) => {
        const clean = this.line(text);
        write(level, clean);
        return clean;
      },
    };
  }

  /** The end of a line that was cut may be the beginning of a value: it is left out. */
  private line(text: string): string {
    if (this.redactor.isEmpty) return text;
    return text.endsWith(CUT) ? this.redactor.split(text.slice(0, -1)).ready + CUT : this.redactor.text(text);
  }

  /**
   * The output of a runtime without values of secrets, also if a value comes in several chunks of an artifact. The end of
   * a chunk that may be the beginning of a value is held until the next chunk, or the end of the turn.
   */
  async *scrub(
    turn: Turn,
    outputs: AsyncIterable<AgentOutput>,
  ): AsyncGenerator<AgentOutput, void, undefined> {
    const artifacts = new HeldTexts();
    try {
      for await (const output of outputs) {
        if (this.redactor.isEmpty) yield output;
        else if (output.$case === 'artifactUpdate') yield* artifacts.chunk(output, this.redactor);
        else {
          if (endsArtifacts(output)) yield* artifacts.flush(turn, this.redactor);
          yield wholeMessages(this.redactor.value(output), this.redactor);
        }
      }
      yield* artifacts.flush(turn, this.redactor);
    } catch (error) {
      yield* artifacts.flush(turn, this.redactor);
      throw this.redactor.error(error);
    }
  }
}

/** A turn, and the guard of the secrets that it reads. */
export interface GuardedTurn extends Turn {
  secrets: SecretGuard;
}

/** Whether no artifact is appended to after this output. */
const endsArtifacts = (output: AgentOutput): boolean =>
  output.$case !== 'statusUpdate' ||
  (output.value.status !== undefined && endsTurn(output.value.status.state));

/** The held ends of the texts of artifacts. */
class HeldTexts {
  private readonly held = new Map<string, { text: string; artifact: { artifactId: string; name: string } }>();

  /** The chunk as far as it may be shown. Nothing if all of it is held. */
  *chunk({ value: update }: ArtifactOutput, redactor: Redactor): Generator<AgentOutput> {
    const clean = redactor.value({
      ...update,
      artifact: update.artifact && { ...update.artifact, parts: [] },
    });
    const { artifact } = clean;
    if (!update.artifact || !artifact) {
      yield { $case: 'artifactUpdate', value: clean };
      return;
    }
    const { artifactId, name } = artifact;
    const before = update.append ? (this.held.get(artifactId)?.text ?? '') : '';
    this.held.delete(artifactId);
    const { parts, held } = cleanParts(update.artifact.parts, before, redactor);
    if (held !== '' && update.lastChunk) addText(parts, redactor.text(held));
    else if (held !== '') this.held.set(artifactId, { text: held, artifact: { artifactId, name } });
    if (parts.length === 0 && update.artifact.parts.length > 0) {
      if (update.append && !update.lastChunk) return;
      parts.push(plainTextPart(''));
    }
    yield { $case: 'artifactUpdate', value: { ...clean, artifact: { ...artifact, parts } } };
  }

  /** The held back rest, at the end of the output. */
  *flush(turn: Turn, redactor: Redactor): Generator<AgentOutput> {
    for (const { text, artifact } of this.held.values()) {
      const parts = [plainTextPart(redactor.text(text))];
      yield artifactChunk(turn, { ...artifact, parts }, { append: true, lastChunk: false });
    }
    this.held.clear();
  }
}

/** Texts that follow each other are read as one text, which begins with `before` and may continue after `held`. */
function cleanParts(
  all: readonly Part[],
  before: string,
  redactor: Redactor,
): { parts: Part[]; held: string } {
  const parts: Part[] = [];
  let held = before;
  for (const part of all) {
    if (part.content?.$case === 'text') {
      const next = redactor.split(held + part.content.value);
      held = next.held;
      const content = { ...part.content, value: next.ready };
      // An empty text stays if it was empty before: it may be there to end the artifact.
      if (next.ready !== '' || part.content.value === '') parts.push({ ...redactor.value(part), content });
    } else {
      if (held !== '') addText(parts, redactor.text(held));
      held = '';
      parts.push(redactor.value(part));
    }
  }
  return { parts, held };
}

function addText(parts: Part[], text: string): void {
  const last = parts.at(-1);
  if (last?.content?.$case === 'text') {
    parts[parts.length - 1] = { ...last, content: { ...last.content, value: last.content.value + text } };
  } else parts.push(plainTextPart(text));
}

/** Removes values that are spread over several parts of a message or of a whole artifact. */
function wholeMessages(output: AgentOutput, redactor: Redactor): AgentOutput {
  switch (output.$case) {
    case 'message':
      return { ...output, value: { ...output.value, parts: joined(output.value.parts, redactor) } };
    case 'statusUpdate': {
      const { status } = output.value;
      if (!status?.message) return output;
      const message = { ...status.message, parts: joined(status.message.parts, redactor) };
      return { ...output, value: { ...output.value, status: { ...status, message } } };
    }
    case 'task': {
      const artifacts = output.value.artifacts.map((artifact) => ({
        ...artifact,
        parts: joined(artifact.parts, redactor),
      }));
      return { ...output, value: { ...output.value, artifacts } };
    }
    default:
      return output;
  }
}

function joined(all: readonly Part[], redactor: Redactor): Part[] {
  const { parts, held } = cleanParts(all, '', redactor);
  if (held !== '') addText(parts, redactor.text(held));
  return parts;
}
