import { type RecordedStep, STEP_LIMITS, type StepKind } from '../step-protocol.js';

/** A step of this attempt. */
export interface HostedStep {
  record: RecordedStep;
  /** The worker has recorded it. */
  isKnown: boolean;
  /** It undoes another step: it continues when the code of the author has failed. */
  undoes: boolean;
  /** It can be undone. */
  compensates?: boolean;
}

interface NewStep {
  /** It undoes another step. */
  undoes: boolean;
  /** No other step is under way. */
  alone: boolean;
}

/** The steps that earlier attempts have begun, to which the code must fit, and those that this attempt adds. */
export class RecordedSteps {
  private readonly records = new Map<string, RecordedStep>();
  private readonly patches = new Map<string, RecordedStep>();
  /** Recorded steps that the code has not called yet, by id. */
  private readonly uncalled = new Map<number, RecordedStep>();
  private readonly uses = new Map<string, number>();
  private count: number;

  constructor(recorded: readonly RecordedStep[]) {
    for (const record of recorded) {
      if (record.kind === 'patch') {
        this.patches.set(record.name, record);
        continue;
      }
      this.records.set(keyOf(record), record);
      this.uncalled.set(record.id, record);
    }
    this.count = recorded.length;
  }

  /** The first recorded step that the code has not called yet. */
  get missing(): RecordedStep | undefined {
    return this.uncalled.values().next().value;
  }

  /** The record of the next step of that name. */
  next(name: string): RecordedStep | undefined {
    return this.records.get(keyOf({ name, nth: (this.uses.get(name) ?? 0) + 1 }));
  }

  /**
   * Finds the record of a step, or makes one.
   * @returns how the code differs, if an earlier attempt took another way
   */
  enter(kind: StepKind, name: string, { undoes, alone }: NewStep): HostedStep | string {
    assertName(name);
    const nth = (this.uses.get(name) ?? 0) + 1;
    this.uses.set(name, nth);
    const record = this.records.get(keyOf({ name, nth }));
    const { missing } = this;
    if (!record) {
      if (missing && !undoes)
        return `Step ${stepLabel({ name, nth })} is new, but an earlier attempt began ${stepLabel(missing)} here`;
      return this.added(kind, name, nth, { undoes, alone });
    }
    if (record.kind !== kind) {
      return `Step ${stepLabel(record)} was a step of kind "${record.kind}" in an earlier attempt, and is "${kind}" now`;
    }
    if (missing && missing.id < record.id && record.alone && !undoes) {
      return `Step ${stepLabel(record)} comes before ${stepLabel(missing)}, which came first in an earlier attempt`;
    }
    this.uncalled.delete(record.id);
    return { record, isKnown: true, undoes };
  }

  private added(kind: StepKind, name: string, nth: number, { undoes, alone }: NewStep): HostedStep {
    if (this.count >= STEP_LIMITS.steps && !undoes) {
      throw new RangeError(
        `a task has at most ${STEP_LIMITS.steps} steps: do more in one step, or begin again with continueAs()`,
      );
    }
    const record = { id: ++this.count, name, nth, kind, alone, attempts: 0, failures: 0 };
    return { record, isKnown: false, undoes };
  }

  /** False: an earlier attempt was beyond this step without the patch. */
  patch(id: string, alone: boolean): HostedStep | false {
    const record = this.patches.get(id);
    if (record) return { record, isKnown: true, undoes: false };
    return this.uncalled.size === 0 && this.added('patch', id, 1, { undoes: false, alone });
  }
}

const keyOf = ({ name, nth }: Pick<RecordedStep, 'name' | 'nth'>): string => `${nth} ${name}`;
/** A step as errors name it. */
export const stepLabel = ({ name, nth }: Pick<RecordedStep, 'name' | 'nth'>): string =>
  nth === 1 ? `"${name}"` : `"${name}" (number ${nth} of that name)`;

/** Throws TypeError for the name of a step that is no text, empty, too long, or has control characters. */
export function assertName(name: string): void {
  if (typeof name !== 'string' || name.trim() === '' || name.length > STEP_LIMITS.name) {
    throw new TypeError(`the name of a step must be a text of 1 to ${STEP_LIMITS.name} characters`);
  }
  if (hasControls(name)) {
    throw new TypeError(
      'the name of a step must not contain control characters, such as line breaks: remove them',
    );
  }
}

// oxlint-disable-next-line no-control-regex -- names are shown in terminals
const hasControls = (text: string): boolean => /[\u0000-\u001f\u007f]/.test(text);
